"""Gains on fresh seeds with their intervals, and the scores behind them, pair by pair."""

from collections.abc import Iterator, Sequence

from budgets.campaign.names import shortened
from budgets.statistics.comparison import Gain, better
from budgets.words import counted, number, percent
from orchestrator.charts.chart import (
    Axis,
    Chart,
    Intervals,
    Line,
    Mark,
    Note,
    Plot,
    Points,
    Role,
    Rule,
)
from orchestrator.report.model import ArmScores, Comparison, Report
from orchestrator.report.plots.words import columns_for, sentences

NAME_WIDTH = 60

FEWEST = 2
"""Pairs, whose interval may be cut by the edge where others have more."""

SURE = {True: "beyond chance", False: "may be chance"}
"""Of a gain, or a loss."""

LEAST_ASPECT, ROW_ASPECT = 0.15, 0.042


def confirmations(report: Report) -> Plot | None:
    """Gains of the winner, finalists, controls and the rung; None where nothing is compared."""
    own = report.comparisons
    if not own:
        return None
    return Plot(
        name="confirmations",
        title="Gains on fresh seeds",
        caption=_caption(report),
        description=sentences(*(_said(one) for one in own)),
        charts=[_forest(report, own)],
        aspect=max(LEAST_ASPECT, 0.06 + ROW_ASPECT * len(own)),
    )


def _forest(report: Report, own: Sequence[Comparison]) -> Chart:
    findings = report.budget.findings
    marks: list[Mark] = [Rule(0.0, "baseline", axis="x", is_dashed=False)]
    if findings is not None:
        asked = f"asked of a Go: {percent(findings.asked)}"
        marks.append(Rule(100 * findings.asked, "limit", asked, axis="x"))
    for is_decisive, is_sure in ((True, True), (True, False), (False, True), (False, False)):
        gains = [one.gain if one.is_decisive == is_decisive else None for one in own]
        what = "decisive" if is_decisive else "beside it"
        role: Role = "winner" if is_decisive else "series1"
        marks += intervals(gains, role, f"{what}, {SURE[is_sure]}", is_sure=is_sure)
    low, high = _reach(report, own)
    x = Axis("gain over what it is compared with (%), right is better", low=low, high=high)
    notes = [
        Note(0.0, float(place), "no pair with a score")
        for place, one in enumerate(own)
        if one.gain.mean is None
    ]
    return Chart(x, Axis("", categories=_names(own)), [*marks, *notes])


def _names(own: Sequence[Comparison]) -> list[str]:
    """What is compared, with what unless it is the baseline, and on how many seeds."""
    every = [
        one.name.removesuffix(" (control)")
        if one.against == "baseline"
        else f"{one.name} over {one.against.removesuffix(' (control)')}"
        for one in own
    ]
    short = shortened(every, NAME_WIDTH)
    return [f"{name}, n = {one.gain.pairs}" for name, one in zip(short, own, strict=True)]


def _reach(report: Report, own: Sequence[Comparison]) -> tuple[float, float]:
    """Of the axis: intervals of two seeds say so little that they would hide all others."""
    gains = [one.gain for one in own if one.gain.mean is not None]
    known = [gain for gain in gains if gain.pairs > FEWEST] or gains
    ends = [end for gain in known for end in (gain.lower, gain.upper) if end is not None]
    means = [gain.mean for gain in gains if gain.mean is not None]
    findings = report.budget.findings
    asked = [] if findings is None else [findings.asked]
    low, high = min([0.0, *ends, *means, *asked]), max([0.0, *ends, *means, *asked])
    room = 0.05 * (high - low) or 0.01
    return 100 * (low - room), 100 * (high + room)


def intervals(
    gains: Sequence[Gain | None], role: Role, label: str, *, is_sure: bool
) -> Iterator[Intervals]:
    """Of those that are beyond chance, filled, or of those that may be chance; each in its row."""
    own = [
        (float(place), gain)
        for place, gain in enumerate(gains)
        if gain is not None and gain.mean is not None and _is_sure(gain) == is_sure
    ]
    if own:
        yield Intervals(
            [place for place, _ in own],
            [in_percent(gain.lower) for _, gain in own],
            [in_percent(gain.mean) for _, gain in own],
            [in_percent(gain.upper) for _, gain in own],
            role,
            label,
            is_filled=is_sure,
        )


def _is_sure(own: Gain) -> bool:
    return own.is_shown or own.is_loss


def in_words(own: Gain) -> str:
    """`3.1% better (gain +2.2 to +4%)`."""
    if own.mean is None or own.lower is None or own.upper is None:
        return better(own.mean or 0.0)
    return f"{better(own.mean)} (gain {100 * own.lower:+.3g} to {100 * own.upper:+.3g}%)"


def in_percent(share: float | None) -> float | None:
    return None if share is None else 100 * share


def _caption(report: Report) -> str:
    level = report.comparisons[0].gain.level
    return sentences(
        f"Each end of an interval is missed with a probability of {percent(level)}. Filled: the "
        "interval leaves 0 out, so that the gain, or the loss, is more than chance. n: seeds that "
        "both have a score on; of two the interval may go on beyond the edge.",
        "What wins on the seeds that it was picked on is flattered by that choice; the decisive "
        "comparison is on seeds that were used for no selection."
        if any(one.is_decisive for one in report.comparisons)
        else "",
    )


def _said(one: Comparison) -> str:
    own = one.gain
    if own.mean is None:
        return f"{one.name} against {one.against}: no pair with a score."
    pairs = counted(own.pairs, "pair")
    return f"{one.name} against {one.against}: {in_words(own)} on {pairs}, {SURE[_is_sure(own)]}."


def pairs(report: Report) -> Plot | None:
    """Scores of the arms of each comparison seed by seed; None where no seed has two of them."""
    charts = [chart for title, arms in _families(report) if (chart := _slopes(report, title, arms))]
    if not charts:
        return None
    said = [
        f"{arm.name} on {counted(len(known), 'seed')}: mean {number(sum(known) / len(known))}."
        for arm in report.arms
        if (known := [score for score in arm.scores.values() if score is not None])
        and arm.panel != "proxy"
    ]
    return Plot(
        name="pairs",
        title="Scores on the same seeds",
        caption="A line is one seed. Where nearly all lines fall, the difference is no luck of "
        "single seeds; where they cross, it may be.",
        description=sentences(*said),
        charts=charts,
        columns=columns_for(len(charts)),
        aspect=0.75,
    )


def _families(report: Report) -> Iterator[tuple[str, list[ArmScores]]]:
    """Arms that were evaluated on the same seeds, the one they are compared with first."""
    baseline = [a for a in report.arms if a.panel == "reference" and a.name == "baseline"]
    others = [a for a in report.arms if a.panel == "reference" and a.name != "baseline"]
    winner = [a for a in report.arms if a.panel == "winner"]
    finalists = [a for a in report.arms if a.panel == "finalists"]
    rung = [a for a in report.arms if a.panel == "rung"]
    yield "Winner on fresh seeds", [*baseline, *winner[:1]]
    yield "Finalists on picking seeds", [*baseline, *finalists]
    if others or winner[1:]:
        yield "Controls and earlier winners", [*baseline, *winner[:1], *others, *winner[1:]]
    findings = report.budget.findings
    more = None if findings is None else findings.rung_label
    yield f"With {more or 'more training'}", rung


def _slopes(report: Report, title: str, arms: Sequence[ArmScores]) -> Chart | None:
    if len(arms) < 2:
        return None
    seeds = _shared(arms)
    if not seeds:
        return None
    lines: list[Mark] = [
        Line(
            [float(place) for place in range(len(arms))],
            [arm.scores.get(seed) for arm in arms],
            "muted",
            "one seed" if number == 0 else "",
            is_thin=True,
        )
        for number, seed in enumerate(seeds)
    ]
    means = [_mean([arm.scores.get(seed) for seed in seeds]) for arm in arms]
    dots = [
        Points(
            [float(place)] * len(seeds),
            [arm.scores.get(seed) for seed in seeds],
            "baseline" if place == 0 else "winner" if _is_winner(arm, place) else "series1",
            tips=[f"{arm.name}, seed {seed}: {number(arm.scores.get(seed))}" for seed in seeds],
        )
        for place, arm in enumerate(arms)
    ]
    places = [float(place) for place in range(len(arms))]
    mean = Points(places, means, "mean", "mean over seeds", "diamond", is_large=True)
    x = Axis("", categories=[_arm_name(arm, place) for place, arm in enumerate(arms)])
    return Chart(x, Axis(report.identity.score), [*lines, *dots, mean], title=title)


def _arm_name(arm: ArmScores, place: int) -> str:
    return f"winner ({arm.name})" if _is_winner(arm, place) else arm.name


def _is_winner(arm: ArmScores, place: int) -> bool:
    return arm.panel in ("winner", "rung") and place == 1


def _shared(arms: Sequence[ArmScores]) -> list[int]:
    """Seeds on which the first has a score and any of the others."""
    first, *others = arms
    return [
        seed
        for seed, score in sorted(first.scores.items())
        if score is not None and any(arm.scores.get(seed) is not None for arm in others)
    ]


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None
