"""What a search amounts to: Go, Go that persists, or a No-Go with a name; condition by condition.

Pure functions of the state. A condition says what was observed, what it was held against, and what
that means in words. `decide` puts them together once everything planned is settled.
"""

from math import ceil, sqrt
from statistics import fmean, variance
from typing import Literal

from pydantic import BaseModel, ConfigDict

from budgets.comparison import Gain, gain
from budgets.events import Decided, Fired, NoGo
from budgets.finalists import (
    INCUMBENT,
    baseline_scores,
    full_ones,
    mean_score,
    scores_of,
    winner,
)
from budgets.state import Generation, RunState
from budgets.terms import Arm

Rule = Literal["signal", "stability", "persistence", "sanity", "rung"]


class Condition(BaseModel):
    """Something a Go needs, and whether it is there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Rule
    met: bool
    observed: float | None
    limit: float | None
    evidence: str


def winner_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline, on seeds nobody was picked on; None before they are."""
    panel = state.panel("winner")
    if panel is None:
        return None
    scores = panel.scores_by_seed(0)
    return gain(scores, baseline_scores(state), state.plan.thresholds.go_level)


def incumbent_gain(state: RunState) -> Gain | None:
    """The earlier winner's gain over the baseline on the same seeds; None without one."""
    scores = scores_of(state.panel("reference"), INCUMBENT)
    level = state.plan.thresholds.go_level
    return gain(scores, baseline_scores(state), level) if scores else None


def rung_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline on the rung; None before it is settled."""
    panel = state.panel("rung")
    if panel is None or not panel.closed:
        return None
    baseline, best = panel.scores_by_seed(0), panel.scores_by_seed(1)
    return gain(best, baseline, state.plan.thresholds.go_level)


def control_gains(state: RunState) -> list[tuple[str, Gain, Gain]]:
    """For each control its gain over the baseline, and the winner's gain over it."""
    level, panel = state.plan.thresholds.go_level, state.panel("winner")
    best = panel.scores_by_seed(0) if panel is not None else {}
    baseline = baseline_scores(state)
    found = []
    for one in (state.panel("reference"), panel):
        for arm in one.arms if one is not None else ():
            if arm.settings:
                scores = scores_of(one, arm.name)
                found.append((arm.name, gain(scores, baseline, level), gain(best, scores, level)))
    return found


def signal(state: RunState) -> Condition:
    """The gain on fresh seeds is as large as asked for, and more than chance."""
    limits, found = state.plan.thresholds, winner_gain(state)
    if found is None or found.mean is None:
        why = "the winner was not compared with the baseline on fresh seeds"
        return Condition(
            rule="signal", met=False, observed=None, limit=limits.go_gain, evidence=why
        )
    enough = found.pairs >= limits.go_seeds
    met = enough and found.mean >= limits.go_gain and found.is_shown
    said = f"{found.mean:+.2%} on {found.pairs} fresh seeds"
    if found.lower is not None:
        said += f", at least {found.lower:+.2%} with {1 - found.level:.0%} confidence"
    asked = f"asked: {limits.go_gain:.2%}, above 0, on {limits.go_seeds} seeds or more"
    return Condition(
        rule="signal",
        met=met,
        observed=found.mean,
        limit=limits.go_gain,
        evidence=f"the recommendation's gain over the baseline is {said} ({asked})",
    )


def stability(state: RunState) -> Condition:
    """Few evaluations of the last generations failed by themselves."""
    limits = state.plan.thresholds
    last = state.told[-limits.go_generations :]
    results = [r for g in last for r in g.results()]
    failed = sum(len(g.failed) for g in last)
    rate = failed / len(results) if results else 1.0
    return Condition(
        rule="stability",
        met=rate < limits.go_crash_rate,
        observed=rate,
        limit=limits.go_crash_rate,
        evidence=(
            f"{failed} of {len(results)} evaluations of the last {len(last)} generations failed "
            f"({rate:.1%}, a Go needs less than {limits.go_crash_rate:.0%})"
        ),
    )


def persistence(state: RunState) -> Condition:
    """The candidates as a whole became better and stayed so; one lucky one cannot do that.

    Held against the first third of the generations, or against the baseline: a search that begins
    at an earlier winner has nothing to gain over its own beginning. Short generations compare with
    neither full ones nor the baseline: the kind of the last one is judged, if there are two of it.
    """
    of_a_kind = _last_of_a_kind(state)
    means = [mean for g in of_a_kind if (mean := mean_score(g)) is not None]
    third = ceil(len(means) / 3)
    baseline = baseline_mean(state)
    if len(means) < 2 or not baseline:
        why = "fewer than two generations say nothing of what persists"
        return Condition(rule="persistence", met=False, observed=None, limit=0.0, evidence=why)
    first, last = fmean(means[:third]), fmean(means[-third:])
    is_full = of_a_kind[-1].is_full
    against = max(first, baseline) if is_full else first
    change = (against - last) / abs(baseline)
    what = "the first" if against == first else "the baseline"
    kind = "generations" if is_full else "short generations"
    return Condition(
        rule="persistence",
        met=change > 0,
        observed=change,
        limit=0.0,
        evidence=(
            f"the candidates of the last {third} {kind} score {change:+.2%} better on average "
            f"than {what} (a Go needs more than 0)"
        ),
    )


def _last_of_a_kind(state: RunState) -> list[Generation]:
    """The generations told that are as long as the last one; the others where it is alone."""
    full, short = full_ones(state), [g for g in state.told if not g.is_full]
    own, others = (short, full) if state.told and not state.told[-1].is_full else (full, short)
    return others if len(own) < 2 <= len(others) else own


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
    return Condition(
        rule="sanity",
        met=share <= limits.go_pathological,
        observed=share,
        limit=limits.go_pathological,
        evidence=(
            f"{len(sick)} of the winner's {len(results)} runs on fresh seeds failed, exploded or "
            f"were unstable (a Go allows {limits.go_pathological:.0%})"
        ),
    )


def rung(state: RunState) -> Condition | None:
    """Enough of the gain is kept on more FLOPs; None where that was not planned, or not asked."""
    found, at_budget = rung_gain(state), winner_gain(state)
    confirmation = state.plan.confirmation
    if found is None or at_budget is None or confirmation is None or confirmation.rung is None:
        return None
    asked = state.plan.thresholds.persist_share
    if found.mean is None or not at_budget.mean:
        kept, said = None, "could not be measured"
    else:
        kept = found.mean / at_budget.mean
        said = f"is {found.mean:+.2%}, {kept:.0%} of that at this budget"
    return Condition(
        rule="rung",
        met=kept is not None and kept >= asked,
        observed=kept,
        limit=asked,
        evidence=(
            f"at {confirmation.rung.varied.label} the gain {said}, on {found.pairs} seeds "
            f"(to persist it must keep {asked:.0%})"
        ),
    )


def conditions(state: RunState) -> tuple[Condition, ...]:
    """All of a Go, as far as they can be judged; empty before the winner was compared."""
    panel = state.panel("winner")
    if panel is None or not panel.closed:
        return ()
    judged = (signal(state), stability(state), persistence(state), sanity(state), rung(state))
    return tuple(condition for condition in judged if condition is not None)


def has_winner(state: RunState) -> bool:
    """Whether a finalist has a score at all, or may still get one."""
    panel = state.panel("finalists")
    return panel is None or not panel.closed or winner(state) is not None


def is_promising(state: RunState) -> bool:
    """Whether the winner is a Go at this budget, so that the rung is worth its price."""
    judged = (signal, stability, persistence, sanity)
    return bool(state.told) and all(rule(state).met for rule in judged)


def baseline_mean(state: RunState) -> float | None:
    """The baseline's score, by the calibration or by the confirmation's own evaluations."""
    calibration = state.plan.calibration
    if calibration is not None and calibration.mean_score is not None:
        return calibration.mean_score
    scores = baseline_scores(state)
    return fmean(scores.values()) if scores else None


def spread(state: RunState) -> float | None:
    """The candidates' sd within a generation in noise sds, over the first third of generations.

    There the search steps furthest. None where the noise was not measured; it is that of full
    evaluations.
    """
    calibration, full = state.plan.calibration, full_ones(state)
    noise = calibration.sd_score if calibration is not None else None
    healthy = [_healthy(g) for g in full[: ceil(len(full) / 3)]]
    parts = [(variance(scores), len(scores) - 1) for scores in healthy if len(scores) > 1]
    if not noise or not parts:
        return None
    freedom = sum(weight for _, weight in parts)
    return sqrt(sum(value * weight for value, weight in parts) / freedom) / noise


def _healthy(generation: Generation) -> list[float]:
    return [score for score in generation.scores() if score is not None]


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


def promise(state: RunState) -> float | None:
    """The gain that the search's best score, of a full evaluation, seemed to have."""
    baseline = baseline_mean(state)
    scores = [score for g in full_ones(state) for score in _healthy(g)]
    if not baseline or not scores:
        return None
    return (baseline - min(scores)) / abs(baseline)


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
