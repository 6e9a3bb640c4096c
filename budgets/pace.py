"""How a run keeps to its plan: hours expected, hours taken, when it will be over, on track or not.

Everything is as of the run's last record, by the clocks that its records carry. Evaluations to come
are counted in rounds, as the rules count them (see `budgets.schedule`).
"""

from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from math import ceil
from statistics import median

from budgets.accounts import MS_PER_HOUR
from budgets.plan import Frozen
from budgets.schedule import cost_of_the_verdict, search_is_over
from budgets.state import RunState

MOST_RECENT = 256
"""Evaluations of one batch that are looked at to tell how long one takes now."""

GOOD_ACCURACY = (85.0, 115.0)
"""Per cent: an estimate within these is good; beyond them the calibration is out of date."""


class Timing(Frozen):
    """What the plan said for what is done so far, and what that took."""

    estimated_hours: float  # wall clock of the evaluations done, with their barriers
    actual_hours: float  # that the run was open, without `startup_hours`
    startup_hours: float  # of its sessions, until each began its first evaluation
    accuracy: float  # estimated / actual * 100

    @property
    def is_good(self) -> bool:
        return GOOD_ACCURACY[0] <= self.accuracy <= GOOD_ACCURACY[1]

    @property
    def is_telling(self) -> bool:
        """Whether it took long enough for what lies beside evaluations not to decide it."""
        return max(self.estimated_hours, self.actual_hours) >= 1 / 60


class Pace(Frozen):
    """Where a run stands in time."""

    elapsed_hours: float  # that it was open
    remaining_hours: float | None  # None: no evaluation's time is known yet
    progress: float  # share of what is planned that is done, 0 to 1, in evaluations' lengths
    evals_per_hour: float | None  # since its evaluations began, all devices together
    eta: datetime | None  # when it will be over if it goes on like this
    on_track: bool | None  # within its forecast, its window and its cap on hours


def timing(state: RunState) -> Timing | None:
    """Estimated and actual hours of what is done; None without an estimate or a settled attempt."""
    calibration = state.plan.calibration
    open_ms, startup_ms = _own_ms(state)
    actual_hours = (open_ms - startup_ms) / MS_PER_HOUR
    if calibration is None or actual_hours <= 0 or not _done_cost(state):
        return None
    estimated_hours = _rounds_done(state) * calibration.median_seconds / 3600
    return Timing(
        estimated_hours=estimated_hours,
        actual_hours=actual_hours,
        startup_hours=startup_ms / MS_PER_HOUR,
        accuracy=100 * estimated_hours / actual_hours,
    )


def pace(state: RunState, now: datetime | None = None) -> Pace:
    """Where the run stands as of its last record; what is still to come begins `now`, or then."""
    now_ms = _now_ms(state) if now is None else max(_now_ms(state), 1000 * now.timestamp())
    open_ms, startup_ms = _own_ms(state)
    at_work_hours = (open_ms - startup_ms) / MS_PER_HOUR
    done, to_do, expected = _done_cost(state), _left_cost(state), expected_seconds(state)
    remaining = None if expected is None else _rounds_left(state) * expected / 3600
    count = sum(batch.settled for batch in state.batches())
    slacks = [] if remaining is None else list(_slacks(state, now_ms, remaining))
    return Pace(
        elapsed_hours=open_ms / MS_PER_HOUR,
        remaining_hours=remaining,
        progress=done / (done + to_do) if done + to_do else 1.0,
        evals_per_hour=count / at_work_hours if count and at_work_hours > 0 else None,
        eta=None if remaining is None else _moment(now_ms + remaining * MS_PER_HOUR),
        on_track=min(slacks) >= 0 if slacks else None,
    )


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


def _slacks(state: RunState, now_ms: float, remaining: float) -> Iterator[float]:
    """Hours that the forecast, the window and the cap on hours leave beyond what is needed.

    The last attempt of a generation must find its whole reservation free, and so must the last one
    of the comparison that follows the search, or a rule ends the run (see `budgets.rules`).
    """
    plan, accounts, (open_ms, startup_ms) = state.plan, state.accounts, _own_ms(state)
    typical = 0.0
    if plan.calibration is not None:
        typical = plan.calibration.median_seconds / 3600
        rounds = _rounds_done(state) + _rounds_left(state)
        planned = rounds * typical + startup_ms / MS_PER_HOUR
        yield 100 * planned / GOOD_ACCURACY[0] - open_ms / MS_PER_HOUR - remaining
    needed = remaining
    if remaining:
        whole = plan.limits.reserve_ms / MS_PER_HOUR
        is_compared = bool(cost_of_the_verdict(state)) and not search_is_over(state)
        needed += max(0.0, whole - typical) + whole * is_compared
    if accounts.calendar is not None:
        from_ms = max(now_ms, accounts.calendar.now_ms)
        yield (accounts.calendar.deadline_ms - from_ms) / MS_PER_HOUR - needed
    if accounts.caps.hours is not None:
        yield accounts.caps.hours - accounts.wall_ms / MS_PER_HOUR - needed


def _rounds_left(state: RunState) -> float:
    """Evaluations one after the other that the run still needs, on the devices of its session."""
    plan, current = state.plan, state.current
    workers = state.opened[-1].workers if state.opened else plan.devices.count
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


def _own_ms(state: RunState) -> tuple[int, int]:
    """How long the run's own sessions were open, and how much of it they took to start."""
    return sum(state.own_sessions_ms), sum(state.starts_ms.values())


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
