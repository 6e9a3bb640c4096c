"""Rules and verdicts in words: what each has seen, made of its numbers. No sentence has its end."""

from budgets.events import Decided, Fired, Status
from budgets.following import objection
from budgets.formatting import counted, in_bytes, percent, precise_duration
from budgets.rules import Reading, Ruling
from budgets.state import Batch, RunState
from budgets.stats import Gain, better
from budgets.verdict import (
    AVERAGE,
    BEST_CANDIDATE,
    MEAN,
    Condition,
    conditions,
    winner_gain,
)

FINALISTS = {
    AVERAGE: "the mean of the search distribution, averaged over its last third of generations",
    MEAN: "the mean of the search distribution at the end",
    BEST_CANDIDATE: "one of the best candidates of the search",
}


# What holds a run up


def held_up(state: RunState, ruling: Ruling) -> str:
    """What the rules that hold the run up have seen."""
    return "; ".join(seen(state, trigger) for trigger in ruling.triggers)


def seen(state: RunState, one: Reading | Fired) -> str:  # noqa: PLR0912, PLR0915 - a rule each
    """What a rule that fires has seen."""
    limits, facts, where = state.plan.thresholds, one.facts, f"generation {one.generation}"
    observed, limit = one.observed or 0.0, one.limit or 0.0
    own = next((each for each in state.generations if each.number == one.generation), None)
    planned = 0 if own is None else own.planned
    match one.rule:
        case "go" | "unproven_knobs":
            assert state.plan.source is not None, "it speaks of the run that is followed"
            said = objection(state.plan.source, one.rule)
        case "crash_rate":
            failed = state.generation(one.generation).failed
            causes = sorted({f"{r.status} ({r.cause})" for r in failed})
            said = (
                f"{facts['failed']} of {planned} evaluations of {where} failed (limit "
                f"{limits.crash_rate_pause:.0%} and {limits.crash_count_pause} evaluations): "
                f"{'; '.join(causes[:3])}"
            )
        case "sustained_nan":
            said = (
                f"{facts['nans']} of {planned} evaluations of {where} are NaN where no extreme "
                f"point explains it (limit {limits.nan_rate_pause:.0%} and "
                f"{limits.nan_count_pause} evaluations), in {facts['running']} generations running "
                f"(limit {limits.nan_generations_pause})"
            )
        case "too_few_healthy":
            said = f"{observed:.0f} candidates of {where} are healthy, the search needs {limit:.0f}"
        case "runaway_time":
            seconds = f"{facts['seconds']:.1f} {'CPU ' * (facts['of'] == 'CPU')}seconds"
            said = f"the median evaluation of {where} took {seconds}, {observed:.1f} times what is "
            said += f"expected (limit {limit:g})"
        case "baseline_failed":
            end = next(r for r in state.generation(one.generation).failed if r.candidate == 0)
            said = f"the baseline failed on seed {end.seed}: {end.status} ({end.cause}). Mend it, "
            said += "then check on other seeds (evaluation.seed)"
        case "setup_failed":
            said = f"nothing can be evaluated, as {_lost(state, one)}. Mend it and repeat the "
            said += "command: the evaluation is pending again"
        case "infrastructure":
            said = f"lost {observed:.0f} times: {_lost(state, one)}. See to the machines, then "
            said += "resume: lost again it counts as its candidate's failure"
        case "storage":
            free, needed = in_bytes(observed), in_bytes(limit)
            said = f"the run's disk is full ({free} free, {needed} needed to start an evaluation); "
            said += "make room and repeat the command"
        case "patience":
            count = counted(int(facts["generations"]), "generation")
            said = f"the mean score got {observed:.3%} better over {count} (limit {limit:.3%})"
        case "budget":
            what = f"{where} is expected to need"
            if "currency" in facts:
                what = f"an attempt of {name_of(_batch(state, one))} needs"
            needed, free = against(observed, max(limit, 0.0), str(facts["unit"]))
            flag = f" ({facts['flag']})" if facts["flag"] else ""
            said = f"{what} {needed}, {free} are free{flag}"
        case "flat":
            said = f"after {facts['evaluations']} evaluations nothing is shown to be better than "
            said += f"the baseline: on fresh seeds the winner is {better(observed)}"
        case "seed_luck":
            said = f"the search's best score seemed {better(observed)} than the baseline; on fresh "
            said += f"seeds the winner is {better(float(facts['upper']))} at most: the rest was "
            said += "luck of the seed"
        case rule:
            raise ValueError(f"no words for the rule {rule}")
    return said


def _lost(state: RunState, one: Reading | Fired) -> str:
    """Which evaluation is meant, and what it was lost by at last."""
    candidate, seed = int(one.facts["candidate"]), int(one.facts["seed"])
    batch = _batch(state, one)
    ends = (own.settled for own in batch.attempts[candidate, seed])
    causes = [end.cause for end in ends if end is not None and end.status is Status.LOST]
    cause = causes[-1].rstrip(".")
    return f"candidate {candidate}, seed {seed} of {name_of(batch)} found: {cause}"


def _batch(state: RunState, one: Reading | Fired) -> Batch:
    name = one.facts["comparison"]
    found = next((b for b in state.comparisons.values() if b.comparison == name), None)
    return found or state.generation(one.generation)


def name_of(batch: Batch) -> str:
    """`generation 3`, `the winner`."""
    return f"generation {batch.number}" if batch.comparison is None else f"the {batch.comparison}"


def against(need: float, free: float, unit: str) -> tuple[str, str]:
    """What is needed and what is free, told apart: `18 s of device time`, `3.6 s`."""
    if unit not in ("hours", "device-hours"):
        return f"{need:.4g} {unit}", f"{free:.4g} {unit}"
    words = [precise_duration(3600 * hours) for hours in (need, free)]
    if words[0] == words[1]:
        words = [f"{3600 * hours:.6g} s" for hours in (need, free)]
    return words[0] + " of device time" * (unit == "device-hours"), words[1]


# What a Go needs, and the decision

_CONDITIONS = {
    "stability": ("failed evaluations of the last generations", "less than"),
    "persistence": (
        "the gain of the search's mean over its last third, on fresh seeds",
        "more than",
    ),
    "sanity": ("runs of the winner that failed, exploded or were unstable", "at most"),
    "long_run": (
        "the share of the gain that is kept with more training",
        "beyond chance, at least",
    ),
}
"""What is observed, and how it is compared with its limit."""


def condition(state: RunState, one: Condition) -> str:
    """What is observed of something that a Go needs."""
    if one.rule == "signal":
        limits = state.plan.thresholds
        return (
            f"{gain_in_words(state, winner_gain(state))} (a Go needs {percent(limits.go_gain)} "
            f"or more, that bound above 0, and {limits.go_seeds} seeds or more)"
        )
    what, needed = _CONDITIONS[one.rule]
    seen = "not measured" if one.observed is None else percent(one.observed, 3)
    return f"{what}: {seen} (needed: {needed} {percent(one.limit)})"


def decision(state: RunState, own: Decided) -> str:
    """What speaks for the decision: the gain, and what a Go needs that is not met."""
    found = conditions(state)
    if not found:
        return "every finalist failed on every fresh seed, so nothing was found"
    is_go = own.grade != "no_go"
    shown = (one for one in found if (one.rule == "long_run" if is_go else not one.met))
    signal = next(one for one in found if one.rule == "signal")
    parts = [condition(state, one) for one in dict.fromkeys((signal, *shown))]
    return "; ".join(parts)


def gain_in_words(state: RunState, found: Gain | None) -> str:
    """What the winner is shown to gain, or why that is not known: without what a Go needs."""
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
