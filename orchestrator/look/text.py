"""Each fact of a run worded once: plain text made from numbers, without Markdown.

The functions of the second half, about rules and verdicts, return clauses without a full stop.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from statistics import fmean

from budgets import verdict
from budgets.effects import CampaignReport, Difference, Effect, Matrix
from budgets.events import Amended, Decided, Fired, Overridden, Status
from budgets.formatting import (
    counted,
    duration,
    in_bytes,
    listed,
    number,
    percent,
    precise_duration,
    quoted,
    sentence_case,
    shortened,
)
from budgets.plan import Direction
from budgets.rules import Reading
from budgets.schedule import GOOD_ACCURACY, Timing, next_action
from budgets.state import Batch, RunState
from budgets.stats import Gain, better
from orchestrator.look.run import Balance, Knob, Run
from orchestrator.plan.differences import objection

CURRENCIES = {"device-hours": "device time", "wall-clock hours": "wall clock"}
"""Currencies that are shown as a time, and their names then."""

MOST_NAME, MOST_NOTES = 48, 8  # characters of a condition; cells whose notes are printed

FINALISTS = {
    verdict.AVERAGE: "the mean of the search distribution, over its last third of generations",
    verdict.MEAN: "the mean of the search distribution at the end",
    verdict.BEST_CANDIDATE: "one of the best candidates of the search",
}

# What was spent


def amount(own: Balance, value: float) -> str:
    """Return an amount of a currency: `120`, `2 h 05 min`, `12.34`."""
    if own.currency in CURRENCIES:
        return precise_duration(3600 * value)
    return f"{value:,.2f}" if own.currency == "cost" else f"{value:,.0f}"


def of_cap(run: Run, own: Balance) -> str:
    """Return `8 of 16`, of the planned evaluations or of the cap; `12 s` without a cap."""
    most = run.plan.resolved.evaluations if own.currency == "evaluations" else own.cap
    return amount(own, own.spent) + ("" if most is None else f" of {amount(own, most)}")


def balances(run: Run, *, with_reserved: bool = False) -> list[str]:
    """Return what is spent of each currency: `8 of 16 evaluations, 2 reserved`."""
    said = []
    for own in run.balances:
        name = CURRENCIES.get(own.currency)
        line = f"{of_cap(run, own)} {f'of {name}' if name else own.currency}"
        line += f" on {devices(run)}" if own.currency == "device-hours" else ""
        if with_reserved and own.reserved:
            line += f", {amount(own, own.reserved)} reserved"
        said.append(line)
    return said


def cost(run: Run) -> str:
    """Return what was spent, and how many evaluations failed or were lost."""
    counts, parts = run.counts, balances(run)
    if counts.settled:
        parts.append(f"{sum(counts.failed.values()) or 'none'} failed")
    if counts.lost:
        parts.append(f"{counted(counts.lost, 'attempt')} lost")
    return f"{'; '.join(parts)}."


def ledger(run: Run) -> str:
    """Return which records a view is as of, as Markdown."""
    return f"{run.state.records} records, head `{run.state.head}`."


def counts(run: Run) -> str:
    """Return `7 ok, 1 oom, 0 lost, 2 in flight, 6 left`, comparisons included."""
    own = run.counts
    failed = "".join(f", {number} {status}" for status, number in own.failed.items())
    return f"{own.ok} ok{failed}, {own.lost} lost, {own.in_flight} in flight, {own.to_come} left"


def devices(run: Run) -> str:
    """Return `2 x AMD EPYC`."""
    return f"{run.plan.devices.count} x {run.plan.devices.name}"


def amended(event: Amended) -> str:
    """Return the caps that an amendment set, and its reason."""
    caps = event.caps.model_dump(mode="json", exclude_none=True)
    caps |= {f"window {name}": value for name, value in caps.pop("window", {}).items()}
    said = [f"{k.replace('_', ' ')} {str(v).removesuffix('.0')}" for k, v in caps.items()]
    return f"{event.generations} generations, {', '.join(said)}: {event.reason}"


# Time and evaluations


def pace_line(run: Run) -> str:
    """Return on track or not, elapsed, left, ETA, progress and rate."""
    found, parts = run.pace, list[str]()
    if run.overdue:
        parts.append(f"{counted(run.overdue, 'evaluation')} overdue")
    if found.on_track is not None:
        parts.append("on track" if found.on_track else "off track")
    parts.append(f"{duration(3600 * found.elapsed_hours)} elapsed")
    if found.remaining_hours is not None:
        parts.append(f"{duration(3600 * found.remaining_hours)} left")
    if found.remaining_hours and found.eta is not None and run.standing.goes_on:
        parts.append(f"ends {found.eta.astimezone():%a %H:%M}")
    share = min(int(100 * found.progress), 99 if found.progress < 1 else 100)
    parts.append(f"{share}% done")  # 100 % only when all of it is done
    if found.evals_per_hour is not None:
        parts.append(f"{found.evals_per_hour:,.0f} evaluations an hour")
    return sentence_case(f"{', '.join(parts)}.")


def timing(found: Timing | None) -> str:
    """Return estimated and actual time with the accuracy; empty without an estimate."""
    if found is None:
        return ""
    estimated = precise_duration(3600 * found.estimated_hours)
    actual, (low, high) = precise_duration(3600 * found.actual_hours), GOOD_ACCURACY
    said = f"Without start-up and calibration: estimated {estimated}, took {actual}, accuracy "
    said += f"{found.accuracy:.0f}% (good: {low:.0f} to {high:.0f}%)."
    if found.is_out_of_date:
        said += " The calibration is out of date: calibrate --again before the next run."
    return said


def progress(run: Run) -> str:
    """Return `4 of 15 generations finished, comparing the finalists on fresh seeds.`"""
    state, resolved = run.state, run.plan.resolved
    if run.plan.phase in ("check", "campaign"):
        return f"{run.counts.settled} of {run.counts.planned} evaluations settled."
    said = f"{state.finished} of {resolved.generations} generations finished"
    comparing = {
        "reference": "evaluating the baseline on fresh seeds",
        "finalists": "comparing the finalists on fresh seeds",
        "winner": "comparing the winner with the baseline on further fresh seeds",
        "long_run": "measuring the winner with more training",
    }.get(next_action(state))
    if comparing is None:
        return f"{said}."
    ended = "" if state.ended is None else f" ({state.ended.rule} ended the search)"
    return f"{said}{ended}, {comparing}."


# Gains and knobs


def interval(gain: Gain) -> str:
    """Return `+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    seeds = counted(gain.pairs, "seed")
    if gain.mean is None:
        return f"not measurable ({seeds})"
    ends = ""
    if gain.lower is not None and gain.upper is not None:
        ends = f"{gain.lower:+.2%} to {gain.upper:+.2%}, "
    return f"{gain.mean:+.2%} ({ends}{seeds})"


def detectable(gain: Gain | None) -> str:
    """Return the true gain that its seeds show with a power of 80 %; empty where not known."""
    if gain is None or not gain.detectable:
        return ""
    return f"Detectable gain at 80 % power: {percent(gain.detectable, 3)}."


def moves(knobs: tuple[Knob, ...]) -> str:
    """Return `Moved most: lr 0.02 to 0.035, tau_c 0.85 to 0.9 and 8 more.`, by shares of ranges."""
    moved = sorted(filter(_share_moved, knobs), key=_share_moved, reverse=True)
    said = [f"{knob.name} {knob.baseline:.3g} to {knob.recommended:.3g}" for knob in moved]
    return f"Moved most: {listed(said, 4)}." if said else ""


def _share_moved(knob: Knob) -> float:
    to, unit = knob.recommended, knob.recommended_unit
    if to is None or unit is None or f"{to:.3g}" == f"{knob.baseline:.3g}":
        return 0.0
    return abs(unit - knob.baseline_unit)


def cautions(run: Run) -> tuple[str, ...]:
    """Return what speaks against relying on the result, the most important first."""
    said, found = list[str](), run.findings
    if found is not None and run.state.decided is not None:
        said += _of_controls(found)
        said += _of_a_no_go(found) if found.grade == "no_go" else _of_a_go(found)
    if ends := [knob for knob in run.knobs if knob.at_end is not None]:
        wider = listed(
            f"{knob.name} {'downwards' if knob.at_end == 'lower' else 'upwards'}" for knob in ends
        )
        said.append(
            f"The best lies at the end of a range: {listed(map(_at_end, ends))}. Better values may "
            f"lie beyond: widen {wider} unless nothing can lie there."
        )
    return tuple(said)


def _at_end(knob: Knob) -> str:
    value = knob.low if knob.at_end == "lower" else knob.high
    return f"{knob.name} = {value:.4g} ({knob.at_end} end of {knob.low:.4g} to {knob.high:.4g})"


def _of_controls(found: verdict.Findings) -> Iterator[str]:
    beaten_by = [one for one in found.controls if one.winner_gain.is_loss]
    compared = [one for one in found.controls if one.winner_gain.mean is not None]
    unbeaten = [one for one in compared if not one.winner_gain.is_shown]
    for one in beaten_by or (unbeaten if found.grade != "no_go" else ()):
        is_better = "better" if beaten_by else "not shown to be worse"
        yield (
            f"The simpler {quoted(one.name)}, a control at the baseline's knobs, is {is_better}: "
            f"the winner's gain over it is {interval(one.winner_gain)}."
        )


def _of_a_go(found: verdict.Findings) -> Iterator[str]:
    over, longer, label = found.over_incumbent, found.long_run, found.long_run_label
    if over is not None and over.mean is not None and not over.is_shown:
        is_worse = "worse" if over.is_loss else "not shown to be better"
        yield f"It is {is_worse} than the winner of phase 1: {interval(over)}."
    share = kept(found) or 0.0
    least = next((one.limit for one in found.conditions if one.rule == "long_run"), 0.0)
    if longer is None:
        yield "It was not tried with more training than the search's evaluations had."
    elif longer.mean is None:
        yield f"With {label} the gain could not be measured."
    elif share < least:
        left = "nothing" if share <= 0 else f"only {percent(share, 3)}"
        yield f"With {label} {left} of the gain is left, on {counted(longer.pairs, 'seed')}."
    elif not longer.is_shown:
        yield f"That it stays with {label} may be chance: {interval(longer)}."


def kept(found: verdict.Findings) -> float | None:
    """Return the share of the gain that is left with more training; None where not known."""
    return next((one.observed for one in found.conditions if one.rule == "long_run"), None)


def _of_a_no_go(found: verdict.Findings) -> Iterator[str]:
    gain = found.gain
    if found.no_go == "below_noise" and gain is not None and (gain.upper or 0) > 0:
        yield (
            f"A gain of up to {percent(gain.upper or 0.0, 3)} cannot be ruled out with "
            f"{counted(gain.pairs, 'seed')}; a larger one of these settings is unlikely "
            f"({percent(1 - gain.level)} sure)."
        )


# Campaigns


def effect(own: Effect) -> str:
    """Return `n_embd: 64 against 32`."""
    return f"{own.factor}: {own.level} against {own.against}"


def difference(own: Difference, direction: Direction) -> str:
    """Return `3.1% better (2.2 to 4.0)`; in the score's unit where there are no percents.

    A negative bound is on the other side of none.
    """
    if own.mean is None:
        return "not estimated: a condition has no score"
    mean, lower, upper, digits, unit = own.percent, own.percent_lower, own.percent_upper, ".2f", "%"
    if mean is None:
        mean, lower, upper, digits, unit = own.mean, own.lower, own.upper, ".3g", ""
    is_better = (mean < 0) == (direction == "minimize")
    said = f"{abs(mean):{digits}}{unit} {'better' if is_better else 'worse'}"
    if lower is None or upper is None:
        return said
    low, high = sorted((-lower, -upper) if mean < 0 else (lower, upper))
    return f"{said} ({low:{digits}} to {high:{digits}})"


def campaign(found: CampaignReport, cells: str = "evaluations") -> str:
    """Return what was found beyond chance. `cells`: what the campaign consists of."""
    settled = found.evaluations - found.unsettled
    if not found.is_over:
        return f"{settled} of {found.evaluations} {cells} settled."
    failed = settled - found.statuses.get("ok", 0)
    said = [
        f"{effect(one)} is {difference(one.difference, found.direction)}" for one in found.found
    ]
    for row in found.rows:
        for against in row.comparisons:
            if against.difference.is_found and (row.is_control or not found.effects):
                size = difference(against.difference, found.direction)
                said.append(f"{row.name} is {size} than {against.control}")
    beyond = f"Beyond chance: {listed(said, 4)}." if said else "No difference is beyond chance."
    return f"{settled} of {found.evaluations} {cells} settled, {failed} failed. {beyond}"


def matrix(own: Matrix) -> Iterator[str]:
    """Yield a line for each condition: its name, mean score and how its cells stand; then notes."""
    conditions = own.campaign.conditions
    names = shortened([one.name for one in conditions], MOST_NAME)
    for name, row in zip(names, own.rows, strict=True):
        scores = [cell.score for cell in row if cell.score is not None]
        mean = number(fmean(scores) if scores else None)
        stands = Counter(cell.status for cell in row).most_common()
        said = ", ".join(f"{count} {status}" for status, count in stands)
        yield f"{name:{max(map(len, names))}}  {mean:>10}  {said}"
    noted = [
        f"  {condition.name}, seed {seed}: {cell.status}: {cell.note}"
        for condition, row in zip(conditions, own.rows, strict=True)
        for seed, cell in zip(own.campaign.seeds, row, strict=True)
        if cell.note
    ]
    yield from noted[:MOST_NOTES]
    if len(noted) > MOST_NOTES:
        yield f"  and {len(noted) - MOST_NOTES} more; --json has them all."


# Rules


def rules(state: RunState, events: Iterable[Fired | Overridden]) -> list[str]:
    """Return each rule that fired or was overridden, its generation and why."""
    return [
        f"{one.rule}, generation {one.generation}: "
        f"{rule(state, one) if isinstance(one, Fired) else one.reason}"
        for one in events
    ]


def rule(state: RunState, one: Reading | Fired) -> str:  # noqa: PLR0912, PLR0915 - a case a rule
    """Return what a rule that fires observed, its limit, and what to do where it is not obvious."""
    limits, facts, where = state.plan.thresholds, one.facts, f"generation {one.generation}"
    observed, limit = one.observed or 0.0, one.limit or 0.0
    batch = next((each for each in state.generations if each.number == one.generation), None)
    planned, failed = (0, []) if batch is None else (batch.planned, batch.failed)
    match one.rule:
        case "go" | "unproven_knobs":
            assert state.plan.source is not None, "the rule is about the run that is followed"
            said = objection(state.plan.source, one.rule)
        case "crash_rate":
            causes = sorted({f"{end.status} ({end.cause})" for end in failed})
            said = f"{facts['failed']} of {planned} evaluations of {where} failed (limit "
            said += f"{limits.crash_rate_pause:.0%} and {limits.crash_count_pause} evaluations): "
            said += "; ".join(causes[:3])
        case "sustained_nan":
            said = (
                f"{facts['nans']} of {planned} evaluations of {where} are NaN without an extreme "
            )
            said += (
                f"point (limit {limits.nan_rate_pause:.0%}), for {facts['running']} generations "
            )
            said += f"in a row (limit {limits.nan_generations_pause})"
        case "runaway_time":
            unit = "CPU seconds" if facts["of"] == "CPU" else "seconds"
            said = f"the median evaluation of {where} took {facts['seconds']:.1f} {unit}, "
            said += f"{observed:.1f} times what is expected (limit {limit:g})"
        case "baseline_failed":
            end = next(one for one in failed if one.candidate == 0)
            said = f"the baseline failed on seed {end.seed}: {end.status} ({end.cause})"
        case "setup_failed":
            said = f"nothing can be evaluated: {_lost(state, one)}"
        case "infrastructure":
            said = f"lost {observed:.0f} times: {_lost(state, one)}. Check the machines, then "
            said += "resume: lost again, it counts as a failure"
        case "storage":
            free, needed = in_bytes(observed), in_bytes(limit)
            said = f"the run's disk is full: {free} free, {needed} needed to start an evaluation"
        case "patience":
            count = counted(int(facts["generations"]), "generation")
            said = f"the mean score got {observed:.3%} better over {count} (limit {limit:.3%})"
        case "budget":
            what = f"{where} is expected to need"
            if "currency" in facts:
                what = f"an attempt of {_batch_name(_batch(state, one))} needs"
            needed, free = need_and_free(observed, max(limit, 0.0), str(facts["unit"]))
            flag = f" ({facts['flag']})" if facts["flag"] else ""
            said = f"{what} {needed}, {free} are free{flag}"
        case "flat":
            said = f"after {facts['evaluations']} evaluations nothing is shown to be better than "
            said += f"the baseline: on fresh seeds the winner is {better(observed)}"
        case "seed_luck":
            said = f"the search's best score seemed {better(observed)}, but on fresh seeds the "
            said += f"winner is {better(float(facts['upper']))} at most: the rest was chance"
        case unknown:
            raise ValueError(f"no words for the rule {unknown}")
    return said


def _lost(state: RunState, one: Reading | Fired) -> str:
    """Return which evaluation was lost, and the last cause."""
    candidate, seed = int(one.facts["candidate"]), int(one.facts["seed"])
    batch = _batch(state, one)
    ends = (own.settled for own in batch.attempts[candidate, seed])
    causes = [end.cause for end in ends if end is not None and end.status is Status.LOST]
    cause = causes[-1].rstrip(".")
    return f"candidate {candidate}, seed {seed} of {_batch_name(batch)} found: {cause}"


def _batch(state: RunState, one: Reading | Fired) -> Batch:
    name = one.facts["comparison"]
    found = next((b for b in state.comparisons.values() if b.comparison == name), None)
    return found or state.generations[one.generation]


def _batch_name(batch: Batch) -> str:
    return f"generation {batch.number}" if batch.comparison is None else f"the {batch.comparison}"


def need_and_free(need: float, free: float, unit: str) -> tuple[str, str]:
    """Return both amounts with enough digits to differ: `18 s of device time`, `3.6 s`."""
    if unit not in ("hours", "device-hours"):
        return f"{need:.4g} {unit}", f"{free:.4g} {unit}"
    words = [precise_duration(3600 * hours) for hours in (need, free)]
    if words[0] == words[1]:
        words = [f"{3600 * hours:.6g} s" for hours in (need, free)]
    return words[0] + " of device time" * (unit == "device-hours"), words[1]


# Verdicts


def condition(state: RunState, one: verdict.Condition) -> str:
    """Return what a condition of a Go observed, and what it needs."""
    if one.rule == "signal":
        limits, gain = state.plan.thresholds, verdict.winner_gain(state)
        return (
            f"{winner_in_words(state, gain)} (a Go needs {percent(limits.go_gain)} or more, a "
            f"lower bound above 0, and {limits.go_seeds} seeds or more)"
        )
    what, needed = {
        "stability": ("failed evaluations of the last generations", "less than"),
        "persistence": ("gain of the search's mean over its last third", "more than"),
        "sanity": ("runs of the winner that failed, exploded or were unstable", "at most"),
        "long_run": (
            "share of the gain that is kept with more training",
            "beyond chance, at least",
        ),
    }[one.rule]
    observed = "not measured" if one.observed is None else percent(one.observed, 3)
    return f"{what}: {observed} (needed: {needed} {percent(one.limit)})"


def decision(state: RunState, own: Decided) -> str:
    """Return the gain behind a verdict, and the conditions of a Go that are not met."""
    found = verdict.conditions(state)
    if not found:
        return "every finalist failed on every fresh seed, so nothing was found"
    is_go = own.grade != "no_go"
    shown = (one for one in found if (one.rule == "long_run" if is_go else not one.met))
    signal = next(one for one in found if one.rule == "signal")
    parts = [condition(state, one) for one in dict.fromkeys((signal, *shown))]
    return "; ".join(parts)


def winner_in_words(state: RunState, found: Gain | None) -> str:
    """Return the winner's gain with its bound, or why it is not known."""
    if found is None:
        return "the winner has not been compared with the baseline on fresh seeds"
    if found.mean is None and found.pairs:
        return "a gain is a share of the baseline's score, and that is 0"
    if found.mean is None:
        return "there is no fresh seed on which both the winner and the baseline have a score"
    planned = 0 if state.plan.confirmation is None else state.plan.confirmation.seeds
    seeds = f"{found.pairs} fresh seeds"
    if found.pairs != planned:
        seeds = f"{found.pairs} of {planned} fresh seeds"
    said = f"on {seeds} the search's winner is {better(found.mean)} than the baseline"
    if found.sd == 0:
        return f"{said} on each of them"
    if found.lower is None:
        return said
    sure = "at least" if found.lower >= 0 else "at worst"
    return f"{said}, with {percent(1 - found.level)} confidence {sure} {better(found.lower)}"
