"""The knobs of a candidate, and the best point of a run."""

from budgets.state import Batch, RunState
from budgets.verdict import recommendation, stood_for, winner
from objectives.space import SearchSpace

Point = tuple[float, ...]


def knobs_of(batch: Batch, candidate: int, space: SearchSpace) -> dict[str, float]:
    """Return the knobs of a candidate; a campaign's conditions have their own."""
    own = batch.configurations[candidate]
    return space.decode(own.point) if own.knobs is None else dict(own.knobs)


def best_point(state: RunState, *, compared: bool = False) -> Point | None:
    """Return the best point of a search; None before its first generation is complete.

    After a Go it is what is recommended. After a No-Go it depends on what it is for. A search that
    goes on from there (phase 2) takes the mean of the distribution, where all scores
    put it. To use one configuration all the same (`best`), take the winner of the finalists, which
    was `compared`: of no other point is the gain known.
    """
    if (point := recommendation(state)) is not None:
        return point
    arm = winner(state) if compared else None
    return stood_for(state) if arm is None else arm.point
