"""Time and memory of every evaluation, against what the calibration and the limits say."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median

from budgets.words import counted, sentence_case
from orchestrator.charts.chart import Axis, Chart, Mark, Plot, Points, Rule
from orchestrator.report.model import Evaluation, Report
from orchestrator.report.plots.devices import MOST_TIPS, like, named
from orchestrator.report.plots.words import Unit, bytes_unit, seconds_unit, sentences

FAR = 3.0
"""Times what was seen: a limit further off would flatten all that is shown; it is only said."""

WIDE = 20.0
"""Highest by lowest, from which on a scale is logarithmic."""

KINDS: Mapping[str, Points] = {
    "search": Points([], [], "candidate", "evaluation"),
    "proxy": Points([], [], "series6", "evaluation by a proxy", "square"),
    "fresh": Points([], [], "winner", "compared on fresh seeds", "diamond"),
    "varied": Points([], [], "series4", "with other FLOPs or settings", "triangle"),
    "failed": Points([], [], "failed", "failed or lost", "cross"),
}
"""What is expected to take alike, and what failed; as marks without places."""


@dataclass(frozen=True)
class Effort:
    """What each evaluation took of something, and what it is held against."""

    label: str
    unit_of: Callable[[float], Unit]  # in which so much is read
    values: Sequence[tuple[Evaluation, float]]
    expected: Sequence[Rule]  # in the quantity's own unit, as is the next
    limit: float | None

    @property
    def most(self) -> float:
        return max(value for _, value in self.values)

    @property
    def unit(self) -> Unit:
        return self.unit_of(self.most)

    @property
    def is_far(self) -> bool:
        """Whether the limit lies too far off to be drawn."""
        return self.limit is not None and self.limit > FAR * self.most

    def kinds(self) -> dict[str, list[tuple[Evaluation, float]]]:
        groups: dict[str, list[tuple[Evaluation, float]]] = defaultdict(list)
        for evaluation, value in self.values:
            groups[kind_of(evaluation)].append((evaluation, value))
        return {name: groups[name] for name in KINDS if name in groups}


def times(report: Report) -> Plot | None:
    """Seconds of each evaluation; None before one is over."""
    values = [(e, e.seconds) for e in report.evaluations if e.seconds > 0]
    if not values:
        return None
    noise = report.noise
    expected = []
    if noise is not None:
        expected = [
            Rule(noise.median_seconds, "baseline", "calibrated median", is_dashed=False),
            Rule(noise.p90_seconds, "baseline", "calibrated 90th percentile"),
        ]
    effort = Effort(
        label="wall clock",
        unit_of=seconds_unit,
        values=values,
        expected=expected,
        limit=report.limits.wall_seconds if report.limits is not None else None,
    )
    return Plot(
        name="times",
        title="Time of each evaluation",
        caption=sentences(
            "Points above the calibrated times mean that the plan was too short, or that the "
            "machine was shared.",
            _far_said(effort),
        ),
        description=_description(effort),
        charts=[_chart(effort)],
        aspect=0.35,
    )


def memory(report: Report) -> Plot | None:
    """Peak memory of each evaluation; None where none was measured."""
    own = [e for e in report.evaluations if e.peak_memory_bytes > 0]
    if not own:
        return None
    values = [(e, float(e.peak_memory_bytes)) for e in own]
    most = max(report.noise.peak_memory_bytes, default=0) if report.noise is not None else 0
    effort = Effort(
        label="peak memory",
        unit_of=bytes_unit,
        values=values,
        expected=[Rule(float(most), "baseline", "most in the calibration")] if most else [],
        limit=report.limits.memory_bytes if report.limits is not None else None,
    )
    return Plot(
        name="memory",
        title="Peak memory of each evaluation",
        caption=sentences(
            "The process tree of one evaluation at its largest.",
            _far_said(effort),
        ),
        description=_description(effort),
        charts=[_chart(effort)],
        aspect=0.35,
    )


def kind_of(evaluation: Evaluation) -> str:
    """Of `KINDS`."""
    if evaluation.status != "ok":
        return "failed"
    if evaluation.is_short:
        return "proxy"
    if evaluation.panel is None:
        return "search"
    return "fresh" if not like(evaluation) else "varied"


def _chart(effort: Effort) -> Chart:
    unit = effort.unit
    clock = seconds_unit(max(1.0, *(e.ended for e, _ in effort.values)))
    marks: list[Mark] = [
        Rule(unit.of(rule.value), rule.role, rule.label, is_dashed=rule.is_dashed)
        for rule in effort.expected
    ]
    if effort.limit is not None and not effort.is_far:
        marks.append(Rule(unit.of(effort.limit), "limit", "limit", is_dashed=False))
    marks += _points(effort, clock)
    every = [value for _, value in effort.values] + [rule.value for rule in effort.expected]
    x = Axis(f"time that the run was open ({clock.name})", low=0.0)
    label = f"{effort.label} ({unit.name})"
    if max(every) > WIDE * min(every) > 0:
        return Chart(x, Axis(label, "log"), marks)
    if min(every) < 0.5 * max(every):
        return Chart(x, Axis(label, low=0.0), marks)
    room = max(0.05 * max(every), 0.1 * (max(every) - min(every)))  # no hair is a mountain
    low, high = unit.of(min(every) - room), unit.of(max(every) + room)
    return Chart(x, Axis(label, low=low, high=high), marks)


def _points(effort: Effort, clock: Unit) -> Iterator[Points]:
    kinds = effort.kinds()
    for name, found in kinds.items():
        shape = KINDS[name]
        is_told = len(effort.values) <= MOST_TIPS or name == "failed"
        yield Points(
            [clock.of(e.ended) for e, _ in found],
            [effort.unit.of(value) for _, value in found],
            shape.role,
            shape.label if len(kinds) > 1 or name != "search" else "",
            shape.shape,
            tips=[named(e) for e, _ in found] if is_told else (),
        )


def _far_said(effort: Effort) -> str:
    if effort.limit is None or not effort.is_far:
        return ""
    return f"The limit, {effort.unit_of(effort.limit).said(effort.limit)}, lies far above the plot."


def _description(effort: Effort) -> str:
    unit, said = effort.unit, []
    for name, found in effort.kinds().items():
        values, label = [value for _, value in found], KINDS[name].label
        what = counted(len(found), "evaluation")
        who = what if name == "search" else f"{sentence_case(label)}: {what}"
        said.append(
            f"{who}, median {unit.said(median(values))}, {unit.said(min(values))} to "
            f"{unit.said(max(values))}."
        )
    said += [f"{sentence_case(rule.label)}: {unit.said(rule.value)}." for rule in effort.expected]
    if effort.limit is not None:
        said.append(f"An attempt is ended at {effort.unit_of(effort.limit).said(effort.limit)}.")
    return sentences(*said)
