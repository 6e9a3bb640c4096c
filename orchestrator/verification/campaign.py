"""Whether a ledger's campaign is evaluated as its plan says."""

from budgets.plan import CampaignTerms
from budgets.state import RunState
from objectives import registry
from orchestrator.matrix.campaign import points_of
from orchestrator.records.diverged import DivergedError
from orchestrator.records.planned import space_of, spec_of


def conditions_as_planned(state: RunState, campaign: CampaignTerms) -> str:
    """Every condition has the knobs that its settings and its point make of the objective.

    Raises DivergedError, naming the first that has others.
    """
    spec = spec_of(state.plan)
    for condition in campaign.conditions:
        try:
            space = registry.load(registry.varied(spec, condition.settings)).space
            knobs = space.decode(space.baseline if condition.point is None else condition.point)
        except ValueError as error:
            raise DivergedError(f"condition {condition.name}: {error}") from error
        if condition.knobs != knobs:
            raise DivergedError(
                f"condition {condition.name} is evaluated with other knobs than its settings give"
            )
    points = points_of(campaign, space_of(state.plan).baseline)
    if any(batch.points != points for batch in state.generations):
        raise DivergedError(
            "a condition stands at another point than the space's baseline, or its own"
        )
    return f"conditions: {len(campaign.conditions)} have the knobs that their settings give"
