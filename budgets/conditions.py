"""What a Go needs, condition by condition.

Pure functions of the state. A condition says what was observed, what it was held against, and what
that means in words.
"""

from math import ceil
from statistics import fmean
from typing import Literal

from pydantic import BaseModel, ConfigDict

from budgets.finalists import full_ones, mean_score
from budgets.gains import baseline_mean, rung_gain, winner_gain
from budgets.state import Generation, RunState

Rule = Literal["signal", "stability", "persistence", "sanity", "rung"]


class Condition(BaseModel):
    """Something a Go needs, and whether it is there."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    rule: Rule
    met: bool
    observed: float | None
    limit: float | None
    evidence: str


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


def is_promising(state: RunState) -> bool:
    """Whether the winner is a Go at this budget, so that the rung is worth its price."""
    judged = (signal, stability, persistence, sanity)
    return bool(state.told) and all(rule(state).met for rule in judged)
