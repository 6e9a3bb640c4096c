"""How a run keeps to its plan: hours estimated and taken, when it will be over, on track or not.

Everything is as of the run's last record, by the clocks that its records carry. Evaluations to come
are counted in rounds of all devices, as the rules count them (see `budgets.schedule`).
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
"""Evaluations of one batch that tell how long one takes now."""

GOOD_ACCURACY = (85.0, 115.0)
"""Percent: beyond these the calibration is out of date."""


class Timing(Frozen):
    """The plan's estimate for what is done so far, and what it took."""

    estimated_hours: float  # wall clock of the evaluations done, with their barriers
    actual_hours: float  # that the run was open, without `startup_hours`
    startup_hours: float  # of its sessions, until each began its first evaluation
    accuracy: float  # estimated / actual * 100

    @property
    def is_good(self) -> bool:
        return GOOD_ACCURACY[0] <= self.accuracy <= GOOD_ACCURACY[1]

    @property
    def is_telling(self) -> bool:
        """Whether it took a minute or more, so that evaluations decide the accuracy."""
        return max(self.estimated_hours, self.actual_hours) >= 1 / 60


class Pace(Frozen):
    """Where a run stands in time."""

    elapsed_hours: float  # that it was open
    remaining_hours: float | None  # None: no evaluation's time is known yet
    progress: float  # share of the planned evaluations that is done, weighted by their cost
    evals_per_hour: float | None  # since its evaluations began, all devices together
    eta: datetime | None
    on_track: bool | None  # within its forecast, its window and its cap on hours


def timing(state: RunState) -> Timing | None:
    """Estimated and actual hours of what is done; None without a calibration or a result."""
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
    """Where the run stands; what is still to come begins `now`, or at its last record."""
    now_ms = max(state.seen_ms, 1000 * now.timestamp() if now else 0.0)
    open_ms, startup_ms = _own_ms(state)
    working_hours = (open_ms - startup_ms) / MS_PER_HOUR
    done, to_do, seconds = _done_cost(state), _cost_left(state), expected_seconds(state)
    remaining = None if seconds is None else _rounds_left(state) * seconds / 3600
    count = sum(batch.settled for batch in state.batches())
    slacks = [] if remaining is None else list(_slacks(state, now_ms, remaining))
    return Pace(
        elapsed_hours=open_ms / MS_PER_HOUR,
        remaining_hours=remaining,
        progress=done / (done + to_do) if done + to_do else 1.0,
        evals_per_hour=count / working_hours if count and working_hours > 0 else None,
        eta=None if remaining is None else _moment(now_ms + remaining * MS_PER_HOUR),
        on_track=min(slacks) >= 0 if slacks else None,
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


def _slacks(state: RunState, now_ms: float, remaining: float) -> Iterator[float]:
    """Hours that the forecast, the window and the cap on hours leave beyond what is needed.

    The last attempt needs its whole reservation free, or a rule ends the run.
    """
    plan, accounts, (open_ms, startup_ms) = state.plan, state.accounts, _own_ms(state)
    typical, needed = 0.0, remaining
    if plan.calibration is not None:
        typical = plan.calibration.median_seconds / 3600
        rounds = _rounds_done(state) + _rounds_left(state)
        planned = rounds * typical + startup_ms / MS_PER_HOUR
        yield 100 * planned / GOOD_ACCURACY[0] - open_ms / MS_PER_HOUR - remaining
    if remaining:
        needed += max(0.0, plan.limits.reserve_ms / MS_PER_HOUR - typical)
    if accounts.deadline_ms is not None:
        from_ms = max(now_ms, accounts.now_ms)
        yield (accounts.deadline_ms - from_ms) / MS_PER_HOUR - needed
    if accounts.caps.hours is not None:
        yield accounts.caps.hours - accounts.wall_ms / MS_PER_HOUR - needed


def _rounds_left(state: RunState) -> float:
    """Evaluations one after another that the run still needs, on its session's workers."""
    plan, current = state.plan, state.current
    workers = state.opened[-1].workers if state.opened else plan.devices.count
    rounds: float = _generations_left(state) * ceil(plan.resolved.per_generation / workers)
    if current is not None:
        rounds += _rounds(current.unfinished, current.cost - current.done_cost, workers)
    return rounds + cost_of_the_verdict(state) / workers


def _rounds_done(state: RunState) -> float:
    """Evaluations one after another that what is done should have taken on the plan's devices.

    A generation waits for its last evaluation; the reference fills the slots that it leaves idle.
    """
    workers, comparisons = state.plan.devices.count, state.comparisons.items()
    rounds = sum(_rounds(g.settled, g.done_cost, workers) for g in state.generations)
    beside = sum(b.done_cost for name, b in comparisons if name in ("reference", "proxy"))
    after = sum(b.done_cost for name, b in comparisons if name not in ("reference", "proxy"))
    searched = sum(generation.done_cost for generation in state.generations)
    return max(rounds, (searched + beside) / workers) + after / workers


def _rounds(count: int, cost: float, workers: int) -> float:
    """The rounds of so many evaluations, in evaluations of the search; `cost` is of all."""
    return ceil(count / workers) * cost / count if count else 0.0


def _done_cost(state: RunState) -> float:
    return sum(batch.done_cost for batch in state.batches())


def _cost_left(state: RunState) -> float:
    current = state.current
    now = 0.0 if current is None else current.cost - current.done_cost
    later = _generations_left(state) * state.plan.resolved.per_generation
    return now + later + cost_of_the_verdict(state)


def _generations_left(state: RunState) -> int:
    """Generations that are not asked yet."""
    return 0 if search_is_over(state) else state.plan.resolved.generations - state.begun


def _own_ms(state: RunState) -> tuple[int, int]:
    """How long the run's own sessions were open, and how much of it they took to start."""
    return sum(state.own_sessions_ms), sum(state.starts_ms.values())


def last_seen(state: RunState) -> datetime:
    """The moment of the last record, by the wall's clock."""
    return _moment(state.seen_ms)


def _moment(ms: float) -> datetime:
    return datetime.fromtimestamp(ms / 1000, UTC)
