"""Score over generations: what the search found, against the baseline, its noise, and luck."""

from collections.abc import Iterator, Sequence
from statistics import quantiles

from budgets.words import counted, number
from orchestrator.charts.chart import (
    Axis,
    Chart,
    Intervals,
    Line,
    Mark,
    Plot,
    Points,
    Role,
    Rule,
    Stripe,
)
from orchestrator.report.model import GenerationView, Noise, Report
from orchestrator.report.plots.candidates import FEW, Candidate, breaks, candidates, generation_axis
from orchestrator.report.plots.fresh import Fresh, fresh_of
from orchestrator.report.plots.progress_text import caption, description

MOST_MARKED = 12
"""Up to so many generations their means have a mark each; more are a line."""


def scores(report: Report) -> Plot | None:
    """The score of every candidate; None of what is no search, or has nothing settled."""
    own = candidates(report)
    if not own:
        return None
    full = [candidate for candidate in own if not candidate.is_short]
    short = [candidate for candidate in own if candidate.is_short]
    charts = [_full_chart(report, full)] if full else []
    if short:
        charts.append(_short_chart(report, short))
    return Plot(
        name="scores",
        title="Score over generations",
        caption=caption(report, bool(short)),
        description=description(report, own),
        charts=charts,
        aspect=0.45,
    )


def _full_chart(report: Report, own: Sequence[Candidate]) -> Chart:
    fresh = fresh_of(report)
    reach = _reach(report, own, list(fresh.values()))
    if reach is None:
        why = f"No score yet: all {len(own)} candidates that are settled failed."
        return Chart(generation_axis(report), _score_axis(report), empty=why)
    low, high = reach
    beyond = _beyond(report) if fresh else 0.0
    x = generation_axis(report, beyond=beyond, name="fresh seeds" if fresh else "")
    marks = [
        *_noise_marks(report.noise),
        *breaks(report),
        *_candidate_marks(own, high),
        *_course_marks(report, own),
        *_fresh_marks(fresh, (x.high or 0.0) - beyond, beyond),
    ]
    return Chart(x, _score_axis(report, low, high), marks)


def _short_chart(report: Report, own: Sequence[Candidate]) -> Chart:
    """Scores of a proxy, which compare with one another only."""
    high = _reach_of([c.score for c in own if c.score is not None])
    marks = _candidate_marks(own, high[1]) if high else []
    axis = Axis("score of the short evaluation", low=high[0], high=high[1]) if high else Axis("")
    beyond = _beyond(report) if fresh_of(report) else 0.0
    return Chart(
        generation_axis(report, beyond=beyond),
        axis,
        [*marks, *_mean_marks(report, is_short=True)],
        title="Generations evaluated by the proxy: comparable with one another only",
        empty="" if high else "No score yet: all candidates that are settled failed.",
    )


def _score_axis(report: Report, low: float | None = None, high: float | None = None) -> Axis:
    return Axis(f"{report.identity.score} (lower is better)", low=low, high=high)


def _noise_marks(noise: Noise | None) -> Iterator[Mark]:
    if noise is None:
        return
    if noise.sd and noise.band:
        yield Stripe(*noise.band, "baseline", "baseline's noise, ± 2 sd")
    yield Rule(noise.mean, "baseline", "baseline, mean", is_dashed=False)


def _candidate_marks(own: Sequence[Candidate], high: float) -> Iterator[Mark]:
    inside = [(c, c.score) for c in own if c.score is not None and c.score <= high]
    above = [c for c in own if c.score is not None and c.score > high]
    failed = [c for c in own if c.score is None]
    yield Points(
        [c.place for c, _ in inside],
        [score for _, score in inside],
        "candidate",
        "candidate",
        tips=[f"{_name(c)}: {number(score)}" for c, score in inside],
        is_faint=len(own) > FEW,
    )
    if above:
        yield Points(
            [c.place for c in above],
            [high] * len(above),
            "candidate",
            "candidate above the plot",
            "triangle",
            tips=[f"{_name(c)}: {number(c.score)}" for c in above],
        )
    if failed:
        yield Points(
            [c.place for c in failed],
            [high] * len(failed),
            "failed",
            "failed candidate",
            "cross",
            tips=[f"{_name(c)}: {c.failure}" for c in failed],
        )


def _name(candidate: Candidate) -> str:
    return f"generation {candidate.generation}, candidate {candidate.number}"


def _beyond(report: Report) -> float:
    """Width of the part for fresh seeds, in generations."""
    return max(2.0, len(report.generations) / 8)


def _course_marks(report: Report, own: Sequence[Candidate]) -> Iterator[Mark]:
    """What each generation came to, and the best so far beside what luck would have shown."""
    generations = [g for g in report.generations if not g.is_short]
    best = _best_of_each(own)
    yield from _mean_marks(report, is_short=False)
    yield _steps(
        generations, [g.luck_so_far for g in generations], "luck", "best expected by luck alone"
    )
    yield _steps(generations, [g.best_so_far for g in generations], "best", "best so far")
    yield Points(
        [c.place for c in best],
        [c.score for c in best],
        "best",
        "best of the generation",
        "diamond",
    )


def _best_of_each(own: Sequence[Candidate]) -> list[Candidate]:
    """The best candidate of each generation."""
    best: dict[int, Candidate] = {}
    for c in own:
        before = best.get(c.generation)
        if c.score is not None and (before is None or c.score < (before.score or 0.0)):
            best[c.generation] = c
    return list(best.values())


def _mean_marks(report: Report, *, is_short: bool) -> Iterator[Mark]:
    """Broken where generations of the other kind lie between."""
    generations = report.generations
    x = [g.number for g in generations]
    y = [g.mean if g.is_short == is_short else None for g in generations]
    yield Line(x, y, "mean", "generation's mean")
    if len(generations) <= MOST_MARKED:
        yield Points(x, y, "mean", shape="square")


def _steps(
    generations: Sequence[GenerationView], values: Sequence[float | None], role: Role, label: str
) -> Line:
    """Each value over the width of its generation."""
    x = [g.number - 0.5 for g in generations]
    last = [generations[-1].number + 0.5] if generations else []
    dashed = role == "luck"
    known = any(value is not None for value in values)
    return Line(
        [*x, *last],
        [*values, *values[-1:]],
        role,
        label if known else "",
        is_dashed=dashed,
        is_step=True,
    )


def _fresh_marks(fresh: dict[Role, Fresh], begin: float, width: float) -> Iterator[Mark]:
    if not fresh:
        return
    yield Rule(begin, "muted", axis="x", is_dashed=False)
    for (role, own), share in zip(fresh.items(), (0.35, 0.65), strict=True):
        yield Intervals(
            [begin + share * width],
            [own.low],
            [own.mean],
            [own.high],
            role,
            f"{role} on {counted(own.seeds, 'fresh seed')}, 95%",
            is_horizontal=False,
        )


def _reach(
    report: Report, own: Sequence[Candidate], fresh: Sequence[Fresh]
) -> tuple[float, float] | None:
    """Of the scores shown: a few that are far above all others would hide them."""
    found = [c.score for c in own if c.score is not None]
    also = [value for one in fresh for value in (one.low, one.mean, one.high) if value is not None]
    if report.noise is not None:
        also += report.noise.band or [report.noise.mean]
    also += [g.luck_so_far for g in report.generations if g.luck_so_far is not None]
    return _reach_of(found, also) if found or also else None


def _reach_of(found: Sequence[float], also: Sequence[float] = ()) -> tuple[float, float] | None:
    if not found and not also:
        return None
    low, high = min([*found, *also]), max([*found, *also])
    if len(found) > 7:
        lower, _, upper = quantiles(found, n=4)
        high = min(high, max([upper + 3 * (upper - lower), *also]))
    room = 0.06 * (high - low) or 0.05 * abs(high) or 1.0
    return low - room, high + room
