"""Each fact of a run worded once: plain text made from numbers, without Markdown.

The functions of the second half, about rules and verdicts, return clauses without a full stop.
"""

from collections.abc import Iterable, Iterator
from typing import get_args

from rich.filesize import decimal

from budgets import verdict
from budgets.accounts import Account
from budgets.events import Amended, Decided, Facts, Fired, Overridden, Status
from budgets.formatting import better, counted, duration, listed, number, percent, sentence_case
from budgets.plan import ComparisonName
from budgets.schedule import GOOD_ACCURACY, Pace, next_action
from budgets.state import RunState
from budgets.stats import Gain
from orchestrator.look.run import Knob, Run, comparison_name
from orchestrator.plan.phase2 import objection

RULES = {
    "crash_rate": "{failed} of {planned} evaluations of {where} failed (limit {limit:.0%}): "
    "{causes}",
    "sustained_nan": "{failed} of {planned} evaluations of {where} are NaN without an extreme "
    "point (limit {limit:.0%})",
    "runaway_time": "the median evaluation of {where} took {seconds:.1f} s of {of} time, "
    "{observed:.1f} times what is expected (limit {limit:g})",
    "baseline_failed": "the baseline failed: {causes}",
    "setup_failed": "nothing can be evaluated: {lost}",
    "infrastructure": "lost {observed:.0f} times: {lost}. Check the machines, then resume: lost "
    "again, it counts as a failure",
    "storage": "the run's disk is full: {has} free, {needed} needed to start an evaluation",
    "patience": "the mean score got {observed:.3%} better over {generations} generations (limit "
    "{limit:.3%})",
    "budget": "{what} needs {observed:.4g} {unit}, {free:.4g} are free{option}",
    "flat": "after {evaluations} evaluations nothing is shown to be better than the baseline: on "
    "fresh seeds the winner is {better}",
    "seed_luck": "the search's best score seemed {better}, but on fresh seeds the winner is "
    "{at_most} at most: the rest was chance",
}
"""What a rule that fires observed, and its limit."""

CONDITIONS = {
    "signal": ("gain of the winner on fresh seeds", "beyond chance, at least"),
    "stability": ("failed evaluations of the last generations", "less than"),
    "persistence": ("gain of the search's mean over its last third", "more than"),
    "sanity": ("runs of the winner that failed, exploded or were unstable", "at most"),
    "long_run": ("share of the gain kept with more training", "beyond chance, at least"),
}
"""What a condition of a Go observes, and what it needs."""

# What was spent


def amount(own: Account, value: float) -> str:
    """Return a count or milliseconds of a currency in its unit: `120`, `2 h 05 min`, `12.34`."""
    value /= own.per_unit
    if own.unit in ("hours", "device-hours"):
        return duration(3600 * value)
    return f"{value:,.2f}" if own.name == "money" else f"{value:,.0f}"


def of_cap(run: Run, own: Account) -> str:
    """Return `8 of 16`, of the planned evaluations or of the cap; `12 s` without a cap."""
    most = run.plan.resolved.evaluations if own.name == "evaluations" else own.cap
    return amount(own, own.spent) + ("" if most is None else f" of {amount(own, most)}")


def balances(run: Run) -> list[str]:
    """Return what is spent of each currency: `8 of 16 evaluations, 2 reserved`."""
    said = []
    for own in run.balances:
        of = "" if own.unit == "evaluations" else "of "
        line = f"{of_cap(run, own)} {of}{own.name}"
        if own.unit == "device-hours":
            line += f" on {run.plan.devices.count} x {run.plan.devices.name}"
        said.append(line + f", {amount(own, own.reserved)} reserved" * bool(own.reserved))
    return said


def counts(run: Run) -> str:
    """Return `7 ok, 1 oom, 2 in flight, 6 left`, comparisons included."""
    own = run.counts
    others = {"lost": own.lost, "in flight": own.in_flight, "left": own.to_come}
    shown = {"ok": own.ok} | own.failed | {name: n for name, n in others.items() if n}
    return ", ".join(f"{n} {name}" for name, n in shown.items())


def amended(event: Amended) -> str:
    """Return the caps that an amendment set, and its reason."""
    caps = event.caps.model_dump(mode="json", exclude_none=True)
    caps |= {f"window {name}": value for name, value in caps.pop("window", {}).items()}
    said = [f"{k.replace('_', ' ')} {str(v).removesuffix('.0')}" for k, v in caps.items()]
    return f"{', '.join(said)}: {event.reason}"


# Time and evaluations


def pace_line(run: Run) -> str:
    """Return on track or not, elapsed, left, ETA, progress and rate."""
    found, rate, goes_on = run.pace, run.pace.evals_per_hour, run.standing.goes_on
    # As of the last record: an evaluation may have taken longer since.
    is_past = goes_on and bool(found.remaining_hours and found.eta and found.eta < run.now)
    eta = found.eta if goes_on and not is_past else None
    left = None if is_past else found.remaining_hours
    parts = (
        f"{counted(run.overdue, 'evaluation')} overdue" if run.overdue else "",
        {True: "on track", False: "off track", None: ""}[found.on_track],
        f"{duration(3600 * found.elapsed_hours)} elapsed",
        "" if left is None else f"{duration(3600 * left)} left",
        "" if eta is None else f"ends {eta.astimezone():%a %H:%M}",
        f"{int(100 * found.progress)}% done",  # 100 % only when all of it is done
        "" if rate is None else f"{rate:,.0f} evaluations an hour",
    )
    return sentence_case(f"{', '.join(filter(None, parts))}.")


def timing(found: Pace) -> str:
    """Return estimated and actual time with the accuracy; empty without an estimate."""
    if found.estimated_hours is None or found.accuracy is None:
        return ""
    hours, (low, high) = (found.estimated_hours, found.elapsed_hours), GOOD_ACCURACY
    estimated, actual = (duration(3600 * one) for one in hours)
    said = f"Estimated {estimated}, took {actual} without the calibration: accuracy "
    said += f"{found.accuracy:.0f}% (good: {low:.0f} to {high:.0f}%)."
    if found.is_out_of_date:
        said += " The calibration is out of date: calibrate --again before the next run."
    return said


def progress(run: Run) -> str:
    """Return `4 of 15 generations finished, comparing the finalists on fresh seeds.`"""
    if run.plan.phase in ("check", "campaign"):
        return f"{run.counts.settled} of {run.counts.planned} evaluations settled."
    said = f"{run.state.finished} of {run.plan.resolved.generations} generations finished"
    action = next_action(run.state)
    if action in get_args(ComparisonName):
        said += f", comparing on fresh seeds ({comparison_name(action)})"
    return f"{said}."


# Scores, gains and knobs


def scores(run: Run) -> str:
    """Return `Mean 0.72, baseline 1, noise sd 0.1, best 0.54, best by chance 0.98.`, the last ones.

    Empty without any.
    """
    last = next((one for one in reversed(run.generations) if one.mean is not None), None)
    if last is None:
        return ""
    known = {"mean": last.mean}
    if run.baseline is not None:
        known |= {"baseline": run.baseline.mean, "noise sd": run.baseline.sd}
    known |= {"best": last.best_so_far, "best by chance": last.best_by_chance}
    said = (f"{name} {number(one)}" for name, one in known.items() if one is not None)
    return f"{sentence_case(', '.join(said))}."


def interval(gain: Gain) -> str:
    """Return `+1.59% (+0.42% to +2.76%, 8 seeds)`."""
    seeds = counted(gain.pairs, "seed")
    if gain.mean is None:
        return f"not measurable ({seeds})"
    ends = ""
    if gain.lower is not None and gain.upper is not None:
        ends = f"{gain.lower:+.2%} to {gain.upper:+.2%}, "
    return f"{gain.mean:+.2%} ({ends}{seeds})"


def moves(knobs: tuple[Knob, ...]) -> str:
    """Return `Moved most: lr 0.02 to 0.035, tau_c 0.85 to 0.9 and 8 more.`, by shares of ranges."""
    moved = [one for one in knobs if one.moved]
    moved.sort(key=lambda one: -abs(one.moved or 0.0))
    said = [f"{knob.name} {knob.baseline:.3g} to {knob.recommended:.3g}" for knob in moved]
    return f"Moved most: {listed(said, 4)}." if said else ""


def cautions(run: Run) -> tuple[str, ...]:
    """Return what speaks against relying on the result, the most important first."""
    said, found = list[str](), run.findings
    if found is not None and run.state.decided is not None:
        said += _of_a_verdict(found)
    ends = [_at_end(knob) for knob in run.knobs if knob.at_end is not None]
    if ends:
        said.append(f"Better values may lie beyond the end of a range: {listed(ends)}.")
    return tuple(said)


def _at_end(knob: Knob) -> str:
    value, wards = (knob.low, "down") if knob.at_end == "lower" else (knob.high, "up")
    ends = f"{knob.at_end} end of {knob.low:.4g} to {knob.high:.4g}"
    return f"{knob.name} = {value:.4g} ({ends}: widen {knob.name} {wards}wards)"


def _of_a_verdict(found: verdict.Findings) -> Iterator[str]:
    is_go, gain = found.grade != "no_go", found.one("winner")
    for one in (*found.of("over_control"), *found.of("over_incumbent")):
        own, how = one.gain, "worse" if one.gain.is_loss else "not shown to be better"
        if own.is_loss or (is_go and own.mean is not None and not own.is_shown):
            yield f'The winner is {how} than "{one.against}": {interval(own)}.'
    if found.grade == "go":
        yield "That the gain persists with more training is not shown."
    if found.no_go == "below_noise" and gain is not None and (gain.upper or 0) > 0:
        seeds = counted(gain.pairs, "seed")
        yield f"A gain of up to {percent(gain.upper or 0, 3)} cannot be ruled out with {seeds}."


# Rules


def rules(state: RunState, events: Iterable[Fired | Overridden]) -> list[str]:
    """Return each rule that fired or was overridden, its generation and why."""
    return [
        f"{one.rule}, generation {one.generation}: "
        f"{rule(state, one) if isinstance(one, Fired) else one.reason}"
        for one in events
    ]


def rule(state: RunState, one: Fired) -> str:
    """Return what a rule that fires observed, its limit, and what to do where it is not obvious."""
    if one.rule in ("go", "unproven_knobs"):
        assert state.plan.source is not None, "the rule is about the run that is followed"
        return objection(state.plan.source, one.rule)
    facts, observed, limit = dict(one.facts), one.observed, one.limit
    where, name = f"generation {one.generation}", facts.get("comparison") or None
    named = (each for each in state.batches() if each.comparison == name)
    batch = next((each for each in named if name or each.number == one.generation), None)
    if "planned" in facts:
        where = "the generations judged together"
    if batch is not None:  # None: of a generation that did not begin
        failed = {f"{end.status} ({end.cause})" for end in batch.failed}
        facts = Facts(planned=batch.planned, causes="; ".join(sorted(failed)[:3])) | facts
    if batch is not None and "seed" in facts:
        ends = (own.settled for own in batch.attempts[int(facts["candidate"]), int(facts["seed"])])
        causes = [end.cause for end in ends if end is not None and end.status is Status.LOST]
        facts["lost"] = "candidate {candidate}, seed {seed}: ".format(**facts) + causes[-1]
    if one.rule == "storage":
        facts |= {"has": decimal(int(observed)), "needed": decimal(int(limit))}
    if one.rule == "budget":
        what = f"an attempt of {where}" if "currency" in facts else where
        option = f" ({facts['flag']})" * bool(facts["flag"])
        facts |= {"what": what, "free": max(limit, 0.0), "option": option}
    return RULES[one.rule].format(
        **facts,
        where=where,
        observed=observed,
        limit=limit,
        better=better(observed),
        at_most=better(float(facts.get("upper", 0.0))),
    )


# Verdicts


def condition(one: verdict.Condition) -> str:
    """Return what a condition of a Go observed, and what it needs."""
    observed = "not measured" if one.observed is None else percent(one.observed, 3)
    what, needed = CONDITIONS[one.rule]
    return f"{what}: {observed} (needed: {needed} {percent(one.limit)})"


def decision(state: RunState, own: Decided) -> str:
    """Return the gain behind a verdict, and the conditions of a Go that are not met."""
    found = verdict.findings(state)
    if found is None or not found.conditions:
        return "every finalist failed on every fresh seed, so nothing was found"
    said = [_of_the_winner(found.one("winner"))]
    if own.grade == "no_go":
        said += [condition(one) for one in found.conditions if not one.met]
    elif kept := next((one.observed for one in found.conditions if one.rule == "long_run"), None):
        said.append(f"with more training {percent(kept, 3)} of the gain is kept")
    return "; ".join(said)


def _of_the_winner(found: Gain | None) -> str:
    """Return the winner's gain with its bound, or that it is not known."""
    if found is None or found.mean is None or found.lower is None:
        return "the winner's gain over the baseline cannot be measured on fresh seeds"
    seeds, sure = counted(found.pairs, "fresh seed"), "least" if found.lower >= 0 else "worst"
    return (
        f"on {seeds} the search's winner is {better(found.mean)} than the baseline, with "
        f"{percent(1 - found.level)} confidence at {sure} {better(found.lower)}"
    )
