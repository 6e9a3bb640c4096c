"""What each device of a run does at the moment."""

from collections.abc import Mapping
from datetime import UTC, datetime
from statistics import median

from budgets.accounts import Key
from budgets.pace import expected_seconds
from budgets.state import RunState, Try
from orchestrator.settle import attempt_place
from orchestrator.watch.noted import Noted, key_of
from orchestrator.watch.signs import Sign
from orchestrator.watch.snapshot import DeviceRow
from orchestrator.watch.words import which

OVERDUE_TIMES = 1.5
"""An evaluation that takes so many times what is expected is pointed at ..."""

OVERDUE_SECONDS = 2.0
"""... if it is so much longer at least."""


def device_rows(
    state: RunState, noted: Noted, now: datetime, signs: Mapping[Key, Sign], *, goes_on: bool
) -> tuple[DeviceRow, ...]:
    """A row for each slot of the session, in the order of their numbers.

    Of a run that nobody carries out: what was in flight when it ended.
    """
    expected, steps = expected_seconds(state), expected_steps(state)
    rows = {}
    for attempt in state.open_tries():
        key = key_of(attempt.reserved)
        length = state.batch(attempt.reserved).length(attempt.reserved.candidate)
        rows[noted.slot_of(key)] = _busy(
            state,
            attempt,
            slot=noted.slot_of(key),
            seconds=_seconds(state, key, now) if goes_on else None,
            sign=signs.get(key),
            expected=None if expected is None else expected * length,
            steps=None if steps is None else steps * length,
        )
    withdrawn = len(state.withdrawn)  # of any session: those of earlier ones may be back
    for slot in range(state.opened[-1].workers if goes_on and state.opened else 0):
        if slot not in rows and len(rows) + withdrawn < state.opened[-1].workers:
            rows[slot] = _idle(slot, noted, now)
    return tuple(rows[slot] for slot in sorted(rows))


def expected_steps(state: RunState) -> float | None:
    """How many a full evaluation takes, as the baseline's did, or those of late."""
    calibration = state.plan.calibration
    known = [s.steps for s in calibration.samples if s.steps] if calibration is not None else []
    if not known and (latest := state.latest) is not None:
        known = [r.steps for r in latest.results() if r.steps]
    return median(known) if known else None


def _seconds(state: RunState, key: Key, now: datetime) -> float | None:
    """Since it was reserved; None of an attempt of an earlier session."""
    hold = state.accounts.holds[key]
    if hold.session < len(state.accounts.sessions_ms) - 1:
        return None
    began = datetime.fromtimestamp((state.wall_offset_ms + hold.since_ms) / 1000, UTC)
    return max(0.0, (now - began).total_seconds())


def _busy(  # noqa: PLR0913 - what is known of it, from where
    state: RunState,
    attempt: Try,
    *,
    slot: int,
    seconds: float | None,
    sign: Sign | None,
    expected: float | None,
    steps: float | None,
) -> DeviceRow:
    reserved = attempt.reserved
    said = sign or Sign()
    return DeviceRow(
        slot=slot,
        device=said.device,
        doing="starting" if sign is not None and not sign.has_begun else "running",
        what=which(state, reserved),
        place=attempt_place(reserved),
        attempt=reserved.attempt,
        seconds=seconds,
        expected_seconds=expected,
        limit_seconds=reserved.reserve_ms / 1000,
        is_overdue=_is_overdue(seconds, expected),
        step=said.step,
        loss=said.loss,
        progress=_progress(said, steps),
    )


def _is_overdue(seconds: float | None, expected: float | None) -> bool:
    if seconds is None or expected is None:
        return False
    return seconds > max(OVERDUE_TIMES * expected, expected + OVERDUE_SECONDS)


def _progress(said: Sign, steps: float | None) -> float | None:
    if said.progress is None and said.step is not None and steps:
        return min(1.0, max(0.0, said.step / steps))
    return said.progress


def _idle(slot: int, noted: Noted, now: datetime) -> DeviceRow:
    since = noted.idle_since.get(slot)
    return DeviceRow(
        slot=slot,
        device="",
        doing="idle",
        what="",
        place="",
        attempt=0,
        seconds=None if since is None else max(0.0, (now - since).total_seconds()),
        expected_seconds=None,
        limit_seconds=None,
        is_overdue=False,
        step=None,
        loss=None,
        progress=None,
    )
