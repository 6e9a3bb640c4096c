"""Whether a ledger's campaign is evaluated as its plan says."""

from budgets.state import RunState
from budgets.terms import CampaignTerms
from objectives import registry
from objectives.api import ObjectiveSpec
from objectives.space import SearchSpace
from orchestrator.verify_panels import DivergedError


def conditions_as_planned(state: RunState, campaign: CampaignTerms) -> str:
    """Every condition has the knobs that its settings make of the objective.

    Raises DivergedError, naming the first that has others.
    """
    spec = ObjectiveSpec.model_validate(state.plan.objective)
    for condition in campaign.conditions:
        try:
            space = registry.load(registry.varied(spec, condition.settings)).space
        except ValueError as error:
            raise DivergedError(f"condition {condition.name}: {error}") from error
        if condition.knobs != space.decode(space.baseline):
            raise DivergedError(
                f"condition {condition.name} is evaluated with other knobs than its settings give"
            )
    baseline = SearchSpace.model_validate(state.plan.space).baseline
    if any(point != baseline for batch in state.generations for point in batch.points):
        raise DivergedError("a condition stands at another point than the space's baseline")
    return f"conditions: {len(campaign.conditions)} have the knobs that their settings give"
