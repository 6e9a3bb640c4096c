"""What the tries at an evaluation mean: how one is settled, and how the next one is made.

All of it follows from the ledger and from an attempt's own word, so whoever asks, when an outcome
comes or when it is found later, is told the same.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from budgets.events import Reserved, Settled, Status
from budgets.failures import cause_of, is_lost, is_unexplained
from budgets.formatting import one_line
from budgets.state import Attempt, Batch, RunState
from objectives.api import ObjectiveSpec
from objectives.registry import varied
from orchestrator.records.planned import spec_of


class Form(NamedTuple):
    """What an attempt evaluates, and how long that takes relative to the plan's objective."""

    objective: ObjectiveSpec
    length: float


def ends(tries: Iterable[Attempt]) -> tuple[Settled, ...]:
    """How those ended that have."""
    return tuple(attempt.settled for attempt in tries if attempt.settled is not None)


def before(batch: Batch, place: Reserved | Settled) -> tuple[Settled, ...]:
    """How the tries at the same evaluation ended that came earlier."""
    return ends(batch.attempts.get((place.candidate, place.seed), ())[: place.attempt - 1])


def avoided(earlier: tuple[Settled, ...]) -> str:
    """The device that the next try keeps away from, if it can; empty where any will do."""
    return next((end.device for end in earlier if end.retry), "")


def form(state: RunState, batch: Batch, candidate: int) -> Form:
    """What is evaluated: the plan's objective, or the batch's variant of it."""
    spec = spec_of(state.plan)
    if changed := batch.configurations[candidate].settings:
        spec = varied(spec, changed)
    return Form(spec, batch.configurations[candidate].cost_factor)


def judged(state: RunState, end: Settled) -> Settled:
    """`end` as it goes on record: as what it is, or owed again for a reason.

    What the infrastructure did is `lost`, and so is what found that nothing can be evaluated. An
    evaluation that is lost again and again is its configuration's own failure in the end. What may
    have been a machine's doing is tried once more elsewhere.
    """
    cause = cause_of(end.status, end.cause)
    if cause is None or end.status is Status.CANCELLED:
        return end
    if cause.whose in ("infrastructure", "setup"):
        return _given_up(state, replace(end, status=Status.LOST))
    earlier = before(state.batch(end), end)
    if cause.whose == "ambiguous" and all(not one.retry for one in earlier):
        return replace(end, retry=True)
    return end


def _given_up(state: RunState, lost: Settled) -> Settled:
    """`lost`, or an error where the evaluation is lost too often.

    That is `attempts_per_session` times in all, once such losses have paused the run and somebody
    has resumed it. Attempts that ended with their orchestrator do not count.
    """
    batch, limit = state.batch(lost), state.plan.thresholds.attempts_per_session
    ended = (*before(batch, lost), lost)
    counted = [e for e in ended if is_unexplained(e.status, e.cause) and not e.recovered]
    if lost not in counted or len(counted) < limit:
        return lost
    session = batch.attempts[lost.candidate, lost.seed][lost.attempt - 1].session
    if not any(_most_losses(tries, before=session) >= limit for tries in _all_tries(state)):
        return lost
    cause = one_line(f"lost {len(counted)} times: {lost.cause}")
    return replace(lost, status=Status.ERROR, cause=cause)


def _all_tries(state: RunState) -> Iterator[tuple[Attempt, ...]]:
    """Of every evaluation."""
    return (tries for batch in state.batches() for tries in batch.attempts.values())


def _most_losses(tries: tuple[Attempt, ...], before: int) -> int:
    """How many of them one session lost, of those before that one."""
    lost = (t for t in tries if t.settled and is_lost(t.settled.status, t.settled.cause))
    return max(Counter(t.session for t in lost if t.session < before).values(), default=0)
