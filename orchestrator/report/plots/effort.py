"""Time and memory of every evaluation, against what the calibration and the limits say."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median

from orchestrator.charts.chart import Axis, Chart, Mark, Plot, Points, Role, Rule
from orchestrator.report.model import Evaluation, Report
from orchestrator.report.plots.devices import like, named
from orchestrator.report.plots.words import Unit, bytes_unit, counted, seconds_unit, sentences

FAR = 3.0
"""Times what was seen: a limit further off would flatten all that is shown; it is only said."""

WIDE = 20.0
"""Highest by lowest, from which on a scale is logarithmic."""


def times(report: Report) -> Plot | None:
    """Seconds of each evaluation; None before one is over."""
    own = [e for e in report.evaluations if e.seconds > 0]
    if not own:
        return None
    noise = report.noise
    unit = seconds_unit(max(e.seconds for e in own))
    rules: list[tuple[float, Role, str, bool]] = []
    if noise is not None:
        rules = [
            (noise.median_seconds, "baseline", "calibrated median", False),
            (noise.p90_seconds, "baseline", "calibrated 90th percentile", True),
        ]
    limit = report.limits.wall_seconds if report.limits is not None else None
    return Plot(
        name="times",
        title="Seconds per evaluation",
        caption=sentences(
            "Points above the calibrated times mean that the plan was too short, or that the "
            "machine was shared.",
            _far_said(own, limit, lambda e: e.seconds, unit),
        ),
        description=sentences(
            _groups_said(own, lambda e: e.seconds, unit),
            ""
            if noise is None
            else f"Calibrated: median {unit.said(noise.median_seconds)}, 90th percentile "
            f"{unit.said(noise.p90_seconds)}.",
            "" if limit is None else f"An attempt is ended after {unit.said(limit)}.",
        ),
        charts=[_chart(report, own, lambda e: e.seconds, unit, rules, limit, "wall clock")],
        aspect=0.35,
    )


def memory(report: Report) -> Plot | None:
    """Peak memory of each evaluation; None where none was measured."""
    own = [e for e in report.evaluations if e.peak_memory_bytes > 0]
    if not own:
        return None
    noise = report.noise
    unit = bytes_unit(max(e.peak_memory_bytes for e in own))
    most = max(noise.peak_memory_bytes, default=0) if noise is not None else 0
    rules: list[tuple[float, Role, str, bool]] = []
    if most:
        rules = [(float(most), "baseline", "most in the calibration", True)]
    limit = report.limits.memory_bytes if report.limits is not None else None
    return Plot(
        name="memory",
        title="Peak memory per evaluation",
        caption=sentences(
            "The process tree of one evaluation at its largest.",
            _far_said(own, limit, _memory_of, unit),
        ),
        description=sentences(
            _groups_said(own, _memory_of, unit),
            f"Most in the calibration: {unit.said(most)}." if most else "",
            "" if limit is None else f"An attempt is ended beyond {unit.said(limit)}.",
        ),
        charts=[_chart(report, own, _memory_of, unit, rules, limit, "peak memory")],
        aspect=0.35,
    )


def _memory_of(evaluation: Evaluation) -> float:
    return float(evaluation.peak_memory_bytes)


def _chart(
    report: Report,
    own: Sequence[Evaluation],
    value: Callable[[Evaluation], float],
    unit: Unit,
    rules: Sequence[tuple[float, Role, str, bool]],
    limit: float | None,
    label: str,
) -> Chart:
    clock = seconds_unit(max(e.ended for e in own))
    marks: list[Mark] = [
        Rule(unit.of(at), role, said, is_dashed=dashed) for at, role, said, dashed in rules
    ]
    if limit is not None and not _is_far(own, limit, value):
        marks.append(Rule(unit.of(limit), "limit", "limit", is_dashed=False))
    marks += _points(own, value, unit, clock)
    values = [value(e) for e in own] + [at for at, *_ in rules]
    scale, low = ("log", None) if max(values) > WIDE * min(values) else ("linear", 0.0)
    x = Axis(f"time that the run was open ({clock.name})", low=0.0)
    if scale == "log":
        return Chart(x, Axis(f"{label} ({unit.name})", "log"), marks)
    return Chart(x, Axis(f"{label} ({unit.name})", low=low, has_zero=True), marks)


def groups_of(own: Sequence[Evaluation]) -> dict[str, list[Evaluation]]:
    """By what they are expected to take alike, and those that failed."""
    groups: dict[str, list[Evaluation]] = defaultdict(list)
    for e in own:
        groups[_group(e)].append(e)
    order = [*(name for name, _ in SHAPES)]
    return {name: groups[name] for name in order if name in groups}


SHAPES: tuple[tuple[str, Points], ...] = (
    ("search", Points([], [], "candidate", "search")),
    ("proxy", Points([], [], "series3", "search, evaluated by a proxy", "square")),
    ("fresh", Points([], [], "series2", "compared on fresh seeds", "diamond")),
    ("varied", Points([], [], "series4", "with other FLOPs or settings", "triangle")),
    ("failed", Points([], [], "failed", "failed or lost", "cross")),
)


def _group(evaluation: Evaluation) -> str:
    if evaluation.status != "ok":
        return "failed"
    if evaluation.is_short:
        return "proxy"
    if evaluation.panel is None:
        return "search"
    return "fresh" if not like(evaluation) else "varied"


def _points(
    own: Sequence[Evaluation], value: Callable[[Evaluation], float], unit: Unit, clock: Unit
) -> Iterator[Points]:
    shapes, groups = dict(SHAPES), groups_of(own)
    for name, found in groups.items():
        shape = shapes[name]
        yield Points(
            [clock.of(e.ended) for e in found],
            [unit.of(value(e)) for e in found],
            shape.role,
            shape.label if len(groups) > 1 else "",
            shape.shape,
            tips=[named(e) for e in found] if len(own) <= MOST_TIPS or name == "failed" else (),
        )


MOST_TIPS = 600


def _is_far(own: Sequence[Evaluation], limit: float, value: Callable[[Evaluation], float]) -> bool:
    return limit > FAR * max(value(e) for e in own)


def _far_said(
    own: Sequence[Evaluation],
    limit: float | None,
    value: Callable[[Evaluation], float],
    unit: Unit,
) -> str:
    if limit is None or not _is_far(own, limit, value):
        return ""
    return f"The limit, {unit.said(limit)}, lies far above the plot."


def _groups_said(
    own: Sequence[Evaluation], value: Callable[[Evaluation], float], unit: Unit
) -> str:
    labels = {name: shape.label for name, shape in SHAPES}
    said = []
    for name, found in groups_of(own).items():
        values = [value(e) for e in found]
        said.append(
            f"{labels[name]}: {counted(len(found), 'evaluation')}, median "
            f"{unit.said(median(values))}, {unit.said(min(values))} to {unit.said(max(values))}."
        )
    return sentences(*(part[0].upper() + part[1:] for part in said))
