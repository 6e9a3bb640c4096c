"""What the slots of a run's sessions were doing: useful work, wasted work, nothing."""

from budgets.accounts import MS_PER_HOUR
from budgets.events import Status
from budgets.state import RunState


def slot_hours(state: RunState) -> float:
    """Device-hours that the sessions' slots were there for."""
    sessions = zip(state.own_sessions_ms, state.opened, strict=True)
    return sum(ms * opened.workers for ms, opened in sessions) / MS_PER_HOUR


def idle_hours(state: RunState) -> float:
    """... of which nothing ran: start-up, waiting at the barrier, the orchestrator's own work."""
    used = (state.accounts.device_ms - state.planned.paid_before_ms) / MS_PER_HOUR
    return max(0.0, slot_hours(state) - used)


def wasted_hours(state: RunState) -> float:
    """Device-hours of attempts that gave no score: lost, cancelled, failed."""
    failed = sum(end.charged_ms for end in state.ends() if end.status is not Status.OK)
    return (failed + sum(late.charged_ms for late in state.late)) / MS_PER_HOUR
