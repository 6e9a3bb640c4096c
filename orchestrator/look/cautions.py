"""What speaks against relying on what a search found, in a sentence or two each."""

from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from budgets.events import Decided
from budgets.formatting import counted, listed, percent, quoted
from budgets.state import RunState
from budgets.stats import Gain, better
from budgets.verdict import Control, Findings, beating, findings, unbeaten
from objectives.space import Knob, SearchSpace
from orchestrator.records.objective import best_point, space_of

NEAR = 0.01
"""Of a knob's range: no further from an end counts as there. An int knob has to be the end."""


class RangeEnd(NamedTuple):
    """A knob at an end of its range, in the knob's own unit."""

    knob: str
    end: Literal["lower", "upper"]
    value: float
    low: float
    high: float

    @property
    def way(self) -> str:
        """`upwards`: where the range could be wider."""
        return "upwards" if self.end == "upper" else "downwards"

    def in_words(self) -> str:
        return (
            f"{self.knob} = {self.value:.4g} ({self.end} end of {self.low:.4g} to {self.high:.4g})"
        )


def at_ends(space: SearchSpace, point: Sequence[float]) -> tuple[RangeEnd, ...]:
    """The knobs at an end of their range, in the order of the space."""
    found = (_at_end(knob, unit) for knob, unit in zip(space.knobs, point, strict=True))
    return tuple(end for end in found if end is not None)


def range_ends(state: RunState) -> tuple[RangeEnd, ...]:
    """Of the best that a search has (see `best_point`); empty where it has nothing yet."""
    point = best_point(state, compared=True)
    return () if point is None else at_ends(space_of(state.plan), point)


def caution(ends: Sequence[RangeEnd]) -> str:
    """That they are there, and what to do about it: nobody knows which end is a natural limit."""
    return (
        f"The best lies at the end of a range: {listed(end.in_words() for end in ends)}. Better "
        f"values may lie beyond: widen {widened_in_words(ends)} unless nothing can lie there."
    )


def widened_in_words(ends: Sequence[RangeEnd]) -> str:
    """`lr upwards and decay downwards`."""
    return listed(f"{end.knob} {end.way}" for end in ends)


def _at_end(knob: Knob, unit: float) -> RangeEnd | None:
    low, value, high = knob.decode(0.0), knob.decode(unit), knob.decode(1.0)
    is_int = knob.kind == "int"
    if value == low if is_int else unit <= NEAR:
        return RangeEnd(knob.name, "lower", value, low, high)
    if value == high if is_int else unit >= 1.0 - NEAR:
        return RangeEnd(knob.name, "upper", value, low, high)
    return None


def cautions(state: RunState) -> tuple[str, ...]:
    """A sentence or two each, the weightiest first; empty where there is nothing to be careful of.

    A control that is better than the winner comes before everything else.
    """
    found, own, ends = findings(state), state.decided, range_ends(state)
    said = [] if found is None or own is None else list(_of_a_verdict(found, own))
    return (*said, caution(ends)) if ends else tuple(said)


def _of_a_verdict(found: Findings, own: Decided) -> Iterator[str]:
    yield from map(_beaten, beating(found))
    yield from _of_a_no_go(found, own) if own.grade == "no_go" else _of_a_go(found, own)


def _of_a_go(found: Findings, own: Decided) -> Iterator[str]:
    yield from (_unbeaten(one) for one in unbeaten(found) if not one.winner_gain.is_loss)
    over = found.over_incumbent
    if over is not None and over.mean is not None and not over.is_shown:
        is_worse = "worse" if over.is_loss else "not shown to be better"
        chance = "" if over.is_loss else ", which may be chance"
        yield (
            f"It is {is_worse} than the winner of the run that it follows: "
            f"{better(over.mean)} than that on {counted(over.pairs, 'seed')}{chance}."
        )
    if own.grade == "go":
        yield _with_more_training(found)
    elif found.rung is not None and not found.rung.is_shown:
        yield _may_not_stay(found.rung, found.rung_label)


def _may_not_stay(rung: Gain, label: str | None) -> str:
    """Of a Go that persists by the mean of its few seeds, within what chance does."""
    between = (
        ""
        if rung.lower is None or rung.upper is None
        else f" {100 * rung.lower:+.3g}% to {100 * rung.upper:+.3g}% "
        f"({percent(1 - rung.level)} sure of each end),"
    )
    return (
        f"That it stays with {label} rests on {counted(rung.pairs, 'seed')}:{between} which may "
        "be chance."
    )


def _beaten(control: Control) -> str:
    gain = control.winner_gain
    assert gain.mean is not None, "it is a loss"
    return (
        f"The simpler {quoted(control.name)}, a control at the baseline's knobs, beats it: it is "
        f"{better(gain.mean)} than that ({_interval(gain)}{counted(gain.pairs, 'seed')})."
    )


def _unbeaten(control: Control) -> str:
    gain = control.winner_gain
    assert gain.mean is not None, "only these are compared"
    return (
        f"It is {better(gain.mean)} ({_interval(gain)}{counted(gain.pairs, 'seed')}, may be "
        f"chance) than the simpler {quoted(control.name)}, a control at the baseline's knobs: what "
        "was tuned is not shown to be worth having."
    )


def _interval(gain: Gain) -> str:
    if gain.lower is None or gain.upper is None:
        return ""
    return f"{100 * gain.lower:+.3g}% to {100 * gain.upper:+.3g}%, "


def _with_more_training(found: Findings) -> str:
    """Of a Go that is not shown to persist."""
    if found.rung is None:
        return "It was not tried with more training than the search's evaluations had."
    if found.rung.mean is None:
        return f"With {found.rung_label} the gain could not be measured."
    rung = next((c for c in found.conditions if c.rule == "rung"), None)
    if rung is not None and (rung.observed or 0.0) >= (rung.limit or 0.0):
        return _may_not_stay(found.rung, found.rung_label)
    share = kept(found)
    left = (
        "nothing of the gain is"
        if share is None or share <= 0
        else f"only {percent(share, 3)} of the gain is"
    )
    return f"With {found.rung_label} {left} left, on {counted(found.rung.pairs, 'seed')}."


def kept(found: Findings) -> float | None:
    """What share of the gain is left with more training; None where that is not known."""
    return next((c.observed for c in found.conditions if c.rule == "rung"), None)


def _of_a_no_go(found: Findings, own: Decided) -> Iterator[str]:
    """What it does not rule out."""
    gain = found.gain
    if own.no_go not in ("dead_space", "below_noise") or gain is None or gain.upper is None:
        return
    if gain.upper > 0:
        yield (
            f"A gain of up to {percent(gain.upper, 3)} cannot be ruled out with "
            f"{counted(gain.pairs, 'seed')}; a larger one of these settings is unlikely "
            f"({percent(1 - gain.level)} sure)."
        )
