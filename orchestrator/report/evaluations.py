"""A run's attempts: those that are over, with when and where each ran, and those in flight."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from budgets.causes import cause_of
from budgets.events import AttemptKey, Settled
from budgets.state import Batch, Generation, RunState, Try
from objectives.space import SearchSpace
from orchestrator.records.attempts import attempt_place
from orchestrator.records.export import arm_of
from orchestrator.records.planned import knobs_of, space_of
from orchestrator.report.model import Evaluation, InFlight
from orchestrator.report.times import Noted, RunClock

UNKNOWN = "unknown device"


@dataclass(frozen=True)
class Ended:
    """An attempt that is over, with what a settlement does not say itself."""

    batch: Batch
    attempt: Try
    end: Settled
    began_ms: int  # on the run's clock, as is the next
    ended_ms: int
    device: str = ""

    @property
    def place(self) -> AttemptKey:
        return self.end.attempt_key


def ended(state: RunState, noted: Noted, clock: RunClock) -> list[Ended]:
    """Every attempt that is over, in the order in which they ended, each with its own device."""
    found = [one for batch in state.batches() for one in _of_batch(batch, noted, clock)]
    settled = {place: at for at, place in enumerate(noted.settled)}
    found.sort(key=lambda one: (one.ended_ms, settled[one.place]))
    return _on_devices(found)


def _of_batch(batch: Batch, noted: Noted, clock: RunClock) -> Iterator[Ended]:
    for tries in batch.tries.values():
        for attempt in tries:
            if (end := attempt.settled) is not None:
                yield Ended(batch, attempt, end, *_times(attempt, end, noted, clock))


def _times(attempt: Try, end: Settled, noted: Noted, clock: RunClock) -> tuple[int, int]:
    """When it began and ended: by its own time, since it may be heard of later than that.

    That is so by milliseconds while somebody waits for it; one that is taken up by a later session
    ended in the session that began it.
    """
    began, settled = noted.reserved[end.attempt_key], noted.settled[end.attempt_key]
    began_ms, limit_ms = clock.at(began), clock.ended(attempt.session)
    if settled.session == began.session:
        limit_ms = clock.at(settled)
    return began_ms, max(began_ms, min(began_ms + round(1000 * end.seconds), limit_ms))


def _on_devices(found: list[Ended]) -> list[Ended]:
    """Each with a device that nothing else was on at the time.

    Settlements on a CPU all name the same device: there each gets the first slot that was free.
    """
    slots = _slots(found)
    several = {device for device, slot in slots.values() if slot > 0}
    return [
        replace(one, device=_numbered(device, slot + 1) if device in several else device)
        for one in found
        for device, slot in (slots[one.place],)
    ]


def _numbered(device: str, number: int) -> str:
    """`cpu 2 on node-1`."""
    kind, on, host = device.partition(" on ")
    return f"{kind} {number}{on}{host}" if kind == "cpu" else f"{device}, slot {number}"


def _slots(found: list[Ended]) -> dict[AttemptKey, tuple[str, int]]:
    """Device and slot of each attempt, in the order in which they began."""
    known = {one.end.device for one in found if one.end.device}
    silent = next(iter(known)) if len(known) == 1 else UNKNOWN  # where a lost one says nothing
    free_ms: dict[str, list[int]] = {}
    slots: dict[AttemptKey, tuple[str, int]] = {}
    for one in sorted(found, key=lambda one: (one.began_ms, one.ended_ms, one.place[1:])):
        device = one.end.device or silent
        ends = free_ms.setdefault(device, [])
        slot = next((at for at, end in enumerate(ends) if end <= one.began_ms), len(ends))
        ends[slot : slot + 1] = [one.ended_ms]
        slots[one.place] = device, slot
    return slots


def evaluations(state: RunState, found: list[Ended]) -> tuple[Evaluation, ...]:
    """Everything there is to say of each attempt that is over."""
    space = space_of(state.plan)
    return tuple(_evaluation(one, space) for one in found)


def _evaluation(one: Ended, space: SearchSpace) -> Evaluation:
    end, batch = one.end, one.batch
    cause = cause_of(end.status, end.cause)
    return Evaluation(
        panel=end.panel,
        generation=end.generation,
        candidate=end.candidate,
        arm=arm_of(batch, end.candidate),
        seed=end.seed,
        attempt=end.attempt,
        is_final=end.final,
        is_short=is_short(batch),
        status=end.status,
        score=end.score,
        point=batch.points[end.candidate],
        knobs=knobs_of(batch, end.candidate, space),
        session=one.attempt.session,
        device=one.device,
        began=one.began_ms / 1000,
        ended=one.ended_ms / 1000,
        seconds=end.seconds,
        startup_seconds=end.startup_seconds,
        train_seconds=end.train_seconds,
        charged_seconds=end.charged_ms / 1000,
        peak_memory_bytes=end.peak_memory_bytes,
        steps=end.steps,
        tokens=end.tokens,
        train_flops=end.train_flops,
        eval_flops=end.eval_flops,
        cause=end.cause,
        whose="" if cause is None else cause.whose,
        recovered=end.recovered,
        place=f"eval/{attempt_place(end)}",
        metrics=end.metrics,
    )


def in_flight(state: RunState, noted: Noted, clock: RunClock) -> tuple[InFlight, ...]:
    """What is reserved and not settled, in the order in which it began."""
    found = [_flying(state, attempt, noted, clock) for attempt in state.open_tries()]
    return tuple(sorted(found, key=lambda one: one.began))


def _flying(state: RunState, attempt: Try, noted: Noted, clock: RunClock) -> InFlight:
    reserved = attempt.reserved
    return InFlight(
        panel=reserved.panel,
        generation=reserved.generation,
        candidate=reserved.candidate,
        arm=arm_of(state.batch(reserved), reserved.candidate),
        seed=reserved.seed,
        attempt=reserved.attempt,
        began=clock.at(noted.reserved[reserved.attempt_key]) / 1000,
        reserved_seconds=reserved.reserve_ms / 1000,
    )


def is_short(batch: Batch) -> bool:
    """Whether a proxy evaluates it."""
    if isinstance(batch, Generation):
        return not batch.is_full
    return batch.panel == "proxy"
