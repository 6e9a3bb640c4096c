"""What speaks against relying on what a search found, in a sentence or two each."""

from collections.abc import Iterator

from budgets.formatting import counted, listed, percent, quoted
from budgets.verdict import Findings, beating, unbeaten
from orchestrator.look import text
from orchestrator.look.rows import Knob
from orchestrator.look.run import Run


def cautions(run: Run) -> tuple[str, ...]:
    """The weightiest first; empty where there is nothing to be careful of.

    A control that is better than the winner comes before everything else.
    """
    said, found = list[str](), run.findings
    if found is not None and run.state.decided is not None:
        said += _of_controls(found) if found.grade != "no_go" or beating(found) else ()
        said += _of_a_no_go(found) if found.grade == "no_go" else _of_a_go(found)
    if ends := [knob for knob in run.knobs if knob.at_end is not None]:
        places = listed(map(_at_end, ends))
        ways = {"lower": "downwards", "upper": "upwards"}
        wider = listed(f"{knob.name} {ways[knob.at_end or 'upper']}" for knob in ends)
        said.append(
            f"The best lies at the end of a range: {places}. Better values may lie beyond: widen "
            f"{wider} unless nothing can lie there."
        )
    return tuple(said)


def _at_end(knob: Knob) -> str:
    value = knob.low if knob.at_end == "lower" else knob.high
    return f"{knob.name} = {value:.4g} ({knob.at_end} end of {knob.low:.4g} to {knob.high:.4g})"


def _of_controls(found: Findings) -> Iterator[str]:
    beaten_by = beating(found)
    for one in beaten_by or unbeaten(found):
        is_better = "better" if one in beaten_by else "not shown to be worse"
        yield (
            f"The simpler {quoted(one.name)}, a control at the baseline's knobs, is {is_better}: "
            f"the winner's gain over it is {text.interval(one.winner_gain)}."
        )


def _of_a_go(found: Findings) -> Iterator[str]:
    over, longer, label = found.over_incumbent, found.long_run, found.long_run_label
    if over is not None and over.mean is not None and not over.is_shown:
        is_worse = "worse" if over.is_loss else "not shown to be better"
        yield f"It is {is_worse} than the winner of phase 1: {text.interval(over)}."
    condition = next((one for one in found.conditions if one.rule == "long_run"), None)
    is_kept = condition is not None and (condition.observed or 0.0) >= condition.limit
    if longer is None:
        yield "It was not tried with more training than the search's evaluations had."
    elif longer.mean is None:
        yield f"With {label} the gain could not be measured."
    elif is_kept and not longer.is_shown:
        yield f"That it stays with {label} may be chance: {text.interval(longer)}."
    elif not is_kept:
        share = kept(found) or 0.0
        left = "nothing" if share <= 0 else f"only {percent(share, 3)}"
        yield f"With {label} {left} of the gain is left, on {counted(longer.pairs, 'seed')}."


def kept(found: Findings) -> float | None:
    """What share of the gain is left with more training; None where that is not known."""
    return next((one.observed for one in found.conditions if one.rule == "long_run"), None)


def _of_a_no_go(found: Findings) -> Iterator[str]:
    """What it does not rule out."""
    gain = found.gain
    if found.no_go in ("dead_space", "below_noise") and gain is not None and (gain.upper or 0) > 0:
        yield (
            f"A gain of up to {percent(gain.upper or 0.0, 3)} cannot be ruled out with "
            f"{counted(gain.pairs, 'seed')}; a larger one of these settings is unlikely "
            f"({percent(1 - gain.level)} sure)."
        )
