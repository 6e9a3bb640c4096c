"""What a search amounts to: Go, Go that persists, or a No-Go with a name.

`decide` puts the conditions together once everything planned is settled.
"""

from budgets.events import Decided, Fired, Grade, NoGo
from budgets.state import RunState
from budgets.stats import Gain, better
from budgets.terms import Arm
from budgets.verdict.conditions import Condition, Rule, conditions
from budgets.verdict.finalists import winner
from budgets.verdict.gains import baseline_scores, winner_gain
from budgets.verdict.luck import luck, noise, promise, spread, spread_freedom

LUCKY = 0.01
"""How often the best of as many baselines would seem better than what counts as luck of the seed
rather than as the noise there is."""


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
