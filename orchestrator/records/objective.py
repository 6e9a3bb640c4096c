"""What a run's plan and state say of its objective: its space, its points, the best of them."""

from budgets.plan import Plan
from budgets.state import Batch, RunState
from budgets.verdict import recommendation, stood_for, winner
from objectives import registry
from objectives.api import Objective
from objectives.space import SearchSpace

Point = tuple[float, ...]


def objective_of(plan: Plan) -> Objective:
    """Loaded anew. Raises ValueError where it is not what it was."""
    return registry.load(plan.objective)


def knobs_of(batch: Batch, candidate: int, space: SearchSpace) -> dict[str, float]:
    """Those of the candidate's point; a campaign's conditions have their own."""
    own = batch.configurations[candidate]
    return space.decode(own.point) if own.knobs is None else dict(own.knobs)


def best_point(state: RunState, *, compared: bool = False) -> Point | None:
    """The best that the search has: what is recommended. None before a generation is told.

    After a No-Go nothing is, and "the best" depends on what it is for. To go on searching from
    there, or to look around it (phase 2, warm start), it is what the search stood for at
    last: all its scores put it there, and the comparison says only that this was no sure gain. To
    train or to show that run's one configuration all the same (`best`) it is the winner among the
    finalists, which was `compared`: of no other point is a gain known.
    """
    if (point := recommendation(state)) is not None:
        return point
    arm = winner(state) if compared else None
    return stood_for(state) if arm is None else arm.point
