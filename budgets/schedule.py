"""What a run does next: search, compare on fresh seeds, decide; and what that still needs.

The search's own evaluations come first. The reference comparison (the baseline and the controls on
the confirmation's seeds) is known before the search begins, so its evaluations fill the slots that
a generation leaves idle; the other comparisons follow from what was found.
"""

from math import ceil
from typing import Literal, NamedTuple

from budgets.accounts import MS_PER_HOUR
from budgets.plan import Calibration, Confirmation, LongRun
from budgets.state import Batch, RunState
from budgets.verdict import has_winner, is_promising

Action = Literal[
    "reference", "proxy", "generation", "finalists", "winner", "long_run", "decide", "over"
]
"""A comparison to ask and evaluate, the next generation, the decision, or nothing more."""

ENDS_THE_SEARCH = ("budget", "patience")
"""Rules that stop the search, and leave what it found to be confirmed."""


class Needs(NamedTuple):
    """What the evaluations beside the search are still expected to take."""

    evaluations: int
    device_hours: float
    hours: float


NOTHING = Needs(0, 0.0, 0.0)


def next_action(state: RunState) -> Action:
    """What the run does next, as long as no rule holds it up."""
    plan = state.plan
    if state.decided is not None or state.concluded is not None:
        return "over"
    if plan.proxy is not None and state.current is not None and not state.comparisons:
        return "proxy"
    if plan.search is None:
        is_left = state.finished < plan.resolved.generations or _unfinished(state, "proxy")
        return "generation" if is_left else "over"
    if plan.confirmation is not None and not state.comparisons and not state.completed:
        return "reference"
    if not search_is_over(state):
        return "generation"
    return "over" if plan.confirmation is None else _after_the_search(state, plan.confirmation)


def _after_the_search(state: RunState, confirmation: Confirmation) -> Action:
    """The first comparison that is not closed; the long run only for a winner that deserves it.

    Finalists are compared, and controls given the reference's seconds, when both are closed.
    """
    if not _is_closed(state, "finalists"):
        return "finalists"
    if not _is_closed(state, "reference"):
        return "reference"
    if not _is_closed(state, "winner"):
        return "winner" if has_winner(state) else "decide"
    if "long_run" in state.comparisons:
        return "decide" if _is_closed(state, "long_run") else "long_run"
    return "long_run" if _fits(state, confirmation.long_run) and is_promising(state) else "decide"


def _is_closed(
    state: RunState, name: Literal["reference", "finalists", "winner", "long_run"]
) -> bool:
    batch = state.comparison(name)
    return batch is not None and batch.closed


def _unfinished(state: RunState, name: Literal["proxy"]) -> Batch | None:
    batch = state.comparison(name)
    return None if batch is None or batch.closed else batch


def _fits(state: RunState, long_run: LongRun | None) -> bool:
    """Whether there is a long run, and all of it fits under every cap: it is no part of a Go.

    The last attempt at it must find its whole reservation free.
    """
    if long_run is None:
        return False
    plan, cost = state.plan, long_run.variant.cost_factor
    others, needs = 2 * long_run.seeds - 1, NOTHING
    if plan.calibration is not None:
        needs = expected(others, others * cost, plan.calibration, plan.devices.count)
    reserve_ms, keep = plan.limits.stretched(cost).reserve_ms, (needs.device_hours, needs.hours)
    return state.accounts.refusal(reserve_ms, compares=True, keep=keep) is None


def can_ask(state: RunState) -> bool:
    """Whether the next generation's points are known now."""
    return state.current is None and next_action(state) == "generation"


def search_is_over(state: RunState) -> bool:
    """Whether no further generation will be told, whatever a cap allows later."""
    if state.plan.search is None:
        return False
    if "finalists" in state.comparisons or state.finished == state.plan.resolved.generations:
        return True
    can_be_confirmed = state.plan.confirmation is not None and bool(state.completed)
    return state.ended is not None and can_be_confirmed


def open_batches(state: RunState) -> list[Batch]:
    """Batches to work on now: what the run waits for first, then what fills idle slots."""
    comparing = [batch for batch in state.comparisons.values() if not batch.closed]
    if search_is_over(state) or state.current is None:
        return comparing
    return [state.current, *comparing]


def blocking_batches(state: RunState) -> list[Batch]:
    """What must be closed before the run can go on: the generation, or after the search all.

    In a check of a proxy, once its full evaluations are settled, the short ones.
    """
    if search_is_over(state):
        return open_batches(state)
    current, short = state.current, _unfinished(state, "proxy")
    if current is not None and (state.plan.search is not None or not current.closed):
        return [current]
    return [] if short is None else [short]


def left_for_the_verdict(state: RunState) -> Needs:
    """What the comparisons still need, as far as they are planned and not settled.

    Nothing where no time of an evaluation is known. The last attempt must find its whole
    reservation free; one of the long run, which is longer, may not: the long run is left out then.
    """
    plan, comparisons = state.plan, _left_to_compare(state)
    if plan.calibration is None or not comparisons:
        return NOTHING
    parts = [expected(*one, plan.calibration, plan.devices.count) for one in comparisons]
    last = plan.limits.reserve_ms / MS_PER_HOUR
    return Needs(
        sum(part.evaluations for part in parts),
        sum(part.device_hours for part in parts) + last,
        sum(part.hours for part in parts) + last,  # each begins when the one before it is closed
    )


def cost_of_the_verdict(state: RunState) -> float:
    """The verdict's evaluations that are not settled yet, in evaluations of the search."""
    return sum(cost for _, cost in _left_to_compare(state))


def _left_to_compare(state: RunState) -> list[tuple[int, float]]:
    """Of each comparison how many evaluations are not settled, and their cost together."""
    confirmation = state.plan.confirmation
    if confirmation is None or state.decided is not None:
        return []
    sizes = confirmation.sizes().items()
    parts = [
        whole if (own := state.comparison(name)) is None else left(own) for name, whole in sizes
    ]
    return [part for part in parts if part[0]]


def expected(count: int, cost: float, calibration: Calibration, devices: int) -> Needs:
    """What so many evaluations, that cost as much as `cost` whole ones, are expected to take."""
    device_hours = cost * calibration.median_seconds / 3600
    rounds = ceil(count / devices) * (cost / count)
    return Needs(count, device_hours, rounds * calibration.median_seconds / 3600)


def left(batch: Batch) -> tuple[int, float]:
    """How many of its evaluations are not settled, and their cost together, in whole ones."""
    unfinished = [*batch.pending, *batch.running]
    return len(unfinished), sum(batch.configurations[c].cost_factor for c, _ in unfinished)
