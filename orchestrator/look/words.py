"""Rules and verdicts in words: what each has seen, made of its numbers. No sentence has its end."""

from collections.abc import Callable

from budgets.events import Decided, Fired, Status
from budgets.following import objection
from budgets.formatting import counted, in_bytes, listed, percent, precise_duration
from budgets.rules import Reading, Ruling, unexplained
from budgets.state import Batch, RunState
from budgets.stats import Gain, better
from budgets.verdict import (
    AVERAGE,
    LUCKIEST,
    MEAN,
    Condition,
    conditions,
    noise,
    spread,
    winner_gain,
)

FINALISTS = {
    AVERAGE: "the mean of the search distribution, averaged over its last third of generations",
    MEAN: "the mean of the search distribution at the end",
    LUCKIEST: "one of the luckiest candidates of the search",
}


# What holds a run up


def held_up(state: RunState, ruling: Ruling) -> str:
    """What the rules that hold the run up have seen."""
    return "; ".join(seen(state, trigger) for trigger in ruling.triggers)


def seen(state: RunState, one: Reading | Fired) -> str:
    """What a rule that fires has seen."""
    if one.rule in ("go", "unproven_knobs"):
        assert state.plan.source is not None, "it speaks of the run that is followed"
        return objection(state.plan.source, one.rule)
    return _SEEN[one.rule](state, one)


Seen = Reading | Fired


def _crash_rate(state: RunState, one: Seen) -> str:
    limits, generation = state.plan.thresholds, state.generation(one.generation)
    spared, kinds = one.facts["spared"], [*Status]
    if spared:
        kinds.remove(Status.NAN)
    causes = sorted({f"{r.status} ({r.cause})" for r in generation.failed if r.status in kinds})
    more = f"; {spared} more that are NaN do not count here" if spared else ""
    return (
        f"{_share(state, one, 'failed')} failed ({one.observed:.1%}; limit "
        f"{limits.crash_rate_pause:.0%} and {limits.crash_count_pause} evaluations): "
        f"{'; '.join(causes[:3])}{more}"
    )


def _share(state: RunState, one: Seen, fact: str) -> str:
    """`2 of 8 evaluations of generation 3`."""
    generation = state.generation(one.generation)
    count = one.facts[fact]
    return f"{count} of {generation.planned} evaluations of generation {generation.number}"


def _sustained_nan(state: RunState, one: Seen) -> str:
    limits, said = state.plan.thresholds, _share(state, one, "nans")
    if state.plan.search is None:
        return f"{said} are NaN: the baseline has no score to compare with"
    nans = unexplained(state, state.generation(one.generation))
    candidates = listed(dict.fromkeys(str(end.candidate) for end in nans), 4)
    return (
        f"{said} are NaN where no extreme point explains it (limit {limits.nan_rate_pause:.0%} and "
        f"{limits.nan_count_pause} evaluations), in {one.facts['running']} generations running "
        f"(limit {limits.nan_generations_pause}); NaN by now: candidates {candidates}"
    )


def _too_few_healthy(state: RunState, one: Seen) -> str:
    count = len(state.generation(one.generation).points)
    return (
        f"{one.observed:.0f} of {count} candidates of generation {one.generation} are healthy, the "
        f"search needs {one.limit:.0f}"
    )


def _baseline_failed(state: RunState, one: Seen) -> str:
    failed = next(r for r in state.generation(one.generation).failed if r.candidate == 0)
    return (
        f"the baseline failed on seed {failed.seed}: {failed.status} ({failed.cause}). Mend it, "
        "then check on other seeds (evaluation.seed)"
    )


def _setup_failed(state: RunState, one: Seen) -> str:
    where, cause = _lost(state, one)
    return (
        f"nothing can be evaluated, as {where} found: {cause.rstrip('.')}. Mend it and repeat the "
        "command: the evaluation is pending again"
    )


def _infrastructure(state: RunState, one: Seen) -> str:
    where, cause = _lost(state, one)
    return (
        f"{where} was lost {one.observed:.0f} times ({cause}). See to the machines, then resume: "
        "lost again it counts as its candidate's failure"
    )


def _lost(state: RunState, one: Seen) -> tuple[str, str]:
    """Which evaluation is meant, and what it was lost by at last."""
    candidate, seed = int(one.facts["candidate"]), int(one.facts["seed"])
    batch = _batch(state, one)
    ends = (own.settled for own in batch.attempts[candidate, seed])
    causes = [end.cause for end in ends if end is not None and end.status is Status.LOST]
    return f"candidate {candidate}, seed {seed} of {name_of(batch)}", causes[-1]


def _batch(state: RunState, one: Seen) -> Batch:
    name = one.facts["comparison"]
    return next((b for b in state.comparisons.values() if b.comparison == name), None) or (
        state.generation(one.generation)
    )


def name_of(batch: Batch) -> str:
    """`generation 3`, `the winner`."""
    return f"generation {batch.number}" if batch.comparison is None else f"the {batch.comparison}"


def _storage(_: RunState, one: Seen) -> str:
    free, needed = in_bytes(one.observed or 0), in_bytes(one.limit or 0)
    return (
        f"the run's disk is full ({free} free, {needed} needed to start an evaluation); make room "
        "and repeat the command"
    )


def _runaway_time(_: RunState, one: Seen) -> str:
    cpu = "CPU " * (one.facts["of"] == "CPU")
    return (
        f"the median evaluation of generation {one.generation} took {one.facts['seconds']:.1f} "
        f"{cpu}seconds, {one.observed:.1f} times the expected {one.facts['expected']:.1f} (limit "
        f"{one.limit:g})"
    )


def _patience(_: RunState, one: Seen) -> str:
    count = counted(int(one.facts["generations"]), "generation")
    return (
        f"the mean score got {one.observed:.3%} better over {count}, to {one.facts['after']:.5g} "
        f"from {one.facts['before']:.5g} (medians over generations; limit {one.limit:.3%})"
    )


def _budget(state: RunState, one: Seen) -> str:
    needed, free = against(one.observed or 0.0, max(one.limit or 0.0, 0.0), str(one.facts["unit"]))
    flag = f" ({one.facts['flag']})" if one.facts["flag"] else ""
    if "currency" in one.facts:
        return f"an attempt of {name_of(_batch(state, one))} needs {needed}, {free} are free{flag}"
    count = state.plan.resolved.per_generation
    beside = f" and the verdict's {one.facts['verdict']}" if one.facts["verdict"] else ""
    return (
        f"generation {one.generation} is expected to need {needed} (its {count} evaluations"
        f"{beside}, the last with its whole limit), {free} are free{flag}"
    )


def against(need: float, free: float, unit: str) -> tuple[str, str]:
    """What is needed and what is free, told apart: `18 s of device time`, `3.6 s`."""
    if unit not in ("hours", "device-hours"):
        return f"{need:.4g} {unit}", f"{free:.4g} {unit}"
    words = [precise_duration(3600 * hours) for hours in (need, free)]
    if words[0] == words[1]:
        words = [f"{3600 * hours:.6g} s" for hours in (need, free)]
    return words[0] + " of device time" * (unit == "device-hours"), words[1]


def _flat(_: RunState, one: Seen) -> str:
    return (
        f"after {one.facts['evaluations']} evaluations nothing is shown to be better than the "
        f"baseline: on fresh seeds the winner is {better(one.observed or 0.0)}"
    )


def _seed_luck(_: RunState, one: Seen) -> str:
    gain, upper = (better(float(one.facts[name])) for name in ("gain", "upper"))
    return (
        f"the search's best score seemed {better(one.observed or 0.0)} than the baseline; on fresh "
        f"seeds the winner is {gain}, or {upper} at most: what seemed more was luck of the seed"
    )


_SEEN: dict[str, Callable[[RunState, Seen], str]] = {
    "crash_rate": _crash_rate,
    "sustained_nan": _sustained_nan,
    "too_few_healthy": _too_few_healthy,
    "runaway_time": _runaway_time,
    "baseline_failed": _baseline_failed,
    "setup_failed": _setup_failed,
    "infrastructure": _infrastructure,
    "storage": _storage,
    "patience": _patience,
    "budget": _budget,
    "flat": _flat,
    "seed_luck": _seed_luck,
}


# What a Go needs, and the decision

_CONDITIONS = {
    "stability": ("failed evaluations of the last generations", "less than"),
    "persistence": (
        "the gain of the search's mean over its last third, on fresh seeds",
        "more than",
    ),
    "sanity": ("runs of the winner that failed, exploded or were unstable", "at most"),
    "rung": ("the share of the gain that is kept with more training", "beyond chance, at least"),
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
    shown = (one for one in found if (one.rule == "rung" if is_go else not one.met))
    signal = next(one for one in found if one.rule == "signal")
    parts = [condition(state, one) for one in dict.fromkeys((signal, *shown))]
    if own.no_go == "dead_space":
        seen, _ = spread(state)
        parts.append(
            f"candidates of one generation differ by no more than chance (sd {seen:.3g}, by chance "
            f"alone {noise(state):.3g}): the knobs hardly move the score"
        )
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
