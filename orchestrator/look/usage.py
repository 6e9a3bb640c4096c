"""What the slots of a run did, part by part of its time, and what they do now."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator
from itertools import count, pairwise
from statistics import median
from typing import TYPE_CHECKING, Any

from budgets.accounts import MS_PER_HOUR
from budgets.events import Status
from budgets.pace import expected_seconds
from budgets.state import Moment
from orchestrator.look.files import heartbeat
from orchestrator.look.rows import Slot, Usage

if TYPE_CHECKING:
    from orchestrator.look.run import Run


def _parts(run: "Run") -> dict[str, int]:
    """The parts of a run's time and when each began, in milliseconds on its clock.

    Each has the time until the next one begins. The comparison begins with the finalists: what is
    measured for it before fills slots that the search leaves idle.
    """
    found = {"start-up": 0}
    for batch in run.state.batches():
        part = _part(batch.comparison, batch.number)
        if batch.comparison in (None, "finalists", "rung"):
            found[part] = run.at_ms(batch.asked_at)
        else:
            found.setdefault(part, run.edges_ms[-1])
    return found


def _part(panel: str | None, number: int) -> str:
    """Which one an evaluation counts for; a proxy's, for the generation it is compared with."""
    if panel in (None, "proxy"):
        return f"generation {number}"
    return "long run" if panel == "rung" else "comparison"


def usage(run: "Run") -> Iterator[Usage]:
    """Slots are idle while they are there, less what attempts take that began in the part.

    What these take beyond it is of the next one.
    """
    parts = _parts(run)
    names, begins = list(parts), [*parts.values(), run.edges_ms[-1]]
    used, charged = defaultdict[str, float](float), defaultdict[tuple[str, str], float](float)
    for batch in run.state.batches():
        part = _part(batch.comparison, batch.number)
        factors = (batch.configurations[place].cost_factor for place, _ in batch.evaluations())
        charged[part, "planned"] += 1000 * sum(factors) * (run.expected_seconds or 0.0)
        for attempt in (one for tries in batch.attempts.values() for one in tries):
            if (end := attempt.settled) is None:
                continue
            charged[part, "useful" if end.status is Status.OK else "wasted"] += end.charged_ms
            began_ms = run.at_ms(Moment(attempt.session, attempt.reserved_ms))
            used[names[bisect_right(begins, began_ms, hi=len(names)) - 1]] += end.charged_ms
    spilled = 0.0
    for part, (began, ended) in zip(names, pairwise(begins), strict=True):
        there = sum(
            one.workers * max(0.0, min(1000 * one.ended, ended) - max(1000 * one.began, began))
            for one in run.sessions
        )
        left = there - used[part] - spilled
        spilled = max(0.0, -left)
        yield Usage(
            part=part,
            planned=charged[part, "planned"] / MS_PER_HOUR or None,
            useful=charged[part, "useful"] / MS_PER_HOUR,
            wasted=charged[part, "wasted"] / MS_PER_HOUR,
            idle=max(0.0, left) / MS_PER_HOUR,
        )


def slots(run: "Run") -> Iterator[Slot]:
    """One a slot, in order; of an attempt that is in flight with what it says of itself."""
    state, goes_on, session = run.state, run.standing.goes_on, len(run.state.opened) - 1
    now = run.edges_ms[-1] / 1000 + (run.now - run.last).total_seconds()
    device = "cpu" if state.plan.devices.kind == "cpu" else ""  # one of many is like the others
    rows, expected, calibration = dict[int, Slot](), expected_seconds(state), run.plan.calibration
    steps = [one.steps for one in calibration.samples if one.steps] if calibration else []
    for attempt in state.running_attempts():
        batch = state.batch(attempt.reserved)
        one = run.attempt(batch, attempt)
        length = batch.configurations[one.candidate].cost_factor
        said: dict[str, Any] = {"device": device, "doing": "running"}
        if run.directory is not None and goes_on:
            said |= heartbeat(run.directory, one.place)
            if steps and said.get("step") is not None and said.get("progress") is None:
                said["progress"] = min(1.0, max(0.0, said["step"] / (median(steps) * length)))
        free = next(slot for slot in count() if slot not in rows)
        number = free if one.slot is None or one.slot in rows else one.slot
        rows[number] = Slot(
            slot=number,
            what=one.what,
            place=one.place,
            attempt=one.attempt,
            seconds=max(0.0, now - one.began) if goes_on and one.session == session else None,
            expected_seconds=None if expected is None else expected * length,
            limit_seconds=one.reserved_seconds,
            **said,
        )
    ends = {one.slot: one.ended for one in run.ended if one.session == session}
    workers = state.opened[-1].workers if goes_on and state.opened else 0
    for slot in set(range(workers)) - rows.keys():
        seconds = None if (ended := ends.get(slot)) is None else max(0.0, now - ended)
        rows[slot] = Slot(slot=slot, device=device, seconds=seconds)
    return (rows[slot] for slot in sorted(rows))
