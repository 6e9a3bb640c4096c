"""What is to be known before anybody relies on a verdict."""

from collections.abc import Iterator

from budgets.events import Decided
from budgets.statistics.comparison import Gain, better
from budgets.verdict.findings import Control, Findings, unbeaten
from budgets.words import counted, percent
from orchestrator.report.answers.words import quoted, uncapitalized


def cautions(found: Findings, own: Decided) -> str:
    """In a sentence each, to stand behind `But`; empty where there is nothing to be careful of."""
    own_kind = _of_a_no_go if own.grade == "no_go" else _of_a_go
    return uncapitalized(" ".join(own_kind(found, own)))


def _of_a_go(found: Findings, own: Decided) -> Iterator[str]:
    yield from map(_unbeaten, unbeaten(found))
    over = found.over_incumbent
    if over is not None and over.mean is not None and not over.is_shown:
        yield (
            "It is not shown to be better than the winner of the run that it follows: "
            f"{better(over.mean)} than that on {counted(over.pairs, 'seed')}, which may be chance."
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


def _unbeaten(control: Control) -> str:
    gain = control.winner_gain
    assert gain.mean is not None, "only these are compared"
    chance = ", may be chance" if gain.upper is None or gain.upper > 0 else ""
    return (
        f"It is {better(gain.mean)} ({counted(gain.pairs, 'seed')}{chance}) than the simpler "
        f"{quoted(control.name)}, a control at the baseline's knobs: what was tuned is not "
        "shown to be worth having."
    )


def _with_more_training(found: Findings) -> str:
    """Of a Go that is not shown to persist."""
    if found.rung is None:
        return "It was not tried with more training than the search's evaluations had."
    if found.rung.mean is None:
        return f"With {found.rung_label} the gain could not be measured."
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
