"""What the slots of a run's sessions were doing: useful work, wasted work, nothing."""

from budgets.accounts import MS_PER_HOUR
from budgets.events import Status
from budgets.fold import paid_ms
from budgets.state import RunState


def slot_hours(state: RunState) -> float:
    """Device-hours that the sessions' slots were there for."""
    sessions = state.accounts.sessions_ms
    own = sessions[len(sessions) - len(state.opened) :]  # not of what led to the run
    slots = (ms * opened.workers for ms, opened in zip(own, state.opened, strict=True))
    return sum(slots) / MS_PER_HOUR


def idle_hours(state: RunState) -> float:
    """... of which nothing ran: start-up, waiting at the barrier, the orchestrator's own work."""
    before = paid_ms(state.planned.calibration) + paid_ms(state.planned.parent)
    used = (state.accounts.device_ms - before) / MS_PER_HOUR
    return max(0.0, slot_hours(state) - used)


def wasted_hours(state: RunState) -> float:
    """Device-hours of attempts that gave no score: lost, cancelled, failed."""
    ends = (
        attempt.settled
        for batch in state.batches()
        for tries in batch.tries.values()
        for attempt in tries
    )
    failed = sum(end.charged_ms for end in ends if end is not None and end.status is not Status.OK)
    return (failed + sum(late.charged_ms for late in state.late)) / MS_PER_HOUR
