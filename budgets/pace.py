"""How a run keeps to its plan: hours expected, hours taken, when it will be over, on track or not.

Everything is as of the run's last record, by the clocks that its records carry.
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from math import ceil
from statistics import median
from typing import Literal

from budgets.accounts import MS_PER_HOUR
from budgets.plan import Frozen
from budgets.schedule import cost_of_the_verdict, search_is_over
from budgets.state import RunState

MOST_RECENT = 256
"""Evaluations of one batch that are looked at to tell how long one takes now."""

GOOD_ACCURACY = (85.0, 115.0)
"""Per cent: an estimate within these is good; beyond them the calibration is out of date."""

Binding = Literal["forecast", "--window", "--max-hours"]
"""What leaves a run the least time: its plan's forecast, its window, its cap on hours."""


def good_on_devices(estimated: float, actual: float) -> bool:
    """Whether the evaluations themselves took the device-hours that were estimated."""
    return GOOD_ACCURACY[0] <= 100 * estimated / (actual or 1.0) <= GOOD_ACCURACY[1]


class Timing(Frozen):
    """What the plan said for what is done so far, and what that took."""

    estimated_hours: float  # wall clock of the evaluations done, with their barriers
    actual_hours: float  # that the run was open, without `startup_hours`
    startup_hours: float  # of its sessions, until each began its first evaluation
    estimated_device_hours: float
    actual_device_hours: float
    accuracy: float  # estimated / actual * 100, of wall clock

    @property
    def is_good(self) -> bool:
        return GOOD_ACCURACY[0] <= self.accuracy <= GOOD_ACCURACY[1]

    @property
    def is_telling(self) -> bool:
        """Whether it took long enough for what lies beside evaluations not to decide it."""
        return max(self.estimated_hours, self.actual_hours) >= 1 / 60

    @property
    def is_good_on_devices(self) -> bool:
        return good_on_devices(self.estimated_device_hours, self.actual_device_hours)

    def metrics(self) -> dict[str, float]:
        """By the names under which trackers know them."""
        return {
            "optimization/estimated_hours": self.estimated_hours,
            "optimization/actual_hours": self.actual_hours,
            "optimization/time_accuracy": self.accuracy,
        }


class Pace(Frozen):
    """Where a run stands in time."""

    elapsed_hours: float  # that it was open
    remaining_hours: float | None  # None: no evaluation's time is known yet
    progress: float  # share of what is planned that is done, 0 to 1, in evaluations' lengths
    evals_per_hour: float | None  # since its evaluations began, all devices together
    eta: datetime | None  # when it will be over if it goes on like this
    planned_hours: float | None  # by the plan: for what is done and for what is left
    on_track: bool | None
    binding: Binding | None  # what leaves the least time ...
    slack_hours: float | None  # ... and how much beyond what is still needed; negative: too little

    def metrics(self) -> dict[str, float]:
        """By the names under which trackers know them."""
        found = {
            "training/elapsed_hours": self.elapsed_hours,
            "training/remaining_hours": self.remaining_hours,
            "training/on_track": None if self.on_track is None else float(self.on_track),
        }
        return {name: value for name, value in found.items() if value is not None}


def timing(state: RunState) -> Timing | None:
    """Estimated and actual hours of what is done; None without an estimate or a settled attempt."""
    calibration = state.plan.calibration
    actual_ms, startup_ms = _own_ms(state)
    actual_hours = (actual_ms - startup_ms) / MS_PER_HOUR
    if calibration is None or actual_hours <= 0 or not _done_cost(state):
        return None
    plan_seconds = calibration.median_seconds
    estimated_hours = _rounds_done(state) * plan_seconds / 3600
    return Timing(
        estimated_hours=estimated_hours,
        actual_hours=actual_hours,
        startup_hours=startup_ms / MS_PER_HOUR,
        estimated_device_hours=_done_cost(state) * plan_seconds / 3600,
        actual_device_hours=(state.accounts.device_ms - state.planned.paid_before_ms) / MS_PER_HOUR,
        accuracy=100 * estimated_hours / actual_hours,
    )


def pace(state: RunState, now: datetime | None = None) -> Pace:
    """Where the run stands as of its last record; what is still to come begins `now`, or then."""
    now_ms = _now_ms(state) if now is None else max(_now_ms(state), 1000 * now.timestamp())
    own_ms, startup_ms = _own_ms(state)
    elapsed, remaining = own_ms / MS_PER_HOUR, remaining_hours(state)
    at_work_hours = (own_ms - startup_ms) / MS_PER_HOUR
    done, to_do = _done_cost(state), _left_cost(state)
    count = sum(batch.settled for batch in state.batches())
    planned = _planned_hours(state)
    slacks = dict(_slacks(state, now_ms, elapsed, remaining, planned))
    binding = min(slacks, key=lambda name: slacks[name], default=None)
    slack = None if binding is None else slacks[binding]
    return Pace(
        elapsed_hours=elapsed,
        remaining_hours=remaining,
        progress=done / (done + to_do) if done + to_do else 1.0,
        evals_per_hour=count / at_work_hours if count and at_work_hours > 0 else None,
        eta=None if remaining is None else _moment(now_ms + remaining * MS_PER_HOUR),
        planned_hours=planned,
        on_track=None if slack is None else slack >= 0,
        binding=binding,
        slack_hours=slack,
    )


def remaining_hours(state: RunState) -> float | None:
    """Wall clock that the evaluations still owed will take, from the median seen of late.

    Generations to come count as full.
    """
    expected = expected_seconds(state)
    return None if expected is None else _rounds_left(state) * expected / 3600


def expected_seconds(state: RunState) -> float | None:
    """Of a full evaluation: the median seen of late, else as calibrated; None: nothing says."""
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


def hours_aside(state: RunState) -> float:
    """What must be free beyond the time that is needed, or a rule ends the run: whole limits.

    The last attempt of a generation must find its whole reservation free, and so must the last one
    of the comparison that follows the search (see `budgets.rules`).
    """
    plan, calibration = state.plan, state.plan.calibration
    whole = plan.limits.reserve_ms / MS_PER_HOUR
    typical = 0.0 if calibration is None else calibration.median_seconds / 3600
    last = max(0.0, whole - typical)
    is_compared = bool(cost_of_the_verdict(state)) and not search_is_over(state)
    return last + whole if is_compared else last


def _slacks(
    state: RunState,
    now_ms: float,
    elapsed: float,
    remaining: float | None,
    planned: float | None,
) -> Iterator[tuple[Binding, float]]:
    """What each limit leaves beyond what is still needed, in hours."""
    if remaining is None:
        return
    if planned is not None:
        yield "forecast", 100 * planned / GOOD_ACCURACY[0] - elapsed - remaining
    needed = remaining + (hours_aside(state) if remaining else 0.0)
    accounts = state.accounts
    if accounts.calendar is not None:
        from_ms = max(now_ms, accounts.calendar.now_ms)
        yield "--window", (accounts.calendar.deadline_ms - from_ms) / MS_PER_HOUR - needed
    if accounts.caps.hours is not None:
        yield "--max-hours", accounts.caps.hours - accounts.wall_ms / MS_PER_HOUR - needed


def _planned_hours(state: RunState) -> float | None:
    """By the plan's own time of an evaluation: what is done, what is left, and the start-up."""
    calibration = state.plan.calibration
    if calibration is None:
        return None
    rounds = _rounds_done(state) + _rounds_left(state)
    startup_hours = _own_ms(state)[1] / MS_PER_HOUR
    return rounds * calibration.median_seconds / 3600 + startup_hours


def _rounds_left(state: RunState) -> float:
    """Evaluations one after the other that the run still needs, on the devices of its session."""
    plan, workers, current = state.plan, _workers(state), state.current
    generations = 0 if search_is_over(state) else plan.resolved.generations - state.begun
    later = generations * ceil(plan.resolved.per_generation / workers)
    now = 0.0
    if current is not None:
        now = _in_a_row(current.unfinished, current.cost - current.done_cost, workers)
    return now + later + cost_of_the_verdict(state) / workers


def _rounds_done(state: RunState) -> float:
    """Evaluations one after the other that what is done should have taken on the plan's devices.

    A generation waits for its last evaluation; what is compared beside it fills slots that it
    leaves idle.
    """
    workers, rounds, idle = state.plan.devices.count, 0.0, 0.0
    for generation in state.generations:
        in_a_row = _in_a_row(generation.settled, generation.done_cost, workers)
        rounds += in_a_row
        idle += workers * in_a_row - generation.done_cost
    for name, batch in state.comparisons.items():
        filling = min(idle, batch.done_cost) if name in ("reference", "proxy") else 0.0
        idle -= filling
        rounds += (batch.done_cost - filling) / workers
    return rounds


def _in_a_row(count: int, cost: float, workers: int) -> float:
    """So many evaluations of that cost together, as evaluations of the search one after another."""
    return ceil(count / workers) * cost / count if count else 0.0


def _done_cost(state: RunState) -> float:
    return sum(batch.done_cost for batch in state.batches())


def _left_cost(state: RunState) -> float:
    plan, current = state.plan, state.current
    now = 0.0 if current is None else current.cost - current.done_cost
    generations = 0 if search_is_over(state) else plan.resolved.generations - state.begun
    return now + generations * plan.resolved.per_generation + cost_of_the_verdict(state)


def _workers(state: RunState) -> int:
    return state.opened[-1].workers if state.opened else state.plan.devices.count


def _own_ms(state: RunState) -> tuple[int, int]:
    """How long the run's own sessions were open, and how much of it they took to start."""
    return sum(state.own_sessions_ms), sum(state.starts_ms.values())


def slot_hours(state: RunState) -> float:
    """Device-hours that the sessions' slots were there for."""
    sessions = zip(state.own_sessions_ms, state.opened, strict=True)
    return sum(ms * opened.workers for ms, opened in sessions) / MS_PER_HOUR


def idle_hours(state: RunState) -> float:
    """... of which nothing ran: start-up, waiting for the last of a generation."""
    used_ms = state.accounts.device_ms - state.planned.paid_before_ms
    return max(0.0, slot_hours(state) - used_ms / MS_PER_HOUR)


def last_seen(state: RunState) -> datetime:
    """The moment of the last record, by the wall's clock."""
    return _moment(_now_ms(state))


def _now_ms(state: RunState) -> float:
    """By the wall's clock, at the last record."""
    if not state.opened:
        return state.began_ms
    return state.wall_offset_ms + state.accounts.sessions_ms[-1]


def _moment(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
