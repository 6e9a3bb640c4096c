"""What a search amounts to: Go, Go that persists, or a No-Go with a name.

`decide` puts the conditions together once everything planned is settled.
"""

from typing import Literal

from budgets.comparison import Gain
from budgets.conditions import Condition, Rule, conditions
from budgets.events import Decided, Fired, NoGo
from budgets.finalists import winner
from budgets.gains import winner_gain
from budgets.luck import promise, spread
from budgets.state import RunState
from budgets.terms import Arm


def decide(state: RunState) -> tuple[tuple[Fired, ...], Decided]:
    """The decision, and the stop rules that speak with it. All that was planned is settled."""
    if state.panel("winner") is None:
        evidence = "every finalist failed on fresh seeds: nothing was found"
        return (), Decided(grade="no_go", no_go="pathological", evidence=evidence)
    found, best = conditions(state), winner(state)
    by_rule = {condition.rule: condition for condition in found}
    measured = winner_gain(state)
    assert best is not None
    assert measured is not None
    if not by_rule["signal"].met:
        return _no_signal(state, best, measured, by_rule["signal"])
    failed = [c for c in found if not c.met and c.rule != "rung"]
    on_rung = by_rule.get("rung")
    grade: Literal["go", "go_persists", "no_go"] = "go"
    no_go: NoGo | None = None
    if failed:
        grade, no_go = "no_go", _NAMES[failed[0].rule]
    elif on_rung is not None and on_rung.met:
        grade = "go_persists"
    elif on_rung is not None and (on_rung.observed is None or on_rung.observed <= 0):
        grade, no_go = "no_go", "does_not_persist"
    said = failed or [c for c in (by_rule["signal"], on_rung) if c is not None]
    return (), Decided(
        grade=grade,
        no_go=no_go,
        arm=best.name,
        point=best.point,
        gain=measured.mean,
        lower=measured.lower,
        evidence="; ".join(c.evidence for c in said),
    )


_NAMES: dict[Rule, NoGo] = {
    "stability": "unstable",
    "persistence": "does_not_persist",
    "sanity": "pathological",
}


def _no_signal(
    state: RunState, best: Arm, measured: Gain, missing: Condition
) -> tuple[tuple[Fired, ...], Decided]:
    """Why there is no Go: the knobs do nothing, or what looked good was luck, or too little."""
    limits, seen = state.plan.thresholds, spread(state)
    is_dead = seen is not None and seen <= limits.dead_spread
    evidence = missing.evidence
    if measured.is_shown and measured.mean is not None and measured.pairs >= limits.go_seeds:
        decided = Decided(
            grade="no_go",
            no_go="too_small",
            arm=best.name,
            point=best.point,
            gain=measured.mean,
            lower=measured.lower,
            evidence=evidence,
        )
        return (), decided
    if is_dead:
        evidence += (
            f"; the candidates' scores spread by {seen:.2f} of the noise between seeds: the knobs "
            "hardly move the score"
        )
    no_go: NoGo = "dead_space" if is_dead else "below_noise"
    decided = Decided(
        grade="no_go", no_go=no_go, gain=measured.mean, lower=measured.lower, evidence=evidence
    )
    return (_stop(state, measured),), decided


def _stop(state: RunState, measured: Gain) -> Fired:
    """Flat, or seed luck: the search's best score promised what fresh seeds do not show."""
    limits, seemed = state.plan.thresholds, promise(state)
    real = measured.mean or 0.0
    is_luck = seemed is not None and seemed >= limits.go_gain
    evidence = (
        f"the best score of the search seemed {seemed:+.2%} better than the baseline; on fresh "
        f"seeds the recommendation is {real:+.2%}: what won there was luck of the seed"
        if is_luck
        else f"after {state.accounts.evaluations} evaluations nothing is better than the baseline "
        f"beyond noise ({real:+.2%} on fresh seeds)"
    )
    return Fired(
        rule="seed_luck" if is_luck else "flat",
        generation=state.asked - 1,
        decision="stop",
        observed=real,
        limit=limits.go_gain,
        evidence=evidence,
    )
