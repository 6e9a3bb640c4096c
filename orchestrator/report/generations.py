"""A search's generations, and what the slots did in the time of each and beside them."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import fmean, stdev

from budgets.accounts import MS_PER_HOUR
from budgets.calibration import luck
from budgets.events import AttemptKey, Status
from budgets.report.usage import idle_hours
from budgets.state import Generation, RunState
from orchestrator.report.evaluations import Ended, is_short
from orchestrator.report.model import Beside, GenerationView
from orchestrator.report.times import Noted, RunClock

START_UP, COMPARISON, RUNG = "start-up", "comparison", "rung"


_BESIDE = {"reference": COMPARISON, "finalists": COMPARISON, "winner": COMPARISON, "rung": RUNG}
"""What a panel's evaluations belong to; a proxy's belong to the generation it is tried on."""


@dataclass
class Span:
    """A part of the run's time. They follow one another from its beginning to its end.

    What its evaluations were charged may have been in the time of another one: the baseline is
    compared in slots that generations leave idle.
    """

    what: str | int  # a generation's number
    began_ms: int
    ended_ms: int
    slot_ms: float = 0.0
    used_ms: float = 0.0  # of these, by whatever ran then
    useful_ms: float = 0.0
    wasted_ms: float = 0.0
    idle_ms: float = 0.0


def spans(state: RunState, noted: Noted, clock: RunClock, found: Sequence[Ended]) -> list[Span]:
    """All of the run's time, with what its slots did."""
    own = _cut(state, noted, clock)
    for session, opened in enumerate(state.opened):
        _add_slots(own, clock.edges_ms[session], clock.edges_ms[session + 1], opened.workers)
    late_ms = {late.attempt_key: late.charged_ms for late in state.late}
    by_name = {span.what: span for span in own}
    for one in found:
        charged_ms = one.end.charged_ms + late_ms.get(one.place, 0)
        _use(own, one, charged_ms)
        _charge(by_name[_belongs_to(one.place)], one, charged_ms)
    _leave_idle(own, idle_hours(state) * MS_PER_HOUR)
    return own


def _cut(state: RunState, noted: Noted, clock: RunClock) -> list[Span]:
    """A generation has the time from the one before it to its last record; the last, to the end.

    What precedes them is start-up, what follows the search is the comparison and the rung.
    """
    asked = {what: clock.at(moment) for what, moment in noted.asked.items()}
    begins: list[tuple[str | int, int]] = [(START_UP, 0)]
    begin = min(asked.values(), default=clock.end_ms)
    for generation in state.generations:
        begins.append((generation.number, begin))
        if generation.told is not None:
            begin = clock.at(noted.told[generation.number])
    for name, panel in ((COMPARISON, "finalists"), (RUNG, "rung")):
        if (at := asked.get((panel, 0))) is not None:
            begins.append((name, at))
        elif any(_BESIDE.get(panel) == name for panel, _ in state.panels):
            begins.append((name, clock.end_ms))  # no time of its own yet
    ends = [began for _, began in begins[1:]] + [clock.end_ms]
    return [Span(what, began, end) for (what, began), end in zip(begins, ends, strict=True)]


def _overlaps(own: list[Span], began_ms: int, ended_ms: int) -> Iterator[tuple[Span, int]]:
    """The spans that share time with that one, and how much of it."""
    first = max(0, bisect_right(own, began_ms, key=lambda span: span.began_ms) - 1)
    for span in own[first:]:
        if span.began_ms >= ended_ms:
            return
        shared = min(ended_ms, span.ended_ms) - max(began_ms, span.began_ms)
        if shared > 0:
            yield span, shared


def _add_slots(own: list[Span], began_ms: int, ended_ms: int, workers: int) -> None:
    for span, shared in _overlaps(own, began_ms, ended_ms):
        span.slot_ms += shared * workers


def _belongs_to(place: AttemptKey) -> str | int:
    """The name of the span that an attempt counts for."""
    panel, number, *_ = place
    return _BESIDE.get(panel or "", number)


def _charge(span: Span, one: Ended, charged_ms: int) -> None:
    if one.end.status is Status.OK:
        span.useful_ms += charged_ms
    else:
        span.wasted_ms += charged_ms


def _use(own: list[Span], one: Ended, charged_ms: int) -> None:
    """Share what an attempt was charged among the spans that it ran in."""
    took = one.ended_ms - one.began_ms
    last = own[max(0, bisect_right(own, one.ended_ms, key=lambda span: span.began_ms) - 1)]
    parts = list(_overlaps(own, one.began_ms, one.ended_ms)) or [(last, max(1, took))]
    whole = sum(shared for _, shared in parts)
    for span, shared in parts:
        span.used_ms += charged_ms * shared / whole


def _leave_idle(own: list[Span], idle_ms: float) -> None:
    """Share the run's idle time as it fell; a charge beyond its own time makes none negative."""
    left = [max(0.0, span.slot_ms - span.used_ms) for span in own]
    whole = sum(left)
    for span, own_ms in zip(own, left, strict=True):
        span.idle_ms = idle_ms * own_ms / whole if whole else 0.0


def beside(own: Sequence[Span]) -> tuple[Beside, ...]:
    """Device-hours of what is no generation."""
    return tuple(
        Beside(
            name=span.what,
            useful_device_hours=span.useful_ms / MS_PER_HOUR,
            wasted_device_hours=span.wasted_ms / MS_PER_HOUR,
            idle_device_hours=span.idle_ms / MS_PER_HOUR,
        )
        for span in own
        if isinstance(span.what, str)
    )


def generations(
    state: RunState, noted: Noted, clock: RunClock, own: Sequence[Span]
) -> tuple[GenerationView, ...]:
    """Every generation that was asked, in order."""
    time = {span.what: span for span in own}
    scores: list[float] = []  # healthy ones of full generations so far
    views = []
    for generation in state.generations:
        if generation.is_full:
            scores += generation.healthy
        ended_ms = time[generation.number].ended_ms
        if (told := noted.told.get(generation.number)) is not None:
            ended_ms = clock.at(told)
        views.append(_view(state, generation, time[generation.number], ended_ms, scores))
    return tuple(views)


def _view(
    state: RunState, generation: Generation, span: Span, ended_ms: int, so_far: list[float]
) -> GenerationView:
    plan, healthy, told = state.plan, generation.healthy, generation.told
    is_last = generation is state.latest
    return GenerationView(
        number=generation.number,
        is_short=is_short(generation),
        is_told=told is not None,
        descent=_descent(state, generation),
        began=span.began_ms / 1000,
        ended=ended_ms / 1000,
        candidates=len(generation.points),
        healthy=len(healthy),
        failed=len(generation.failed),
        best=min(healthy, default=None),
        mean=fmean(healthy) if healthy else None,
        sd=stdev(healthy) if len(healthy) > 1 else None,
        best_so_far=min(so_far, default=None),
        luck_so_far=luck(plan.calibration, len(so_far), plan.resolved.seeds_per_candidate)
        if plan.search is not None
        else None,
        sigma=told.sigma if told else None,
        axis_ratio=told.axis_ratio if told else None,
        favourite=told.favourite if told else None,
        planned_device_hours=_planned_hours(state, generation),
        useful_device_hours=span.useful_ms / MS_PER_HOUR,
        wasted_device_hours=span.wasted_ms / MS_PER_HOUR,
        idle_device_hours=span.idle_ms / MS_PER_HOUR,
        reserved_device_hours=state.accounts.reserved_device_ms / MS_PER_HOUR if is_last else 0.0,
    )


def _descent(state: RunState, generation: Generation) -> int:
    """Of one that is not told yet, as far as is known: the last one's."""
    told = generation.told or (state.told[-1].told if state.told else None)
    return told.descent if told else 0


def _planned_hours(state: RunState, generation: Generation) -> float | None:
    calibration = state.plan.calibration
    if calibration is None:
        return None
    batches = filter(None, (generation, state.panel("proxy", generation.number)))
    length = sum(
        batch.length(candidate) for batch in batches for candidate, _ in batch.evaluations()
    )
    return length * calibration.median_seconds / 3600
