"""What a Go needs, condition by condition.

Pure functions of the state. A condition says what was observed, what it was held against, and what
that means in words.
"""

from typing import Literal

from budgets.frozen import Frozen
from budgets.state import RunState
from budgets.stats import Gain, better
from budgets.verdict.gains import average_gain, rung_gain, winner_gain
from budgets.words import percent

RUNG_ABOVE_CHANCE = 2
"""Version of the rules since which the gain on more FLOPs must be more than chance."""

Rule = Literal["signal", "stability", "persistence", "sanity", "rung"]


class Condition(Frozen):
    """Something a Go needs, and whether it is there."""

    rule: Rule
    met: bool
    observed: float | None
    limit: float | None
    evidence: str


def signal(state: RunState) -> Condition:
    """The gain on fresh seeds is as large as asked for, and more than chance."""
    limits, found = state.plan.thresholds, winner_gain(state)
    asked = (
        f"(a Go needs {percent(limits.go_gain)} or more, that bound above 0, and "
        f"{limits.go_seeds} seeds or more)"
    )
    if found is None or found.mean is None:
        why = f"{_no_gain(found)} {asked}"
        return _condition("signal", None, limits.go_gain, why, met=False)
    enough = found.pairs >= limits.go_seeds
    met = enough and found.mean >= limits.go_gain and found.is_shown
    said = f"{gain_in_words(state, found)} {asked}"
    return _condition("signal", found.mean, limits.go_gain, said, met=met)


def gain_in_words(state: RunState, found: Gain) -> str:
    """What the winner is shown to gain, or why that is not known: without what a Go needs."""
    if found.mean is None:
        return _no_gain(found)
    said = (
        f"on {_fresh(state, found.pairs)} the search's winner is {better(found.mean)} than the "
        "baseline"
    )
    if found.sd == 0:
        return f"{said} on each of them"
    if found.lower is None:
        return said
    sure = "at least" if found.lower >= 0 else "at worst"
    return f"{said}, with {percent(1 - found.level)} confidence {sure} {better(found.lower)}"


def _fresh(state: RunState, count: int) -> str:
    """`8 fresh seeds`, `4 of 8 fresh seeds`."""
    planned = 0 if state.plan.confirmation is None else state.plan.confirmation.seeds
    return f"{count} fresh seeds" if count == planned else f"{count} of {planned} fresh seeds"


def _no_gain(found: Gain | None) -> str:
    if found is None:
        return "the winner has not been compared with the baseline on fresh seeds"
    if found.pairs:
        return "a gain is a share of the baseline's score, and that is 0"
    return "there is no fresh seed on which both the winner and the baseline have a score"


def stability(state: RunState) -> Condition:
    """Few evaluations of the last generations failed by themselves."""
    limits = state.plan.thresholds
    last = state.told[-limits.go_generations :]
    results = [r for g in last for r in g.results()]
    failed = sum(len(g.failed) for g in last)
    rate = failed / len(results) if results else 1.0
    where = "generation" if len(last) == 1 else f"{len(last)} generations"
    why = (
        f"{failed} of {len(results)} evaluations of the last {where} failed ({rate:.1%}; a Go "
        f"needs less than {percent(limits.go_crash_rate)})"
    )
    return _condition("stability", rate, limits.go_crash_rate, why, met=rate < limits.go_crash_rate)


def persistence(state: RunState) -> Condition:
    """The search as a whole became better than the baseline and stayed so, not one lucky candidate.

    Judged by the mean of its distribution over the last third of the generations, paired on fresh
    seeds. The candidates' own scores cannot tell: generations do not share their seeds, and
    candidates that spread around a good mean are worse than it.
    """
    found = average_gain(state)
    if len(state.told) < 2:
        why = "fewer than two generations say nothing of what persists"
        return _condition("persistence", None, 0.0, why, met=False)
    if found is None or found.mean is None:
        why = "the mean of the search's distribution could not be compared with the baseline"
        return _condition("persistence", None, 0.0, why, met=False)
    why = (
        f"the mean of the search's distribution over its last third of generations is "
        f"{better(found.mean)} than the baseline on {found.pairs} fresh seeds (a Go needs more "
        "than 0: the gain is the search's, not one lucky candidate's)"
    )
    return _condition("persistence", found.mean, 0.0, why, met=found.mean > 0)


def sanity(state: RunState) -> Condition:
    """The winner's own training runs are sound: they end, do not explode and are not unstable."""
    limits, panel = state.plan.thresholds, state.panel("winner")
    results = [] if panel is None else [r for r in panel.results() if r.candidate == 0]
    sick = [
        r
        for r in results
        if r.score is None or r.metrics.get("exploding") or r.metrics.get("unstable")
    ]
    share = len(sick) / len(results) if results else 1.0
    why = (
        f"{len(sick)} of the winner's {len(results)} runs on fresh seeds failed, exploded or were "
        f"unstable (a Go allows {percent(limits.go_pathological)})"
    )
    return _condition(
        "sanity", share, limits.go_pathological, why, met=share <= limits.go_pathological
    )


def rung(state: RunState) -> Condition | None:
    """Enough of the gain is kept on more FLOPs, above chance; None where that was not tried.

    Nothing is kept where the winner fails there on every seed. Chance counts since version 2 of
    the rules: a run keeps those that it was planned with.
    """
    found, at_budget = rung_gain(state), winner_gain(state)
    confirmation, panel = state.plan.confirmation, state.panel("rung")
    if found is None or at_budget is None or confirmation is None or confirmation.rung is None:
        return None
    asked, where = state.plan.thresholds.persist_share, f"with {confirmation.rung.varied.label}"
    kept = found.mean / at_budget.mean if found.mean is not None and at_budget.mean else None
    if found.mean is None and panel is not None and not panel.scores_by_seed(1):
        kept, said = 0.0, "the winner fails on every seed"
    elif found.mean is None or kept is None:
        said = "the gain could not be measured: the baseline has no score there"
    else:
        held = percent(kept, 3) if kept > 0 else "nothing"
        seeds = "1 seed" if found.pairs == 1 else f"{found.pairs} seeds"
        said = (
            f"the winner is {better(found.mean)} than the baseline on {seeds}: {held} of the gain "
            "is kept"
        )
    enough = found.pairs >= min(2, confirmation.rung.seeds)  # one that is left is a glimpse
    met, shown = enough and kept is not None and kept >= asked, ""
    if confirmation.version >= RUNG_ABOVE_CHANCE:
        shown, sure = ", above chance", percent(1 - found.level)
        if met and found.lower is not None:
            said += f", with {sure} confidence a gain of {100 * found.lower:+.3g}% or more"
        met = met and found.is_shown
    why = f"{where} {said} (to persist, {percent(asked)} or more must be{shown})"
    return _condition("rung", kept, asked, why, met=met)


def _condition(
    rule: Rule, observed: float | None, limit: float, evidence: str, *, met: bool
) -> Condition:
    return Condition(rule=rule, met=met, observed=observed, limit=limit, evidence=evidence)


def conditions(state: RunState) -> tuple[Condition, ...]:
    """All of a Go, as far as they can be judged; empty before the winner was compared."""
    panel = state.panel("winner")
    if panel is None or not panel.closed:
        return ()
    judged = (signal(state), stability(state), persistence(state), sanity(state), rung(state))
    return tuple(condition for condition in judged if condition is not None)


def is_promising(state: RunState) -> bool:
    """Whether the winner is a Go at this budget, so that the rung is worth its price."""
    judged = (signal, stability, persistence, sanity)
    return all(rule(state).met for rule in judged)
