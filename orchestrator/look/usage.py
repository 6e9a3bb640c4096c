"""What the slots of a run did, part by part of its time, and what they do now."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from budgets.accounts import MS_PER_HOUR
from budgets.events import Settled, Status
from budgets.pace import expected_seconds
from budgets.state import Moment, RunState, Try
from budgets.terms import PanelName
from orchestrator.look.rows import Slot, Usage
from orchestrator.records.attempts import attempt_place

if TYPE_CHECKING:
    from orchestrator.look.run import Run

LONG_RUN = "long run"
START_UP, COMPARISON = "start-up", "comparison"
PARTS = {"reference": COMPARISON, "finalists": COMPARISON, "winner": COMPARISON, "rung": LONG_RUN}
"""Of a run's time. A proxy's evaluations count for the generation that they are compared with."""


def begins(run: "Run") -> list[tuple[str, int]]:
    """The parts of a run's time and when each began.

    A generation has the time from the one before it to its last record; the last one, to the end.
    What precedes them is start-up, what follows the search is the comparison and the long run.
    """
    state, end_ms = run.state, run.edges_ms[-1]
    asked = [batch.asked_at for batch in state.batches() if batch.asked_at is not None]
    begin = min((run.at_ms(moment) for moment in asked), default=end_ms)
    begins = [(START_UP, 0)]
    for generation in state.generations:
        begins.append((f"generation {generation.number}", begin))
        if generation.told_at is not None:
            begin = run.at_ms(generation.told_at)
    firsts: tuple[tuple[str, PanelName], ...] = ((COMPARISON, "finalists"), (LONG_RUN, "rung"))
    for name, first in firsts:
        panel = state.panel(first)
        if panel is not None and panel.asked_at is not None:
            begins.append((name, run.at_ms(panel.asked_at)))
        elif any(PARTS.get(own) == name for own, _ in state.panels):
            begins.append((name, end_ms))  # no time of its own yet
    return begins


class _Part:
    """One part of a run's time."""

    def __init__(self, name: str, began_ms: int, ended_ms: int) -> None:
        self.name, self.began_ms, self.ended_ms = name, began_ms, ended_ms
        self.slot_ms = self.used_ms = self.useful_ms = self.wasted_ms = self.reserved_ms = 0.0


def usage(run: "Run") -> Iterator[Usage]:
    edges = [*begins(run), ("", run.edges_ms[-1])]
    parts = [_Part(name, began, end) for (name, began), (_, end) in pairwise(edges)]
    by_name = {part.name: part for part in parts}
    for session in run.sessions:
        for part, shared in _overlaps(parts, 1000 * session.began, 1000 * session.ended):
            part.slot_ms += shared * session.workers
    late_ms = {late.attempt_key: late.charged_ms for late in run.state.late}
    for batch in run.state.batches():
        own = by_name[PARTS.get(batch.panel or "", f"generation {batch.number}")]
        for tries in batch.tries.values():
            for attempt in tries:
                if (end := attempt.settled) is None:
                    own.reserved_ms += attempt.reserved.reserve_ms
                    continue
                charged_ms = end.charged_ms + late_ms.get(end.attempt_key, 0)
                if end.status is Status.OK:
                    own.useful_ms += charged_ms
                else:
                    own.wasted_ms += charged_ms
                _use(run, parts, attempt, end, charged_ms)
    left = [max(0.0, part.slot_ms - part.used_ms) for part in parts]
    share = run.idle_hours / sum(left) if sum(left) else 0.0  # as it fell
    planned = _planned_hours(run.state)
    for part, idle_ms in zip(parts, left, strict=True):
        yield Usage(
            part=part.name,
            planned=planned.get(part.name),
            useful=part.useful_ms / MS_PER_HOUR,
            wasted=part.wasted_ms / MS_PER_HOUR,
            idle=idle_ms * share,
            reserved=part.reserved_ms / MS_PER_HOUR,
        )


def _overlaps(
    parts: list[_Part], began_ms: float, ended_ms: float
) -> Iterator[tuple[_Part, float]]:
    """The parts that share time with that span, and how much of it."""
    first = max(0, bisect_right(parts, began_ms, key=lambda part: part.began_ms) - 1)
    for part in parts[first:]:
        if part.began_ms >= ended_ms:
            return
        shared = min(ended_ms, part.ended_ms) - max(began_ms, part.began_ms)
        if shared > 0:
            yield part, shared


def _use(run: "Run", parts: list[_Part], attempt: Try, end: Settled, charged_ms: int) -> None:
    """Share what an attempt was charged among the parts that it ran in."""
    began_ms = run.at_ms(Moment(attempt.session, attempt.reserved_ms))
    ended_ms = run.ended_ms(attempt, end, began_ms)
    found = list(_overlaps(parts, began_ms, ended_ms))
    if not found:
        at = bisect_right(parts, ended_ms, key=lambda part: part.began_ms) - 1
        found = [(parts[max(0, at)], 1.0)]
    whole = sum(shared for _, shared in found)
    for part, shared in found:
        part.used_ms += charged_ms * shared / whole


def _planned_hours(state: RunState) -> dict[str, float]:
    """By part, as calibrated. A proxy's own evaluations belong to their generation."""
    planned: dict[str, float] = defaultdict(float)
    calibration = state.plan.calibration
    if calibration is None:
        return {}
    for batch in state.batches():
        length = sum(batch.length(candidate) for candidate, _ in batch.evaluations())
        part = PARTS.get(batch.panel or "", f"generation {batch.number}")
        planned[part] += length * calibration.median_seconds / 3600
    return planned


class _Usual(NamedTuple):
    """What a full evaluation takes, as far as it is known."""

    seconds: float | None
    steps: float | None


def slots(run: "Run") -> tuple[Slot, ...]:
    state, goes_on = run.state, run.standing.goes_on
    workers = state.opened[-1].workers if goes_on and state.opened else 0
    usual, rows = _Usual(expected_seconds(state), _expected_steps(state)), dict[int, Slot]()
    for attempt in state.open_tries():
        slot = attempt.reserved.slot
        number = len(rows) if slot is None or slot in rows else slot
        rows[number] = _busy(run, attempt, number, usual)
    idle = [slot for slot in range(workers) if slot not in rows]
    for slot in idle[: max(0, workers - len(rows) - len(state.withdrawn))]:
        rows[slot] = Slot(slot=slot, device=_device(state), seconds=_idle_seconds(run, slot))
    return tuple(rows[slot] for slot in sorted(rows))


def _busy(run: "Run", attempt: Try, slot: int, usual: _Usual) -> Slot:
    state, reserved = run.state, attempt.reserved
    length = state.batch(reserved).length(reserved.candidate)
    seconds = None
    if run.standing.goes_on and attempt.session == len(state.opened) - 1:
        began_ms = state.wall_offset_ms + attempt.reserved_ms
        seconds = max(0.0, run.now.timestamp() - began_ms / 1000)
    return Slot(
        slot=slot,
        device=_device(state),
        doing="running",
        what=run.which(reserved),
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


def _idle_seconds(run: "Run", slot: int) -> float | None:
    """Since the last attempt in that slot ended, in this session; None where there was none."""
    state, session = run.state, len(run.state.opened) - 1
    ends = [
        attempt.settled_at.ms
        for batch in state.batches()
        for tries in batch.tries.values()
        for attempt in tries[-1:]
        if attempt.reserved.slot == slot
        and attempt.settled_at is not None
        and attempt.settled_at.session == session
    ]
    if not ends:
        return None
    return max(0.0, run.now.timestamp() - (state.wall_offset_ms + max(ends)) / 1000)


def _expected_steps(state: RunState) -> float | None:
    """Of a full evaluation, as the baseline's, or as those of late."""
    calibration = state.plan.calibration
    known = [s.steps for s in calibration.samples if s.steps] if calibration is not None else []
    if not known and (latest := state.latest) is not None:
        known = [end.steps for end in latest.results() if end.steps]
    return median(known) if known else None
