"""What is written around a frame, and where: ticks, names of categories, names of rules."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from orchestrator.charts.chart import Axis, Points, Role, Rule
from orchestrator.charts.frame import Frame, Scale
from orchestrator.charts.lettering import TEXT, cut, shown, width_of
from orchestrator.charts.scale import is_drawable, ticks

TICK = 6.0  # from the frame to a tick's label
APART = 10.0  # between labels side by side
LEVEL = 14.0  # height of a line of text
LEAST_ROW = 11.0  # between the middles of lines of text
TILT_SINE, TILT_COSINE = 0.6, 0.8  # of names that do not fit side by side
LONGEST_TILTED = 150.0


@dataclass(frozen=True)
class Label:
    """A text at a place along its axis, and what it was before it was cut."""

    value: float
    at: float
    text: str
    whole: str = ""


@dataclass(frozen=True)
class RuleLabel:
    """A rule's name beside the frame: `at` the text's place, `of` the rule's."""

    at: float
    of: float
    text: str
    whole: str
    role: Role
    level: int = 0


def x_labels(axis: Axis, scale: Scale) -> tuple[Label, ...]:
    """Labels below a frame, none over another."""
    if axis.categories:
        return () if is_tilted(axis, scale) else tuple(_names(axis, scale))
    for most in range(9, 2, -1):
        labels = _ticks(axis, scale, most)
        if not _overlap(labels):
            return labels
    return _thinned(_ticks(axis, scale, 3), _need)


def is_tilted(axis: Axis, scale: Scale) -> bool:
    """Whether the names below a frame do not fit side by side."""
    return _overlap(list(_names(axis, scale)))


def tilted(axis: Axis, scale: Scale, left: float) -> tuple[Label, ...]:
    """Names that run upwards to their place below a frame, cut where they would leave `left`."""
    step = max(1, round(LEAST_ROW / TILT_SINE / _row(axis, scale) + 0.4))
    labels = []
    for label in list(_names(axis, scale))[::step]:
        room = min(LONGEST_TILTED, (label.at - left) / TILT_COSINE - TEXT)
        text = cut(label.text, max(room, 2 * TEXT))
        labels.append(replace(label, text=text, whole=label.text if text != label.text else ""))
    return tuple(labels)


def y_labels(axis: Axis, scale: Scale, room: float) -> tuple[Label, ...]:
    """Labels to the left of a frame, cut to `room`, none over another."""
    if not axis.categories:
        most = max(3, min(8, int((scale.high - scale.low) / 28)))
        return _thinned(_ticks(axis, scale, most), _line_of_text)
    step = max(1, int(LEAST_ROW / _row(axis, scale) + 0.999))
    return tuple(_cut_label(label, room) for label in list(_names(axis, scale))[::step])


def _cut_label(label: Label, room: float) -> Label:
    text = cut(label.text, room)
    return replace(label, text=text, whole=label.text if text != label.text else "")


def _ticks(axis: Axis, scale: Scale, most: int) -> tuple[Label, ...]:
    found = ticks(axis, scale.range, most)
    return tuple(Label(tick.value, scale.at(tick.value), tick.label) for tick in found)


def _names(axis: Axis, scale: Scale) -> Iterable[Label]:
    for place, name in enumerate(axis.categories):
        yield Label(place, scale.at(place), shown(name))


def _row(axis: Axis, scale: Scale) -> float:
    return (scale.high - scale.low) / len(axis.categories)


def _overlap(labels: Sequence[Label]) -> bool:
    return any(second.at - first.at < _need(first, second) for first, second in pairwise(labels))


def _need(first: Label, second: Label) -> float:
    return (width_of(first.text) + width_of(second.text)) / 2 + APART


def _line_of_text(first: Label, second: Label) -> float:  # noqa: ARG001 - the same for all
    return LEVEL


def _thinned(labels: Sequence[Label], need: Callable[[Label, Label], float]) -> tuple[Label, ...]:
    """All labels, or every second, or every third... so many that none is over another."""
    for step in range(1, len(labels)):
        kept = labels[::step]
        if all(abs(one.at - other.at) >= need(one, other) for one, other in pairwise(kept)):
            return tuple(kept)
    return tuple(labels[:1])


def beyond(frame: Frame) -> str:
    """How many points have a place outside of the frame; empty: none has."""
    count = sum(
        not frame.holds(x, y)
        for mark in frame.chart.marks
        if isinstance(mark, Points)
        for x, y in zip(mark.x, mark.y, strict=True)
        if is_drawable(x, is_log=frame.x.range.is_log)
        and is_drawable(y, is_log=frame.y.range.is_log)
    )
    return f"{count:,} {'point' if count == 1 else 'points'} outside" if count else ""


def named_rules(frame: Frame, axis: str) -> list[Rule]:
    """Rules of an axis that are named beside the frame."""
    if not frame.names_rules:
        return []
    scale = frame.x if axis == "x" else frame.y
    rules = (mark for mark in frame.chart.marks if isinstance(mark, Rule))
    return [
        rule for rule in rules if rule.label and rule.axis == axis and scale.range.holds(rule.value)
    ]


def rules_beside(frame: Frame, room: float) -> tuple[RuleLabel, ...]:
    """Names of horizontal rules, to the right of the frame, moved apart."""
    rules = sorted(named_rules(frame, "y"), key=lambda rule: frame.y.at(rule.value))
    places = [frame.y.at(rule.value) for rule in rules]
    apart = _moved_apart(places, frame.top, frame.bottom)
    return tuple(
        RuleLabel(at, of, cut(rule.label, room), shown(rule.label), rule.role)
        for rule, of, at in zip(rules, places, apart, strict=True)
    )


def _moved_apart(places: Sequence[float], low: float, high: float) -> list[float]:
    """Ascending places a line apart, as near to where they were as a sweep each way brings them."""
    moved: list[float] = []
    for place in places:
        moved.append(max(place, moved[-1] + LEVEL if moved else low))
    limit = max(high, low + LEVEL * (len(places) - 1))
    for index in range(len(moved) - 1, -1, -1):
        moved[index] = min(moved[index], limit)
        limit = moved[index] - LEVEL
    return moved


def rules_above(frame: Frame) -> tuple[RuleLabel, ...]:
    """Names of vertical rules, above the frame, on as many levels as they need."""
    ends: list[float] = []  # of the text on each level, the lowest first
    placed = []
    for rule in sorted(named_rules(frame, "x"), key=lambda rule: frame.x.at(rule.value)):
        text, of = cut(rule.label, frame.cell_right - frame.cell_left), frame.x.at(rule.value)
        half = width_of(text) / 2
        at = max(frame.cell_left + half, min(frame.cell_right - half, of))
        level = next((n for n, end in enumerate(ends) if at - half >= end), len(ends))
        ends[level : level + 1] = [at + half + APART]
        placed.append(RuleLabel(at, of, text, shown(rule.label), rule.role, level))
    return tuple(placed)
