"""What a run does next: search, compare on fresh seeds, decide; and what that still needs.

The search's own evaluations come first. The reference comparison (the baseline and the controls on
the confirmation's seeds) is known before the search begins, so it fills the slots that a generation
leaves idle; the other comparisons follow from what was found.
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
"""Rules that stop the search and leave what it found to be confirmed."""


class Needs(NamedTuple):
    """What evaluations are expected to take."""

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
        is_open = plan.proxy is not None and not state.is_closed("proxy")
        is_done = state.finished >= plan.resolved.generations and not is_open
        return "over" if is_done else "generation"
    if plan.confirmation is not None and not state.comparisons and not state.completed:
        return "reference"
    if not search_is_over(state):
        return "generation"
    return "over" if plan.confirmation is None else _after_the_search(state, plan.confirmation)


def _after_the_search(state: RunState, confirmation: Confirmation) -> Action:
    """The first comparison that is not closed; the long run only for a winner that deserves it."""
    if not state.is_closed("finalists"):
        return "finalists"
    if not state.is_closed("reference"):
        return "reference"
    if not state.is_closed("winner"):
        return "winner" if has_winner(state) else "decide"
    if "long_run" in state.comparisons:
        return "decide" if state.is_closed("long_run") else "long_run"
    return "long_run" if _fits(state, confirmation.long_run) and is_promising(state) else "decide"


def _fits(state: RunState, long_run: LongRun | None) -> bool:
    """Whether a long run is planned and fits under every cap: a Go does not need it.

    Its last attempt needs its whole reservation free.
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
    """Batches to close before the run can continue: the generation, or after the search all.

    In a check of a proxy the short evaluations, once the full ones are settled.
    """
    if search_is_over(state):
        return open_batches(state)
    current = state.current
    if current is not None and (state.plan.search is not None or not current.closed):
        return [current]
    return [batch for batch in open_batches(state) if batch.comparison == "proxy"]


def left_for_the_verdict(state: RunState) -> Needs:
    """What the planned comparisons still need; nothing where no evaluation's time is known.

    Their last attempt needs its whole reservation free. One of the long run, which is longer, is
    not considered: without room for it the long run is left out.
    """
    plan, comparisons = state.plan, _left_to_compare(state)
    if plan.calibration is None or not comparisons:
        return NOTHING
    parts = [expected(*one, plan.calibration, plan.devices.count) for one in comparisons]
    last = plan.limits.reserve_ms / MS_PER_HOUR
    return Needs(
        sum(part.evaluations for part in parts),
        sum(part.device_hours for part in parts) + last,
        sum(part.hours for part in parts) + last,  # one comparison after another
    )


def cost_of_the_verdict(state: RunState) -> float:
    """The verdict's unsettled evaluations, in evaluations of the search."""
    return sum(cost for _, cost in _left_to_compare(state))


def _left_to_compare(state: RunState) -> list[tuple[int, float]]:
    """The number and the cost of each comparison's unsettled evaluations."""
    confirmation = state.plan.confirmation
    if confirmation is None or state.decided is not None:
        return []
    parts = []
    for name, planned in confirmation.sizes().items():
        batch = state.comparisons.get(name)
        left = planned if batch is None else (batch.unfinished, batch.cost - batch.done_cost)
        if left[0]:
            parts.append(left)
    return parts


def expected(count: int, cost: float, calibration: Calibration, devices: int) -> Needs:
    """What so many evaluations are expected to take; `cost` is of all, in whole evaluations."""
    device_hours = cost * calibration.median_seconds / 3600
    rounds = ceil(count / devices) * (cost / count)
    return Needs(count, device_hours, rounds * calibration.median_seconds / 3600)
