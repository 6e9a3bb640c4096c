"""Whether a campaign's conditions are what its objective makes of them, and were evaluated so."""

from pathlib import Path

from budgets.state import RunState
from budgets.terms import Condition
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.campaign.conditions import Cell, condition
from orchestrator.execution.attempts import CONFIG, read
from orchestrator.execution.evaluate import Attempt
from orchestrator.settle import attempt_place
from orchestrator.verify_panels import DivergedError


def conditions(directory: Path, state: RunState) -> str:
    """Says how many hold. Raises DivergedError, naming the first condition that does not."""
    campaign = state.plan.campaign
    assert campaign is not None, "it is asked of campaigns"
    objective = registry.load(ObjectiveSpec.model_validate(state.plan.objective))
    for own in campaign.conditions:
        as_the_objective_has_it(objective, own)
    compared = sum(
        _was_evaluated(directory / "eval" / attempt_place(attempt.reserved), objective, own)
        for generation in state.generations
        for (candidate, _), tries in generation.tries.items()
        for own in (campaign.conditions[candidate],)
        for attempt in tries
    )
    return f"conditions: {len(campaign.conditions)} are the objective's, as {compared} attempts say"


def as_the_objective_has_it(objective: Objective, own: Condition) -> None:
    """Raises DivergedError unless the condition is what its settings give."""
    cell = Cell(own.name, own.settings, own.levels, own.control)
    try:
        made = condition(objective, cell)
    except ValueError as error:
        raise DivergedError(str(error)) from error
    if made.knobs != own.knobs:
        raise DivergedError(
            f"condition {own.name} has knobs {own.knobs}, its settings give {made.knobs}"
        )
    if made.length not in (1.0, own.length):  # 1: nothing says it, or its data is not here
        raise DivergedError(
            f"condition {own.name} is {own.length:g} times as long, its settings give "
            f"{made.length:g}"
        )


def _was_evaluated(place: Path, objective: Objective, own: Condition) -> bool:
    """Whether an attempt's own file says so; False where there is none."""
    attempt = read(Attempt, place / CONFIG)
    if attempt is None:
        return False
    if (attempt.objective, attempt.knobs) != (
        registry.varied(objective.spec, own.settings),
        own.knobs,
    ):
        raise DivergedError(f"{place / CONFIG} has another configuration than {own.name}")
    return True
