"""What a check or a calibration measured."""

from collections.abc import Iterator, Sequence
from statistics import fmean, stdev

from budgets.liveness import EndEffect, Liveness
from budgets.words import counted, listed, number
from orchestrator.charts.chart import Axis, Chart, Intervals, Mark, Note, Plot, Points, Rule, Stripe
from orchestrator.report.model import Evaluation, Report
from orchestrator.report.plots.fresh import NOISE_SDS
from orchestrator.report.plots.words import sentences


def liveness(report: Report) -> Plot | None:
    """What each end of each knob does to the score; None of what is no check with a baseline."""
    own = report.budget.check
    if own is None or not own.knobs:
        return None
    ends = [(knob.knob, end) for knob in own.knobs for end in knob.ends]
    in_noise = own.noise > 0
    unit = "in sd of the noise" if in_noise else "in the score's unit"
    names = [f"{knob}, {end.end}" for knob, end in ends]
    marks: list[Mark] = [Rule(0.0, "baseline", axis="x", is_dashed=False)]
    if in_noise:
        marks.insert(0, Stripe(-1.0, 1.0, "baseline", "noise of one evaluation, ± 1 sd", axis="x"))
    scale = own.noise if in_noise else 1.0
    reach = _reach(own, [end for _, end in ends], scale)
    marks += [*_effects(own, [end for _, end in ends], scale, reach)]
    low, high = _ends(own, [end for _, end in ends], scale, reach)
    x = Axis(f"change of the score {unit}, left is better", low=low, high=high)
    return Plot(
        name="liveness",
        title="Which knobs move the score",
        caption=f"Each knob moved from the {own.centre} to an end of its range, all others "
        "held, on the same seeds. Filled: more than chance, all ends considered together.",
        description=sentences(
            *(_said(knob, end, in_noise=in_noise) for knob, end in ends),
            f"Not measured yet: {listed(own.pending)}." if own.pending else "",
        ),
        charts=[Chart(x, Axis("", categories=names), marks)],
        aspect=max(0.25, 0.08 + 0.035 * len(ends)),
    )


def _reach(own: Liveness, ends: Sequence[EndEffect], scale: float) -> float:
    """To either side of 0: ends that move the score by far would hide all others."""
    known = [(end, abs(end.difference)) for end in ends if end.difference is not None]
    whole = [size + own.t_limit * (end.standard_error or 0.0) for end, size in known]
    calm = [reach for reach, (end, _) in zip(whole, known, strict=True) if not end.moves]
    most, least = max(whole, default=scale), 4 * max(calm, default=max(whole, default=scale))
    return 1.05 * min(most, max(least, 4 * scale)) / scale


def _ends(
    own: Liveness, ends: Sequence[EndEffect], scale: float, reach: float
) -> tuple[float, float]:
    """Of the axis: as far to each side as anything lies, and no further than `reach`."""
    bounds = [
        (end.difference + side * own.t_limit * (end.standard_error or 0.0)) / scale
        for end in ends
        if end.difference is not None
        for side in (-1, 1)
    ]
    low, high = min([-1.0, *bounds]), max([1.0, *bounds])
    return max(-reach, 1.05 * low), min(reach, 1.05 * high)


def _effects(
    own: Liveness, ends: Sequence[EndEffect], scale: float, reach: float
) -> Iterator[Mark]:
    for moves in (True, False):
        found = [
            (place, end.difference / scale, own.t_limit * (end.standard_error or 0.0) / scale)
            for place, end in enumerate(ends)
            if end.difference is not None
            and end.moves == moves
            and abs(end.difference) <= reach * scale
        ]
        if found:
            yield Intervals(
                [place for place, _, _ in found],
                [mean - reach for _, mean, reach in found],
                [mean for _, mean, _ in found],
                [mean + reach for _, mean, reach in found],
                "winner" if moves else "series1",
                "moves the score" if moves else "may be chance",
                is_filled=moves,
            )
    yield from _beyond(ends, scale, reach)
    for place, end in enumerate(ends):
        if end.difference is None:
            yield Note(0.0, float(place), "fewer than two healthy seeds", "failed")


def _beyond(ends: Sequence[EndEffect], scale: float, reach: float) -> Iterator[Mark]:
    """At the edge, with their sizes."""
    far = [
        (float(place), end.difference / scale)
        for place, end in enumerate(ends)
        if end.difference is not None and abs(end.difference) > reach * scale
    ]
    if far:
        at = [reach if size > 0 else -reach for _, size in far]
        yield Points(
            at, [row for row, _ in far], "winner", "beyond the plot", "triangle", is_large=True
        )
        for x, (row, size) in zip(at, far, strict=True):
            yield Note(x, row, f"{size:+.3g}", "winner")


def _said(knob: str, end: EndEffect, *, in_noise: bool) -> str:
    if end.difference is None:
        return f"{knob}, {end.end}: fewer than two healthy seeds."
    size = end.in_noise if in_noise and end.in_noise is not None else end.difference
    unit = " sd of the noise" if in_noise else ""
    same = ", the same score" if end.same else ""
    what = "moves the score" if end.moves else "may be chance"
    return f"{knob}, {end.end}: {size:+.3g}{unit}{same}, {what}."


def baseline(report: Report) -> Plot | None:
    """Scores of a calibration, seed by seed; None of any other run, and before the first."""
    if report.identity.phase != "calibration":
        return None
    own = [e for e in report.evaluations if e.is_final]
    healthy = [(e, e.score) for e in own if e.status == "ok" and e.score is not None]
    if not own:
        return None
    scores = [score for _, score in healthy]
    x = Axis("seed", categories=[str(e.seed) for e in own])
    y = Axis(f"{report.identity.score} (lower is better)")
    why = "" if scores else f"No score: {counted(len(own), 'evaluation')} failed."
    chart = Chart(x, y, list(_baseline_marks(own, scores)), empty=why)
    return Plot(
        name="baseline",
        title="The baseline's score over seeds",
        caption="How far the same configuration spreads from seed to seed: no smaller difference "
        "between two single scores says anything.",
        description=_baseline_said(own, scores),
        charts=[chart],
        aspect=0.4,
    )


def _baseline_marks(own: Sequence[Evaluation], scores: Sequence[float]) -> Iterator[Mark]:
    if not scores:
        return
    mean = fmean(scores)
    if len(scores) > 1:
        reach = NOISE_SDS * stdev(scores)
        yield Stripe(mean - reach, mean + reach, "baseline", "± 2 sd")
    yield Rule(mean, "baseline", "mean", is_dashed=False)
    places = [(float(place), e) for place, e in enumerate(own)]
    yield Points(
        [place for place, e in places if e.score is not None],
        [e.score for _, e in places if e.score is not None],
        "candidate",
        "one seed",
        is_large=True,
        tips=[f"seed {e.seed}: {number(e.score)}" for _, e in places if e.score is not None],
    )
    failed = [place for place, e in places if e.score is None]
    if failed:
        yield Points(failed, [max(scores)] * len(failed), "failed", "failed", "cross")


def _baseline_said(own: Sequence[Evaluation], scores: Sequence[float]) -> str:
    if not scores:
        return f"{counted(len(own), 'evaluation')}, none with a score."
    spread = "" if len(scores) < 2 else f", standard deviation {stdev(scores):.3g}"
    failed = len(own) - len(scores)
    return sentences(
        f"{counted(len(scores), 'seed')}: mean {number(fmean(scores))}{spread}, from "
        f"{number(min(scores))} to {number(max(scores))}.",
        f"{counted(failed, 'evaluation')} failed." if failed else "",
    )
