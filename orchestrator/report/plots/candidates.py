"""A search's candidates, as its evaluations tell of them, and the axis on which they lie."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from orchestrator.charts.chart import Axis, Mark, Rule
from orchestrator.report.model import Evaluation, Point, Report

WIDTH = 0.5
"""Of a generation's axis, over which its candidates lie side by side in their order."""

FEW = 60
"""Candidates that are seen each by itself: of more they are faint."""

MOST_TICKS = 11


@dataclass(frozen=True)
class Candidate:
    """One candidate of a search with all that is settled of it."""

    generation: int
    number: int
    place: float  # on the axis of generations
    is_short: bool
    score: float | None  # mean over its seeds; None where one of them failed
    failure: str  # status of the first that failed; empty of a healthy one
    point: Point
    knobs: dict[str, float]


def is_search(report: Report) -> bool:
    """Whether its generations are those of a search: of no calibration, check or campaign."""
    return report.identity.phase in ("phase1", "phase2")


def candidates(report: Report) -> list[Candidate]:
    """Those of a search with a settled evaluation, in their order; none of any other run."""
    if not is_search(report):
        return []
    ends: dict[tuple[int, int], list[Evaluation]] = defaultdict(list)
    for evaluation in report.evaluations:
        if evaluation.panel is None and evaluation.is_final:
            ends[evaluation.generation, evaluation.candidate].append(evaluation)
    counts = {g.number: g.candidates for g in report.generations}
    return [_candidate(ends[key], counts.get(key[0], 1)) for key in sorted(ends)]


def _candidate(ends: Sequence[Evaluation], beside: int) -> Candidate:
    first = ends[0]
    scores = [end.score for end in ends if end.status == "ok" and end.score is not None]
    failed = [str(end.status) for end in ends if end.status != "ok"]
    offset = first.candidate / (beside - 1) - 0.5 if beside > 1 else 0.0
    return Candidate(
        generation=first.generation,
        number=first.candidate,
        place=first.generation + WIDTH * offset,
        is_short=first.is_short,
        score=fmean(scores) if len(scores) == len(ends) else None,
        failure=failed[0] if failed else "",
        point=first.point,
        knobs=first.knobs,
    )


def generation_axis(report: Report, *, beyond: float = 0.0, name: str = "") -> Axis:
    """From the first generation to the last, and as far `beyond`, in whose middle is `name`."""
    numbers = [generation.number for generation in report.generations]
    low, high = min(numbers, default=0) - 0.5, max(numbers, default=0) + 0.5
    step = _step(len(numbers))
    ticks = [(float(n), str(n)) for n in numbers if n % step == 0]
    if name:
        ticks = [tick for tick in ticks if tick[0] <= high - 0.5 * step - 0.5] or ticks[:1]
        ticks.append((high + beyond / 2, name))
    return Axis("generation", low=low, high=high + beyond, is_whole=True, ticks=ticks)


def _step(count: int) -> int:
    """Between ticks, so that they stay apart: 1, 2, 5, 10, ..."""
    steps = (scale * digit for scale in (1, 10, 100, 1000, 10_000) for digit in (1, 2, 5))
    return next(step for step in steps if count / step <= MOST_TICKS)


def breaks(report: Report) -> list[Mark]:
    """Where the search began anew, and where a session took the run up again."""
    descents = [
        own.number - 0.5
        for before, own in zip(report.generations, report.generations[1:], strict=False)
        if own.descent != before.descent
    ]
    places: dict[int, float] = {}
    for candidate, session in _begun(report):
        places.setdefault(session, candidate)
    first = min((session.number for session in report.identity.sessions), default=0)
    sessions = [place for session, place in sorted(places.items()) if session != first]
    return [
        *_rules(descents, "search begins anew", is_dashed=False),
        *_rules(sessions, "resumed", is_dashed=True),
    ]


def _begun(report: Report) -> list[tuple[float, int]]:
    """Where on the axis each evaluation lies, and which session reserved it, as they began."""
    counts = {g.number: g.candidates for g in report.generations}
    own = sorted((e for e in report.evaluations if e.panel is None), key=lambda e: e.began)
    return [
        (_candidate([e], counts.get(e.generation, 1)).place - WIDTH / 50, e.session) for e in own
    ]


def _rules(places: Sequence[float], label: str, *, is_dashed: bool) -> list[Mark]:
    return [
        Rule(place, "muted", "" if number else label, axis="x", is_dashed=is_dashed)
        for number, place in enumerate(places)
    ]
