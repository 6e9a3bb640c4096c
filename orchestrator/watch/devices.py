"""What each device of a run does at the moment."""

from datetime import UTC, datetime
from statistics import median
from typing import NamedTuple

from budgets.state import RunState, Try
from orchestrator.records.attempts import attempt_place
from orchestrator.watch.noted import Noted
from orchestrator.watch.snapshot import DeviceRow
from orchestrator.watch.words import which


class Usual(NamedTuple):
    """What a full evaluation takes, as far as it is known."""

    seconds: float | None
    steps: float | None


def device_rows(
    state: RunState, noted: Noted, now: datetime, expected: float | None, *, goes_on: bool
) -> tuple[DeviceRow, ...]:
    """A row for each slot of the session, in the order of their numbers.

    `expected` are the seconds that a full evaluation takes.
    Of a run that nobody carries out: what was in flight when it ended.
    """
    rows, usual = {}, Usual(expected, expected_steps(state))
    for slot, attempt in _by_slot(state, noted).items():
        seconds = _seconds(state, attempt, now) if goes_on else None
        rows[slot] = _busy(state, attempt, slot, seconds, usual)
    workers = state.opened[-1].workers if goes_on and state.opened else 0
    idle = [slot for slot in range(workers) if slot not in rows]
    for slot in idle[: max(0, workers - len(rows) - len(state.withdrawn))]:
        rows[slot] = _idle(state, slot, noted, now)
    return tuple(rows[slot] for slot in sorted(rows))


def _by_slot(state: RunState, noted: Noted) -> dict[int, Try]:
    """Attempts in flight; of those on a device whose last one is not settled yet, that one."""
    if not state.opened:
        return {}
    flying = {noted.slot_of(attempt.reserved.key): attempt for attempt in state.open_tries()}
    workers = state.opened[-1].workers
    return {slot: attempt for slot, attempt in flying.items() if slot < workers}


def expected_steps(state: RunState) -> float | None:
    """How many a full evaluation takes, as the baseline's did, or those of late."""
    calibration = state.plan.calibration
    known = [s.steps for s in calibration.samples if s.steps] if calibration is not None else []
    if not known and (latest := state.latest) is not None:
        known = [r.steps for r in latest.results() if r.steps]
    return median(known) if known else None


def _busy(
    state: RunState, attempt: Try, slot: int, seconds: float | None, usual: Usual
) -> DeviceRow:
    reserved = attempt.reserved
    length = state.batch(reserved).length(reserved.candidate)
    return DeviceRow(
        slot=slot,
        device=_device(state),
        doing="running",
        what=which(state, reserved),
        place=attempt_place(reserved),
        attempt=reserved.attempt,
        seconds=seconds,
        expected_seconds=None if usual.seconds is None else usual.seconds * length,
        expected_steps=None if usual.steps is None else usual.steps * length,
        limit_seconds=reserved.reserve_ms / 1000,
    )


def _device(state: RunState) -> str:
    """What a slot is where nobody has said: one of many CPUs is like the others."""
    return "cpu" if state.plan.devices.kind == "cpu" else ""


def _seconds(state: RunState, attempt: Try, now: datetime) -> float | None:
    """Since it was reserved; None of an attempt of an earlier session."""
    if attempt.session < len(state.opened) - 1:
        return None
    hold = state.accounts.holds[attempt.reserved.key]
    began = datetime.fromtimestamp((state.wall_offset_ms + hold.since_ms) / 1000, UTC)
    return max(0.0, (now - began).total_seconds())


def _idle(state: RunState, slot: int, noted: Noted, now: datetime) -> DeviceRow:
    since = noted.idle_since.get(slot)
    seconds = None if since is None else max(0.0, (now - since).total_seconds())
    return DeviceRow(slot=slot, device=_device(state), doing="idle", seconds=seconds)
