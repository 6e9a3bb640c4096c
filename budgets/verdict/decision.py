"""What a search amounts to: Go, Go that persists, or a No-Go with a name.

Each condition of a Go is a pure function of the state: what was observed, what it was held against,
and what that means in words. `decide` puts them together once everything planned is settled.
"""

from typing import Literal

from budgets.events import Decided, Fired, Grade, NoGo
from budgets.formatting import percent
from budgets.plan import Arm, Frozen
from budgets.state import RunState
from budgets.stats import Gain, better
from budgets.verdict.finalists import winner
from budgets.verdict.gains import (
    average_gain,
    baseline_scores,
    luck,
    noise,
    promise,
    rung_gain,
    spread,
    spread_freedom,
    winner_gain,
)

LUCKY = 0.01
"""How often the best of as many baselines would seem better than what counts as luck of the seed
rather than as the noise there is."""

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

    Nothing is kept where the winner fails there on every seed.
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
    met = enough and kept is not None and kept >= asked
    if met and found.lower is not None:
        sure = percent(1 - found.level)
        said += f", with {sure} confidence a gain of {100 * found.lower:+.3g}% or more"
    why = f"{where} {said} (to persist, {percent(asked)} or more must be, above chance)"
    met = met and found.is_shown
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


# The decision


def decide(state: RunState) -> tuple[tuple[Fired, ...], Decided]:
    """The decision, and the stop rules that speak with it. All that was planned is settled."""
    best, measured = winner(state), winner_gain(state)
    if best is None or measured is None:
        evidence = "every finalist failed on every fresh seed, so nothing was found"
        return (), Decided(grade="no_go", no_go="pathological", evidence=evidence)
    found = {condition.rule: condition for condition in conditions(state)}
    if not found["signal"].met:
        return _without_signal(state, measured, found)
    grade, no_go = _grade(found)
    missing = [c for c in found.values() if not c.met and c.rule != "rung"]
    said = missing or [found[rule] for rule in ("signal", "rung") if rule in found]
    recommended = best if no_go is None else None
    return (), _decided(grade, no_go, measured, "; ".join(c.evidence for c in said), recommended)


_NAMES: dict[Rule, NoGo] = {
    "stability": "unstable",
    "persistence": "does_not_persist",
    "sanity": "pathological",
}


def _grade(found: dict[Rule, Condition]) -> tuple[Grade, NoGo | None]:
    """Where a gain was shown. A rung that could not be measured leaves the Go as it is."""
    for rule, name in _NAMES.items():
        if not found[rule].met:
            return "no_go", name
    rung = found.get("rung")
    if rung is not None and rung.met:
        return "go_persists", None
    if rung is not None and rung.observed is not None and rung.observed <= 0:
        return "no_go", "does_not_persist"
    return "go", None


def _without_signal(
    state: RunState, measured: Gain, found: dict[Rule, Condition]
) -> tuple[tuple[Fired, ...], Decided]:
    """Why there is no Go: too few pairs, too little, knobs that do nothing, or only luck."""
    limits, evidence = state.plan.thresholds, found["signal"].evidence
    if measured.mean is None or measured.pairs < limits.go_seeds:
        return (), _too_few(state, measured, found)
    if measured.is_shown:
        return (), _decided("no_go", "too_small", measured, evidence)
    seen, by_chance = spread(state), noise(state)
    if spread_freedom(state) < limits.dead_freedom:  # too few candidates to say so
        seen = None
    if seen is not None and by_chance is not None and seen <= limits.dead_spread * by_chance:
        evidence += (
            f"; candidates of one generation differ by no more than chance (sd {seen:.3g}, by "
            f"chance alone {by_chance:.3g}): the knobs hardly move the score"
        )
        decided = _decided("no_go", "dead_space", measured, evidence)
    else:
        decided = _decided("no_go", "below_noise", measured, evidence)
    return (_stop(state, measured, measured.mean),), decided


def _too_few(state: RunState, measured: Gain, found: dict[Rule, Condition]) -> Decided:
    """Nothing can be said of a gain: runs failed, or too few seeds were planned."""
    panel, said = state.panel("winner"), [found["signal"].evidence]
    assert panel is not None
    planned, baseline = panel.seeds[0], baseline_scores(state)
    no_go: NoGo = "below_noise"
    if not found["sanity"].met:
        no_go = "pathological"
        said.append(found["sanity"].evidence)
    elif measured.pairs < min(state.plan.thresholds.go_seeds, len(planned)):
        no_go = "unstable"
        failed = sum(seed not in baseline for seed in planned)
        said.append(f"the baseline failed on {failed} of {len(planned)}")
    return _decided("no_go", no_go, measured, "; ".join(said))


def _decided(
    grade: Grade, no_go: NoGo | None, measured: Gain, evidence: str, best: Arm | None = None
) -> Decided:
    """With a recommendation after a Go only: whatever else won may have won by luck."""
    return Decided(
        grade=grade,
        no_go=no_go,
        arm="" if best is None else best.name,
        point=None if best is None else best.point,
        gain=measured.mean,
        lower=measured.lower,
        evidence=evidence,
    )


def _stop(state: RunState, measured: Gain, real: float) -> Fired:
    """Seed luck, where the best score promised more than fresh seeds and noise allow; or flat."""
    asked, seemed, chance = state.plan.thresholds.go_gain, promise(state), luck(state, LUCKY)
    most = max(asked, measured.upper or 0.0, chance or 0.0)
    if seemed is None or seemed < most:
        rule, observed, limit = "flat", real, asked
        evidence = (
            f"after {state.accounts.evaluations} evaluations nothing is shown to be better than "
            f"the baseline: on fresh seeds the winner is {better(real)}"
        )
    else:
        rule, observed, limit = "seed_luck", seemed, most
        evidence = (
            f"the search's best score seemed {better(seemed)} than the baseline; on fresh seeds "
            f"the winner is {better(real)}, or {better(measured.upper or 0.0)} at most: what "
            "seemed more was luck of the seed"
        )
    return Fired(
        rule=rule,
        generation=state.asked - 1,
        decision="stop",
        observed=observed,
        limit=limit,
        evidence=evidence,
    )
