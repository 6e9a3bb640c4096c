"""What a run does next: search, compare on fresh seeds, decide; what it still needs; how it keeps
to its plan.

The search's own evaluations come first. The reference comparison (the baseline and the controls on
the confirmation's seeds) is known before the search begins, so it fills the slots that a generation
leaves idle; the other comparisons follow from what was found. Times are as of the run's last
record. Batches are counted one after another, each in whole rounds of all devices, although the
reference fills idle slots.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from itertools import islice
from math import ceil
from statistics import median
from typing import Literal

from budgets.accounts import MS_PER_HOUR
from budgets.plan import Calibration, Confirmation, Frozen
from budgets.state import Batch, RunState
from budgets.verdict import findings, winner

Action = Literal[
    "reference", "proxy", "generation", "finalists", "winner", "long_run", "decide", "over"
]
"""A comparison to ask and evaluate, the next generation, the decision, or nothing more."""


def next_action(state: RunState) -> Action:  # noqa: PLR0911 - one an action
    """What the run does next, as long as no rule holds it up."""
    plan = state.plan
    if state.decided is not None or state.concluded is not None:
        return "over"
    if plan.search is None:
        if plan.proxy is not None and state.current is not None and not state.comparisons:
            return "proxy"
        is_open = plan.proxy is not None and not state.is_closed("proxy")
        is_done = state.finished >= plan.resolved.generations and not is_open
        return "over" if is_done else "generation"
    if plan.confirmation is not None and not state.comparisons and not state.completed:
        return "reference"
    if not search_is_over(state):
        return "generation"
    if plan.confirmation is None:
        return "over"
    if not state.is_closed("finalists"):
        return "finalists"
    if not state.is_closed("reference"):
        return "reference"
    if not state.is_closed("winner"):
        return "decide" if winner(state) is None else "winner"
    if "long_run" in state.comparisons:
        return "decide" if state.is_closed("long_run") else "long_run"
    found = findings(state)  # all met: worth the price of a long run
    is_promising = found is not None and all(one.met for one in found.conditions)
    return "long_run" if is_promising and _fits(state, plan.confirmation) else "decide"


def _fits(state: RunState, confirmation: Confirmation) -> bool:
    """Whether a long run is planned and fits under every cap, its last reservation included."""
    if confirmation.long_run is None:
        return False
    plan, cost = state.plan, confirmation.long_run.cost_factor
    others = 2 * confirmation.long_run_seeds - 1
    keep = expected([(others, others * cost)], plan.calibration, plan.devices.count)
    reserve_ms = plan.limits.stretched(cost).reserve_ms
    return state.accounts.refusal(reserve_ms, compares=True, keep=keep) is None


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


# What evaluations to come are expected to take


Work = tuple[int, float]
"""Evaluations to come, and what they cost together, in evaluations of the search."""

Hours = tuple[float, float]
"""Device-hours and hours."""


def expected(works: Sequence[Work], calibration: Calibration | None, devices: int) -> Hours:
    """What these are expected to take, one after another; no time where none is known."""
    hours = 0.0 if calibration is None else calibration.median_seconds / 3600
    return sum(cost for _, cost in works) * hours, _rounds(works, devices) * hours


def _rounds(works: Sequence[Work], devices: int) -> float:
    """The time of these works, in evaluations of the search: each begins when the last is over."""
    return sum(ceil(count / devices) * cost / count for count, cost in works if count)


def left_for_the_verdict(state: RunState) -> Hours:
    """What the planned comparisons still need, the last attempt's whole reservation included.

    Not that of a long run: without room for it the long run is left out.
    """
    plan, works = state.plan, left_to_compare(state)
    device_hours, hours = expected(works, plan.calibration, plan.devices.count)
    is_known = plan.calibration is not None and works
    last = plan.limits.reserve_ms / MS_PER_HOUR if is_known else 0.0
    return device_hours + last, hours + last


def left_to_compare(state: RunState) -> list[Work]:
    """Each comparison's unsettled evaluations."""
    left = {} if state.decided is not None else state.plan.comparisons
    for name in left.keys() & state.comparisons.keys():
        left[name] = _left_of(state.comparisons[name])
    return [one for one in left.values() if one[0]]


def _left_of(batch: Batch) -> Work:
    return batch.planned - batch.settled, batch.cost - batch.done_cost


def works_left(state: RunState) -> list[Work]:
    """All that the run still needs: generations, and comparisons."""
    works, shape = left_to_compare(state), state.plan.resolved
    if search_is_over(state):
        return works
    if state.current is not None:
        works.append(_left_of(state.current))
    each = (shape.per_generation, float(shape.per_generation))
    return works + [each] * (shape.generations - state.begun)


# How a run keeps to its plan

MOST_RECENT = 256  # the latest of one batch, whose times are the present ones
GOOD_ACCURACY = (85.0, 115.0)  # percent: beyond these the calibration is out of date
SHORTEST_HOURS = 1 / 6  # what took less says nothing about the calibration


class Pace(Frozen):
    """Where a run stands in time."""

    elapsed_hours: float  # that it was open
    remaining_hours: float | None  # None: no evaluation's time is known yet
    progress: float  # share of the planned evaluations that is done, weighted by their cost
    evals_per_hour: float | None  # all devices together
    eta: datetime | None
    on_track: bool | None  # within its forecast, its window and its cap on hours
    estimated_hours: float | None  # of what is done, with its barriers; None: not calibrated
    accuracy: float | None  # estimated / elapsed * 100; None until something is done

    @property
    def is_out_of_date(self) -> bool:
        """Whether the calibration is."""
        if self.accuracy is None or self.elapsed_hours < SHORTEST_HOURS:
            return False
        return not GOOD_ACCURACY[0] <= self.accuracy <= GOOD_ACCURACY[1]


def pace(state: RunState, now: datetime | None = None) -> Pace:
    """Where the run stands; what is still to come begins `now`, or at its last record."""
    now = max(now or state.seen, state.seen)
    plan, left, seconds = state.plan, works_left(state), expected_seconds(state)
    done = [(batch.settled, batch.done_cost) for batch in state.batches()]
    count, cost = (sum(values) for values in zip(*done, strict=True)) if done else (0, 0.0)
    to_do = sum(cost for _, cost in left)
    workers = state.opened[-1].workers if state.opened else plan.devices.count
    rounds, elapsed = _rounds(left, workers), sum(state.accounts.sessions_ms) / MS_PER_HOUR
    remaining = None if seconds is None else rounds * seconds / 3600
    estimated = forecast = None
    if plan.calibration is not None:
        typical = plan.calibration.median_seconds / 3600
        estimated = _rounds(done, plan.devices.count) * typical
        forecast = estimated + rounds * typical
    return Pace(
        elapsed_hours=elapsed,
        remaining_hours=remaining,
        progress=cost / (cost + to_do) if cost + to_do else 1.0,
        evals_per_hour=count / elapsed if count and elapsed else None,
        eta=None if remaining is None else now + timedelta(hours=remaining),
        on_track=_is_on_track(state, now, forecast, elapsed, remaining),
        estimated_hours=estimated,
        accuracy=100 * estimated / elapsed if estimated and elapsed else None,
    )


def expected_seconds(state: RunState) -> float | None:
    """Seconds of a full evaluation: the recent median, else as calibrated; None without either."""
    recent = (*state.completed[-3:], *filter(None, (state.current,)))
    seconds = [
        end.seconds / batch.configurations[candidate].cost_factor
        for batch in recent
        for (candidate, _), attempts in islice(reversed(batch.attempts.items()), MOST_RECENT)
        if (end := attempts[-1].settled) is not None and end.final
    ]
    if seconds:
        return median(seconds)
    calibration = state.plan.calibration
    return None if calibration is None else calibration.median_seconds


def _is_on_track(
    state: RunState, now: datetime, forecast: float | None, elapsed: float, left: float | None
) -> bool | None:
    """Whether the forecast, the window and the cap on hours leave what is needed; None without any.

    That includes the last attempt's whole reservation, or a rule ends the run.
    """
    plan, accounts, slacks = state.plan, state.accounts, list[float]()
    if left is None:
        return None
    typical = 0.0 if plan.calibration is None else plan.calibration.median_seconds / 3600
    last = max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - typical) if left else 0.0
    if forecast is not None:
        slacks.append(max(100 * forecast / GOOD_ACCURACY[0], SHORTEST_HOURS) - elapsed - left)
    if accounts.deadline_ms is not None:
        left_ms = accounts.deadline_ms - max(1000 * now.timestamp(), accounts.now_ms)
        slacks.append(left_ms / MS_PER_HOUR - left - last)
    if plan.caps.hours is not None:
        slacks.append(plan.caps.hours - accounts.wall_ms / MS_PER_HOUR - left - last)
    return min(slacks) >= 0 if slacks else None
