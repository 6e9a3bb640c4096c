"""What a search amounts to: Go, Go that persists, or a No-Go with a name. Numbers alone.

The finalists are the search distribution's mean, its average over the last generations, and the
best candidates. They are compared on the picking seeds. The winner goes on to seeds that no
finalist was picked on, so the selection does not bias its gain. Each condition of a Go is a pure
function of the state; `decide` combines them once every planned comparison is settled.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from math import ceil, sqrt
from statistics import fmean
from typing import Literal

from budgets.events import Decided, Facts, Fired, Grade, NoGo
from budgets.measurements import best_of_noise, noise
from budgets.plan import ComparisonName, Configuration, Frozen
from budgets.state import Batch, RunState
from budgets.stats import Gain, NamedGain, gain, total

Point = tuple[float, ...]
Scores = Mapping[int, float]
"""Healthy scores by seed."""

BASELINE, INCUMBENT = "baseline", "incumbent"
AVERAGE, MEAN, BEST_CANDIDATE = "average", "mean", "best candidate"


# The recommendation, the finalists and the winner


def recommendation(state: RunState) -> Point | None:
    """The winner's point after a Go, None after a No-Go; before, what the search recommends.

    Never the best score seen: the best of many noisy scores shows the effect of chance.
    """
    return stood_for(state) if state.decided is None else state.decided.point


def stood_for(state: RunState) -> Point | None:
    """The distribution's mean, where a model of all scores placed it; otherwise its average.

    None before a generation is told.
    """
    last = state.completed[-1].told if state.completed else None
    return last.mean if last and last.guided else average(state)


def average(state: RunState) -> Point | None:
    """The distribution's mean, averaged over the last third of the generations."""
    means = [one.told.mean for one in _last_third(state) if one.told is not None]
    return tuple(total(u) / len(means) for u in zip(*means, strict=True)) if means else None


def _last_third(state: RunState) -> list[Batch]:
    return state.completed[-ceil(len(state.completed) / 3) :]


def finalists(state: RunState) -> tuple[Configuration, ...]:
    """The different configurations to compare, the more promising first."""
    confirmation, mean, last = state.plan.confirmation, average(state), state.completed[-1].told
    assert confirmation is not None, "the plan compares"
    assert mean is not None, "a generation is told"
    assert last is not None, "... which all of them are"
    names = {mean: AVERAGE}
    names.setdefault(last.mean, MEAN)
    for place, point in enumerate(best_candidates(state, confirmation.best_candidates), 1):
        names.setdefault(point, f"{BEST_CANDIDATE} {place}")
    return tuple(Configuration(name=name, point=point) for point, name in names.items())


def best_candidates(state: RunState, count: int) -> list[Point]:
    """Candidates of the last third of generations, those furthest better than their mean first.

    Generations do not share their seeds, so their scores cannot be compared directly.
    """
    ranked = sorted(
        (score - generation.sign * total(healthy) / len(healthy), generation.number, candidate)
        for generation in _last_third(state)
        if (healthy := generation.healthy)
        for candidate, score in enumerate(generation.to_minimize())
        if score is not None
    )
    return [state.completed[number].points[candidate] for _, number, candidate in ranked[:count]]


def winner(state: RunState) -> Configuration | None:
    """The finalist with the fewest failures, then the best mean score, on the picking seeds.

    None before they are settled, and where every finalist failed on every seed.
    """
    if not state.is_closed("finalists"):
        return None
    scores, sign = enumerate(_scores(state, "finalists").values()), state.plan.sign
    ranked = [(-len(own), sign * fmean(own.values()), place) for place, own in scores if own]
    return state.comparisons["finalists"].configurations[min(ranked)[-1]] if ranked else None


def best_point(state: RunState) -> Point | None:
    """The recommendation; after a No-Go the winner of the finalists: only its gain is known.

    None before the first generation is complete.
    """
    best = winner(state)
    return recommendation(state) or (stood_for(state) if best is None else best.point)


# Gains, on the seeds on which both have scores


def _scores(state: RunState, comparison: ComparisonName) -> dict[str, Scores]:
    """Healthy scores by seed of each configuration of a comparison, by its name."""
    if (batch := state.comparisons.get(comparison)) is None:
        return {}
    return {one.name: batch.scores_by_seed(n) for n, one in enumerate(batch.configurations)}


def winner_scores(state: RunState) -> Scores:
    """The winner's healthy scores on the seeds that no finalist was picked on."""
    return next(iter(_scores(state, "winner").values()), {})


def _gain(state: RunState, scores: Scores, reference: Scores) -> Gain:
    return gain(scores, reference, state.plan.thresholds.go_level, state.plan.sign)


GainKind = Literal[
    "winner", "long_run", "incumbent", "over_incumbent", "control", "over_control", "finalist"
]
"""The winner's over the baseline, on other FLOPs, over an earlier winner, over a control; that
earlier winner's, a control's and a finalist's over the baseline."""


def _gains(state: RunState) -> Iterator[tuple[str, str, str, Gain]]:
    """Each gain so far, perhaps on no seed yet: its kind, of what, over what."""
    reference, confirmation = _scores(state, "reference"), state.plan.confirmation
    best, baseline = winner_scores(state), reference.pop(BASELINE, {})
    if state.is_closed("winner"):
        yield "winner", "winner", BASELINE, _gain(state, best, baseline)
    if state.is_closed("long_run") and confirmation and confirmation.long_run:
        there, own = _scores(state, "long_run").values()
        name = f"winner, {confirmation.long_run.name}"
        yield "long_run", name, BASELINE, _gain(state, own, there)
    for name, own in reference.items():
        kind, said = "control", f"{name} (control)"
        if name == INCUMBENT:
            kind, said = "incumbent", "winner of phase 1"
        yield kind, said, BASELINE, _gain(state, own, baseline)
        if best.keys() & own.keys():
            yield f"over_{kind}", "winner", said, _gain(state, best, own)
    for name, own in _scores(state, "finalists").items():
        yield "finalist", f"{name} (picking seeds)", BASELINE, _gain(state, own, baseline)


def winner_means(state: RunState) -> tuple[float, float] | None:
    """Mean scores of the baseline and of the winner on the seeds of the winner's gain."""
    best, baseline = winner_scores(state), _scores(state, "reference").get(BASELINE, {})
    if not (seeds := best.keys() & baseline.keys()):
        return None
    return fmean(baseline[seed] for seed in seeds), fmean(best[seed] for seed in seeds)


def _apparent_gain(state: RunState) -> float | None:
    """The gain over the baseline that the search's best score seemed to have."""
    own, scores = noise(state.plan.calibration), _scores(state, "reference").get(BASELINE, {})
    baseline = own.mean if own else fmean(scores.values()) if scores else None
    found = [state.plan.sign * one for batch in state.completed for one in batch.healthy]
    if not baseline or not found:
        return None
    return (state.plan.sign * baseline - min(found)) / abs(baseline)


def _gain_by_chance(state: RunState, share: float | None = None) -> float | None:
    """The gain that the best of as many evaluations of the baseline would seem to have, on average.

    With a `share`, the gain that it exceeds with that probability. Each on seeds of its own:
    candidates that share seeds differ by less. None without calibrated noise.
    """
    own, count = noise(state.plan.calibration), sum(len(one.healthy) for one in state.completed)
    if own is None or not own.mean or own.sd is None or not count:
        return None
    sd = own.sd / sqrt(state.plan.resolved.seeds_per_candidate)
    return sd * best_of_noise(count, share) / abs(own.mean)


# Everything that is known

Rule = Literal["signal", "stability", "persistence", "sanity", "long_run"]


@dataclass(frozen=True, slots=True)
class Condition:
    """Something that a Go needs, and whether it is met."""

    rule: Rule
    met: bool
    observed: float | None
    limit: float


class Findings(Frozen):
    """What a search has found so far; most is None until its evaluations are settled."""

    grade: Grade | None
    no_go: NoGo | None
    asked: float  # the gain a Go needs, relative to the baseline's score
    gains: tuple[NamedGain, ...]  # on shared seeds, the winner's first; its kind is a `GainKind`
    conditions: tuple[Condition, ...]  # those that can be judged; empty before the winner's gain
    seemed: float | None  # gain that the search's best score seemed to have
    by_chance: float | None  # gain that the best of equally many baselines would seem to have

    def of(self, kind: GainKind) -> list[NamedGain]:
        """The gains of that kind."""
        return [one for one in self.gains if one.kind == kind]

    def one(self, kind: GainKind) -> Gain | None:
        """The only gain of that kind; None before it is measured."""
        return next((one.gain for one in self.of(kind)), None)


def findings(state: RunState) -> Findings | None:
    """What the search found; None for a run that is not compared with the baseline."""
    if state.plan.confirmation is None:
        return None
    gains = tuple(NamedGain(*one, one[-1].is_shown or one[-1].is_loss) for one in _gains(state))
    gain_of = {one.kind: one.gain for one in gains}
    return Findings(
        grade=state.decided and state.decided.grade,
        no_go=state.decided and state.decided.no_go,
        asked=state.plan.thresholds.go_gain,
        gains=gains,
        conditions=tuple(_conditions(state, gain_of.get("winner"), gain_of.get("long_run"))),
        seemed=_apparent_gain(state),
        by_chance=_gain_by_chance(state),
    )


def _conditions(state: RunState, own: Gain | None, longer: Gain | None) -> Iterator[Condition]:
    """The conditions of a Go, by the winner's gain, and its gain on the long run.

    `signal`: the gain on fresh seeds is as large as asked for, and more than chance. `stability`:
    few evaluations of the last generations failed. `persistence`: the search itself became better
    than the baseline, not one candidate by chance. `sanity`: the winner's training runs end, do not
    explode and are stable. `long_run`: enough of the gain is kept on more FLOPs, above chance.
    """
    limits, best = state.plan.thresholds, winner(state)
    if own is None or best is None:
        return
    is_enough = own.mean is not None and own.mean >= limits.go_gain
    is_met = is_enough and own.is_shown and own.pairs >= limits.go_seeds
    yield Condition("signal", is_met, own.mean, limits.go_gain)
    last = state.completed[-limits.go_generations :]
    count, failed = sum(g.settled for g in last), sum(len(g.failed) for g in last)
    crashes = failed / count if count else 1.0
    yield Condition("stability", crashes < limits.go_crash_rate, crashes, limits.go_crash_rate)
    # Persistence: the gain of the distribution's average over the last third of at least two
    # generations, on the picking seeds, or on the winner's if it won. Candidates' own scores cannot
    # tell: generations do not share seeds, and candidates around a good mean are worse than it.
    average_gain = own
    if best.name != AVERAGE:
        average, baseline = _scores(state, "finalists"), _scores(state, "reference")
        average_gain = _gain(state, average[AVERAGE], baseline[BASELINE])
    persists = average_gain.mean if len(state.completed) > 1 else None
    yield Condition("persistence", persists is not None and persists > 0, persists, 0.0)
    results, signs = state.comparisons["winner"].results(), ("exploding", "unstable")
    sick = sum(r.score is None or any(map(r.metrics.get, signs)) for r in results) / len(results)
    yield Condition("sanity", sick <= limits.go_pathological, sick, limits.go_pathological)
    if longer is not None:
        kept = longer.mean / own.mean if longer.mean is not None and own.mean else None
        if not _scores(state, "long_run").get(best.name):  # the winner fails there on every seed
            kept = 0.0
        is_met = longer.is_shown and kept is not None and kept >= limits.persist_share
        yield Condition("long_run", is_met, kept, limits.persist_share)


# The decision

_UNMET: dict[Rule, NoGo] = {
    "stability": "unstable",
    "persistence": "does_not_persist",
    "sanity": "pathological",
}
"""Where a gain is shown, the No-Go that follows from a condition that is not met."""


def decide(state: RunState) -> tuple[tuple[Fired, ...], Decided]:
    """The decision, and the stop rule that fires with it. Every planned comparison is settled.

    A long run that was not measured leaves a Go as it is.
    """
    found, best, limits = findings(state), winner(state), state.plan.thresholds
    own = None if found is None else found.one("winner")
    if found is None or best is None or own is None:
        return (), Decided(grade="no_go", no_go="pathological")
    judged = {one.rule: one for one in found.conditions}
    longer, no_go, fired = judged.get("long_run"), None, tuple[Fired, ...]()
    if judged["signal"].met:
        no_go = next((name for rule, name in _UNMET.items() if not judged[rule].met), None)
        if no_go is None and longer and longer.observed is not None and longer.observed <= 0:
            no_go = "does_not_persist"
    elif own.mean is None or own.pairs < limits.go_seeds:
        planned = len(state.comparisons["winner"].seeds[0])
        no_go = "unstable" if own.pairs < min(limits.go_seeds, planned) else "below_noise"
        if not judged["sanity"].met:
            no_go = "pathological"
    elif not own.is_shown:
        no_go, fired = "below_noise", (_stop(state, own, found.seemed),)
    else:
        no_go = "too_small"
    is_go = no_go is None  # without a Go the winner may have won by chance
    return fired, Decided(
        grade="no_go" if no_go else "go_persists" if longer and longer.met else "go",
        no_go=no_go,
        configuration=best.name if is_go else "",
        point=best.point if is_go else None,
        gain=own.mean,
        lower=own.lower,
    )


def _stop(state: RunState, own: Gain, seemed: float | None) -> Fired:
    """`seed_luck` where the best score seemed better than chance and fresh seeds allow, or `flat`.

    `own` is the winner's gain on fresh seeds.
    """
    limits, upper = state.plan.thresholds, own.upper or 0.0
    most = max(limits.go_gain, upper, _gain_by_chance(state, limits.go_level) or 0.0)
    facts: Facts = {"evaluations": state.accounts.evaluations}
    found = {"rule": "flat", "observed": own.mean, "limit": limits.go_gain, "facts": facts}
    if seemed is not None and seemed >= most:
        facts = {"upper": upper}
        found = {"rule": "seed_luck", "observed": seemed, "limit": most, "facts": facts}
    return Fired.model_validate(found | {"decision": "stop", "generation": state.begun - 1})


def title(grade: Grade, no_go: NoGo | None) -> str:
    """`Go; persistence not shown`, `No-Go, below noise`."""
    if no_go is not None:
        return f"No-Go, {no_go.replace('_', ' ')}"
    return "Go that persists" if grade == "go_persists" else "Go; persistence not shown"
