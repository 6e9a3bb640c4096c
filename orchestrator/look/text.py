"""Each fact of a run worded once: plain text, made of the numbers of `Run`, without any marks."""

from collections.abc import Iterable, Iterator

from budgets.events import Amended, Fired, Overridden
from budgets.formatting import (
    counted,
    duration,
    listed,
    percent,
    precise_duration,
    quoted,
    sentence_case,
)
from budgets.pace import GOOD_ACCURACY, Timing
from budgets.plan import Caps
from budgets.schedule import next_action
from budgets.state import RunState
from budgets.stats import Gain, sd_interval
from budgets.verdict import Findings, beating, unbeaten
from orchestrator.look import words
from orchestrator.look.rows import Balance, Knob
from orchestrator.look.run import Run

CURRENCIES = {"device-hours": "device time", "wall-clock hours": "wall clock"}
"""Those that are shown as time, and what people call them."""

RECALIBRATE = "The calibration is out of date: calibrate with --again before the next run."
COMPARING = {
    "reference": "evaluating the baseline on fresh seeds",
    "finalists": "comparing the finalists on fresh seeds",
    "winner": "comparing the winner with the baseline on further fresh seeds",
    "long_run": "measuring the winner with more training",
}


# What was spent


def used(own: Balance, cap: float | None) -> str:
    """`8 of 16 evaluations`, `12 s of device time`, `1.20 of 5.00 cost`."""
    name = CURRENCIES.get(own.currency)
    return f"{of_cap(own, cap)} {own.currency if name is None else f'of {name}'}"


def of_cap(own: Balance, cap: float | None) -> str:
    """`8 of 16`, `12 s`: what is spent of a cap, if there is one."""
    return amount(own, own.spent) + ("" if cap is None else f" of {amount(own, cap)}")


def amount(own: Balance, value: float) -> str:
    """A number of that currency: `120`, `2 h 05 min`, `12.34`."""
    if own.currency in CURRENCIES:
        return precise_duration(3600 * value)
    return f"{value:,.2f}" if own.currency == "cost" else f"{value:,.0f}"


def balance(own: Balance) -> str:
    """`8 of 16 evaluations spent, 2 reserved, 6 free`."""
    free = "no cap" if own.free is None else f"{amount(own, own.free)} free"
    return f"{used(own, own.cap)} spent, {amount(own, own.reserved)} reserved, {free}"


def spent(run: Run) -> str:
    """`8 of 16 evaluations; 12 s of device time on 2 x AMD EPYC`, of every currency that counts."""
    planned = {"evaluations": run.plan.resolved.evaluations}
    where = {"device-hours": f" on {devices(run)}"}
    return "; ".join(
        used(own, planned.get(own.currency, own.cap)) + where.get(own.currency, "")
        for own in run.balances
        if own.counts
    )


def cost(run: Run) -> str:
    """What was spent, of what was planned or allowed; and what came of it."""
    counts, parts = run.counts, [spent(run)]
    if counts.in_flight:
        parts.append(f"{counts.in_flight} in flight")
    if counts.settled:
        parts.append(f"{sum(counts.failed.values()) or 'none'} failed")
    if counts.lost:
        parts.append(f"{counted(counts.lost, 'attempt')} lost")
    return f"{'; '.join(parts)}."


def devices(run: Run) -> str:
    """`2 x AMD EPYC`."""
    return f"{run.plan.devices.count} x {run.plan.devices.name}"


def caps(own: Caps) -> dict[str, str]:
    """Those there are, by name."""
    found = own.model_dump(mode="json", exclude_none=True)
    found |= {f"window {name}": value for name, value in found.pop("window", {}).items()}
    return {name.replace("_", " "): str(v).removesuffix(".0") for name, v in found.items()}


def caps_changed(before: Caps, after: Caps) -> str:
    """`evaluations 120 -> 60, hours no cap -> 9`; empty where nothing is."""
    old, new = caps(before), caps(after)
    named = [name for name in new if old.get(name) != new[name]]
    return ", ".join(f"{name} {old.get(name, 'no cap')} -> {new[name]}" for name in named)


def amended(event: Amended) -> str:
    """The caps that an amendment leaves in force, and why."""
    said = [f"{name} {value}" for name, value in caps(event.caps).items()]
    return f"{event.generations} generations, {', '.join(said)}: {event.reason}"


def rules(state: RunState, events: Iterable[Fired | Overridden]) -> list[str]:
    """Which rules fired or were overridden, at which generation, and why."""
    return [
        f"{one.rule}, generation {one.generation}: "
        f"{words.seen(state, one) if isinstance(one, Fired) else one.reason}"
        for one in events
    ]


# Time


def pace_line(run: Run) -> str:
    """On track or not, elapsed, left, when it ends, progress, evaluations an hour."""
    found, parts = run.pace, list[str]()
    if found.on_track is not None:
        parts.append("on track" if found.on_track else "off track")
    parts.append(f"{duration(3600 * found.elapsed_hours)} open")
    if found.remaining_hours is not None:
        parts.append(f"{duration(3600 * found.remaining_hours)} left")
    if found.remaining_hours and found.eta is not None and run.standing.goes_on:
        parts.append(f"ends {found.eta.astimezone():%a %H:%M}")
    share = min(int(100 * found.progress), 99 if found.progress < 1 else 100)
    parts.append(f"{share}% done")  # all of it only when all of it is done
    if found.evals_per_hour is not None:
        parts.append(f"{found.evals_per_hour:,.0f} evaluations an hour")
    return sentence_case(f"{', '.join(parts)}.")


def timing(found: Timing | None) -> str:
    """Estimated, actual and accuracy, and what to do where that is out of bounds; or nothing."""
    if found is None:
        return ""
    estimated, actual = (
        precise_duration(3600 * hours) for hours in (found.estimated_hours, found.actual_hours)
    )
    (low, high), mend = GOOD_ACCURACY, ""
    if found.is_telling and not found.is_good:
        mend = RECALIBRATE
    accuracy = f"accuracy {found.accuracy:.0f}%, good is {low:.0f} to {high:.0f}%"
    return f"Estimated {estimated} for what is done, took {actual}: {accuracy}. {mend}".rstrip()


# Evaluations


def statuses(run: Run) -> str:
    """`7 ok, 1 oom`."""
    found = run.evaluations_by_status.items()
    return ", ".join(f"{n} {status}" for status, n in found) or "none settled"


# What was found


def moves(knobs: tuple[Knob, ...]) -> str:
    """`Moved most: lr 0.02 to 0.035, tau_c 0.85 to 0.9 and 8 more.`, by shares of their ranges."""
    moved = sorted(filter(_share_moved, knobs), key=_share_moved, reverse=True)
    said = [f"{knob.name} {knob.baseline:.3g} to {knob.recommended:.3g}" for knob in moved]
    return f"Moved most: {listed(said, 4)}." if said else ""


def _share_moved(knob: Knob) -> float:
    to, unit = knob.recommended, knob.recommended_unit
    if to is None or unit is None or f"{to:.3g}" == f"{knob.baseline:.3g}":
        return 0.0
    return abs(unit - knob.baseline_unit)


def interval(gain: Gain) -> str:
    """`+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    seeds = counted(gain.pairs, "seed")
    if gain.mean is None:
        return f"not measurable ({seeds})"
    ends = ""
    if gain.lower is not None and gain.upper is not None:
        ends = f"{gain.lower:+.2%} to {gain.upper:+.2%}, "
    return f"{gain.mean:+.2%} ({ends}{seeds})"


def detectable(found: Findings) -> str:
    """What could have been seen on fresh seeds; empty where too few pairs say it.

    The detectable gain rests on few pairs: how well it is known is said with it.
    """
    gain, asked = found.gain, f"A Go asks for {percent(found.asked)}."
    if gain is None:
        return "The winner has not been compared with the baseline on fresh seeds."
    if gain.detectable is None or not gain.sd:
        return asked
    low, high = (gain.detectable * sd / gain.sd for sd in sd_interval(gain.sd, gain.pairs))
    return (
        f"Detectable gain at 80 % power on {gain.pairs} pairs with this noise: "
        f"{gain.detectable:.2%} (95%: {low:.2%} to {high:.2%}). {asked}"
    )


# What speaks against relying on it


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
            f"the winner's gain over it is {interval(one.winner_gain)}."
        )


def _of_a_go(found: Findings) -> Iterator[str]:
    over, longer, label = found.over_incumbent, found.long_run, found.long_run_label
    if over is not None and over.mean is not None and not over.is_shown:
        is_worse = "worse" if over.is_loss else "not shown to be better"
        yield f"It is {is_worse} than the winner of phase 1: {interval(over)}."
    condition = next((one for one in found.conditions if one.rule == "long_run"), None)
    is_kept = condition is not None and (condition.observed or 0.0) >= condition.limit
    if longer is None:
        yield "It was not tried with more training than the search's evaluations had."
    elif longer.mean is None:
        yield f"With {label} the gain could not be measured."
    elif is_kept and not longer.is_shown:
        yield f"That it stays with {label} may be chance: {interval(longer)}."
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
    if found.no_go == "below_noise" and gain is not None and (gain.upper or 0) > 0:
        yield (
            f"A gain of up to {percent(gain.upper or 0.0, 3)} cannot be ruled out with "
            f"{counted(gain.pairs, 'seed')}; a larger one of these settings is unlikely "
            f"({percent(1 - gain.level)} sure)."
        )


# Where it stands


def progress(run: Run) -> str:
    """`4 of 15 generations finished, comparing the finalists on fresh seeds.`"""
    state, resolved = run.state, run.plan.resolved
    if run.plan.phase in ("check", "campaign"):
        return f"{run.counts.settled} of {run.counts.planned} evaluations settled."
    said = f"{state.finished} of {resolved.generations} generations finished"
    comparing = COMPARING.get(next_action(state))
    if comparing is None:
        return f"{said}."
    ended = "" if state.ended is None else f" ({state.ended.rule} ended the search)"
    return f"{said}{ended}, {comparing}."
