"""What tells points that fail from healthy ones: one cut through the range of one knob."""

from collections.abc import Callable, Container, Iterator, Mapping, Sequence
from itertools import groupby, pairwise
from math import atanh, exp, log, log10, tanh
from typing import Any, NamedTuple

from budgets.events import Status
from budgets.state import Generation, RunState
from budgets.terms import Plan
from budgets.words import number

Point = tuple[float, ...]


class Apart(NamedTuple):
    """A cut through one knob's range, and how many of either kind lie on its side."""

    place: int
    side: str  # "above" or "below"
    cut: float
    failed: int
    all_failed: int
    healthy: int
    all_healthy: int

    @property
    def distance(self) -> float:
        """By how much the shares differ, 1 at most."""
        return self.failed / self.all_failed - self.healthy / self.all_healthy

    def chance(self, knobs: int) -> float:
        """How often luck alone shows so large a distance in one of so many knobs, at most.

        exp(-2 D^2 n m / (n + m)) for a knob and a side, rather too often for small n and m: N.
        Smirnov, "On the estimation of the discrepancy between empirical curves of distribution for
        two independent samples", Bull. Math. Univ. Moscou 2 (1939) 3-14.
        """
        size = self.all_failed * self.all_healthy / (self.all_failed + self.all_healthy)
        return min(1.0, 2 * knobs * exp(-2 * self.distance**2 * size))


def told_apart(failed: Sequence[Point], healthy: Sequence[Point]) -> Apart | None:
    """The cut through a knob that has most of the one and least of the other on its side.

    None without points of both kinds, or where no knob has two values.
    """
    if not failed or not healthy:
        return None
    cuts = (cut for place in range(len(failed[0])) for cut in _cuts(place, failed, healthy))
    return max(cuts, key=lambda cut: cut.distance, default=None)


def _cuts(place: int, failed: Sequence[Point], healthy: Sequence[Point]) -> Iterator[Apart]:
    """Every cut between two neighbouring values of a knob, from both sides."""
    values = sorted([(p[place], True) for p in failed] + [(p[place], False) for p in healthy])
    n, m, failed_below, healthy_below = len(failed), len(healthy), 0, 0
    for (value, is_failed), (following, _) in pairwise(values):
        failed_below, healthy_below = failed_below + is_failed, healthy_below + (not is_failed)
        if value < following:
            cut = (value + following) / 2
            yield Apart(place, "below", cut, failed_below, n, healthy_below, m)
            yield Apart(place, "above", cut, n - failed_below, n, m - healthy_below, m)


def latest_points(
    state: RunState, generation: Generation, failing: Container[Status]
) -> tuple[list[Point], list[Point]]:
    """Of candidates with such a result, and of those with nothing but healthy ones so far.

    In that generation and those before it that `nan_generations_pause` looks at. What was healthy
    beside the search is healthy too.
    """
    bad, good = [], []
    first = generation.number + 1 - state.plan.thresholds.nan_generations_pause
    for each in range(max(0, first), generation.number + 1):
        own = state.generation(each)
        for candidate, results in groupby(own.results(), key=lambda r: r.candidate):
            statuses = {r.status for r in results}
            if any(status in failing for status in statuses):
                bad.append(own.points[candidate])
            elif statuses == {Status.OK}:
                good.append(own.points[candidate])
    return bad, good + [point for point in _beside(state) if point not in good]


def _beside(state: RunState) -> set[Point]:
    """The baseline, once it has a score, and the reference's arms of the same settings."""
    plan, found = state.plan, set[Point]()
    baseline, measured = baseline_point(plan), plan.calibration and plan.calibration.samples
    if plan.search is not None and baseline is not None and measured:
        found.add(baseline)
    if reference := state.panel("reference"):
        for candidate, arm in enumerate(reference.arms):
            if not arm.settings and reference.scores_by_seed(candidate):
                found.add(arm.point)
    return found


def knob_name(plan: Plan, place: int) -> str:
    """What people call it."""
    return str(_knob(plan, place).get("name", f"knob {place}"))


def luck(found: Apart, knobs: int) -> str:
    """A remark where so few points may show as much by chance."""
    return " (so few that it may be luck)" if found.chance(knobs) > 0.05 else ""


def beyond(plan: Plan, found: Apart) -> str:
    """`above rate = 0.03 (0.71 of its range)`."""
    name, value = knob_name(plan, found.place), value_at(_knob(plan, found.place), found.cut)
    if value is None:
        return f"{found.side} {found.cut:.2f} of {name}'s range"
    return f"{found.side} {name} = {number(value, 3)} ({found.cut:.2f} of its range)"


def remedy(plan: Plan, found: Apart) -> str:
    """What keeps a search out of there; empty where healthy points lie there too, or none may.

    So it is where the baseline lies there: no range may leave it out.
    """
    name, baseline = knob_name(plan, found.place), baseline_point(plan)
    if found.distance < 1 or name not in plan.objective.get("settings", {}).get("knobs", {}):
        return ""
    if baseline is not None and (baseline[found.place] > found.cut) == (found.side == "above"):
        return ""
    change = f"lower {name}'s max" if found.side == "above" else f"raise {name}'s min"
    return f"; to keep out of there {change}"


def value_at(knob: Mapping[str, Any], unit: float) -> float | None:
    """The value in the knob's own unit at that share of its range; None where its plan has none."""
    if not {"kind", "low", "high"} <= knob.keys():
        return None
    low, high = knob["low"], knob["high"]
    if knob["kind"] == "int":  # equal shares for all values: a cut lies between two
        step = knob.get("step", 1)
        return float(low + step * (unit * ((high - low) // step + 1) - 0.5))
    return _TO_VALUE.get(knob["kind"], float)(low + unit * (high - low))


def baseline_point(plan: Plan) -> Point | None:
    """The default configuration in the unit cube; None where the plan's knobs do not tell it."""
    knobs = plan.space.get("knobs", ())
    if not knobs or not all({"kind", "low", "high", "baseline"} <= knob.keys() for knob in knobs):
        return None
    return tuple(_unit(knob) for knob in knobs)


def _unit(knob: Mapping[str, Any]) -> float:
    """Where in its range the knob's baseline lies: there `value_at` gives it."""
    low, high, value = knob["low"], knob["high"], knob["baseline"]
    if knob["kind"] == "int":
        step = knob.get("step", 1)
        return float(((value - low) / step + 0.5) / ((high - low) // step + 1))
    unit = (_TO_X.get(knob["kind"], float)(value) - low) / (high - low)
    return float(min(max(unit, 0.0), 1.0))  # a bound is inside despite rounding


_TO_VALUE: dict[str, Callable[[float], float]] = {
    "log10": lambda x: 10.0**x,
    "sigmoid01": lambda x: 1.0 / (1.0 + exp(-x)),
    "tanh11": tanh,
}
"""From the scale on which a knob is searched; `linear` is its own."""

_TO_X: dict[str, Callable[[float], float]] = {
    "log10": log10,
    "sigmoid01": lambda value: log(value / (1.0 - value)),
    "tanh11": atanh,
}
"""The way back."""


def _knob(plan: Plan, place: int) -> Mapping[str, Any]:
    knobs = plan.space.get("knobs", ())
    return knobs[place] if place < len(knobs) else {}
