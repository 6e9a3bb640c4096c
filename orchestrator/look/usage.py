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

    Each has the time until the next one begins. What is compared before the finalists are fills
    slots that the search leaves idle.
    """
    names = {"finalists": "comparison", "rung": "long run"}
    found = {"start-up": 0}
    for batch in run.state.batches():
        if batch.comparison is None:
            found[f"generation {batch.number}"] = run.at_ms(batch.asked_at)
        elif (name := names.get(batch.comparison)) is not None:
            found[name] = run.at_ms(batch.asked_at)
    return found


def usage(run: "Run") -> Iterator[Usage]:
    """Of each part what its evaluations took: those that began in it.

    Slots are idle while they are there, less that; what it takes beyond is of the next part.
    """
    parts = _parts(run)
    names, begins = list(parts), [*parts.values(), run.edges_ms[-1]]
    took = defaultdict[tuple[str, str], float](float)
    for batch in run.state.batches():
        for attempt in (one for tries in batch.attempts.values() for one in tries):
            began_ms = run.at_ms(Moment(attempt.session, attempt.reserved_ms))
            part = names[bisect_right(begins, began_ms, hi=len(names)) - 1]
            if attempt.reserved.attempt == 1:
                factor = batch.configurations[attempt.reserved.candidate].cost_factor
                took[part, "planned"] += 1000 * factor * (run.eval_seconds or 0.0)
            if (end := attempt.settled) is not None:
                took[part, "useful" if end.status is Status.OK else "wasted"] += end.charged_ms
    spilled = 0.0
    for part, (began, ended) in zip(names, pairwise(begins), strict=True):
        there = sum(
            one.workers * max(0.0, min(end, ended) - max(start, began))
            for one, (start, end) in zip(run.state.opened, pairwise(run.edges_ms), strict=True)
        )
        left = there - took[part, "useful"] - took[part, "wasted"] - spilled
        spilled = max(0.0, -left)
        yield Usage(
            part=part,
            planned=took[part, "planned"] / MS_PER_HOUR or None,
            useful=took[part, "useful"] / MS_PER_HOUR,
            wasted=took[part, "wasted"] / MS_PER_HOUR,
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
            limit_seconds=one.limit_seconds,
            **said,
        )
    workers = state.opened[-1].workers if goes_on and state.opened else 0
    for slot in set(range(workers)) - rows.keys():
        rows[slot] = Slot(slot=slot, device=device)
    return (rows[slot] for slot in sorted(rows))
