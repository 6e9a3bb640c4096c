"""What runs without a search found: noise, live knobs, a shorter evaluation, a campaign's effects.

A check of knobs is one generation. Candidate 0 is the baseline; every other candidate is the
baseline with one knob at an end of its range; all are evaluated on the same seeds. An end's effect
is the mean paired difference to the baseline, judged by Student's t.

A check of a proxy evaluates its candidates in full and, on the same seeds, short, in the comparison
"proxy". No ranking mixes scores of both lengths.

A campaign's conditions are compared with its controls, and levels of its factors with their first,
each paired by seed. All ends of a check, all effects and all conditions of a campaign are judged
together: a share `alive_level` of what is found is expected to be chance (Benjamini and Hochberg).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import inf, sqrt
from random import Random
from statistics import NormalDist, fmean, stdev
from typing import Literal

from budgets.events import Status
from budgets.plan import Calibration, CampaignPlan, Frozen, Sample
from budgets.state import Batch, RunState
from budgets.stats import (
    ROUNDING,
    Gain,
    NamedGain,
    believed,
    chance,
    gain,
    gain_of,
    one_sided_limit,
    tau_b,
    tau_b_interval,
    total,
)

# The baseline and its noise


def measure(state: RunState) -> Calibration:
    """The calibration that a finished calibration run measured.

    Raises ValueError with the last cause when no evaluation of the baseline was healthy.
    """
    results = [result for generation in state.generations for result in generation.results()]
    healthy = (result for result in results if result.status is Status.OK)
    names = Sample.model_fields
    samples = tuple(Sample(**{name: getattr(one, name) for name in names}) for one in healthy)
    if not samples:
        cause = results[-1].cause if results else "nothing was evaluated"
        raise ValueError(f"the baseline itself cannot be evaluated: {cause}")
    return Calibration(samples=samples)


@dataclass(frozen=True, slots=True)
class Noise:
    """How the baseline's scores differ from seed to seed, in the score's unit."""

    mean: float
    sd: float | None  # None below two healthy seeds
    seeds: int  # healthy ones

    @property
    def is_about_zero(self) -> bool:
        """Whether the mean is within 3 standard errors of 0: then no gain is a share of it."""
        error = (self.sd or 0.0) / sqrt(self.seeds)
        return abs(self.mean) <= max(3 * error, ROUNDING)

    def band(self, seeds: int) -> tuple[float, float] | None:
        """Two standard deviations either side of the mean, for a mean over so many seeds."""
        reach = None if self.sd is None else 2 * self.sd / sqrt(seeds)
        return None if reach is None else (self.mean - reach, self.mean + reach)

    def best_by_chance(self, count: int, seeds: int, sign: int = 1) -> float | None:
        """The expected best score of `count` baselines, each a mean over `seeds` seeds of its own.

        `sign` is the plan's. None for a count of 0, and where the noise was not measured.
        """
        if self.sd is None or not count:
            return None
        return self.mean - sign * self.sd / sqrt(seeds) * best_of_noise(count)


def noise(calibration: Calibration | None) -> Noise | None:
    """The noise of a calibration; None without one, or where only a time was assumed."""
    scores = [] if calibration is None else [sample.score for sample in calibration.samples]
    if not scores:
        return None
    sd = stdev(scores) if len(scores) > 1 else None
    return Noise(total(scores) / len(scores), sd, len(scores))


def best_of_noise(evaluations: int, share: float | None = None) -> float:
    """By how many standard deviations the best of so many pure-noise scores beats their mean.

    On average, by Blom's approximation of the expected largest order statistic of standard normals:
    1.8 of 16, 2.6 of 120, 3.0 of 480 evaluations. With a `share`, what the best exceeds with that
    probability.
    """
    if share is not None:
        return NormalDist().inv_cdf((1 - share) ** (1 / evaluations))
    if evaluations < 2:
        return 0.0
    return NormalDist().inv_cdf((evaluations - 0.375) / (evaluations + 0.25))


# Which knobs move the score

End = Literal["low", "high"]
KnobVerdict = Literal["alive", "dead", "unproven", "unstable"]


class EndEffect(Frozen):
    """What one end of a knob's range does to the score. Numbers need two healthy seeds."""

    end: End
    statuses: dict[str, int]  # how its evaluations ended
    difference: float | None  # mean over the healthy seeds, in the score's unit
    t: float | None  # the difference in standard errors; None also where they are 0
    same: bool  # every seed gave the baseline's score
    chance: float  # probability of so large a |t| without an effect
    moves: bool = False  # more than chance, all ends of the check considered


class KnobFinding(Frozen):
    """Whether one knob moves the score."""

    knob: str
    verdict: KnobVerdict
    better: Literal["low", "high", "neither"] | None  # end, of an alive knob
    ends: tuple[EndEffect, ...]  # one if the baseline lies at the other

    @property
    def size(self) -> float:
        """The larger end's difference, without its sign; infinite where none was measured."""
        sizes = (abs(end.difference) for end in self.ends if end.difference is not None)
        return max(sizes, default=inf)


class Liveness(Frozen):
    """The findings of a check so far, the largest effect first."""

    seeds: int
    baseline: float  # its mean score over the check's seeds
    noise: float  # sd of the baseline's score over seeds, calibrated if it was
    t_limit: float  # a larger |t| moves the score, where all seeds are healthy
    knobs: tuple[KnobFinding, ...]  # those with all their evaluations

    def names(self, verdict: KnobVerdict) -> tuple[str, ...]:
        """The knobs with that verdict."""
        return tuple(f.knob for f in self.knobs if f.verdict == verdict)


def moved(generation: Batch, candidate: int) -> tuple[int, End] | None:
    """The moved knob's place in the space, and the end; None for the baseline."""
    pairs = zip(generation.points[0], generation.points[candidate], strict=True)
    for place, (baseline, unit) in enumerate(pairs):
        if unit != baseline:
            return place, "high" if unit else "low"
    return None


def liveness(state: RunState) -> Liveness | None:
    """The findings of a check of knobs; None before its baseline is measured, and of other runs."""
    plan = state.plan
    if plan.phase != "check" or plan.proxy is not None or not state.generations:
        return None
    batch, limits = state.generations[0], plan.thresholds
    seeds, baseline = len(batch.seeds[0]), list(batch.scores_by_seed(0).values())
    if len(baseline) < seeds:
        return None
    calibrated = noise(plan.calibration)
    spread = stdev(baseline) if calibrated is None or calibrated.sd is None else calibrated.sd
    moves = {n: move for n in range(1, len(batch.points)) if (move := moved(batch, n))}
    effects = [
        _effect(batch, candidate, end, limits.same_score) for candidate, (_, end) in moves.items()
    ]
    flags = believed([effect.chance for effect in effects], limits.alive_level)
    level = limits.alive_level * max(sum(flags), 1) / len(flags)
    ends: dict[str, list[EndEffect]] = {}
    for (place, _), effect, flag in zip(moves.values(), effects, flags, strict=True):
        own = ends.setdefault(plan.space.knobs[place].name, [])
        own.append(effect.model_copy(update={"moves": flag}))
    knobs = [
        _finding(name, tuple(own), plan.sign)
        for name, own in ends.items()
        if all(sum(end.statuses.values()) == seeds for end in own)
    ]
    return Liveness(
        seeds=seeds,
        baseline=fmean(baseline),
        noise=spread,
        t_limit=round(one_sided_limit(level / 2, seeds - 1), 6),  # later bits depend on libm
        knobs=tuple(sorted(knobs, key=lambda one: one.size, reverse=True)),
    )


def _effect(batch: Batch, candidate: int, end: End, same_score: float) -> EndEffect:
    baseline, scores = batch.scores_by_seed(0), batch.scores_by_seed(candidate)
    pairs = [(score, baseline[seed]) for seed, score in scores.items()]
    is_same = all(abs(score - base) <= same_score * abs(base) for score, base in pairs)
    is_same &= len(pairs) == len(baseline)
    differences = [score - base for score, base in pairs]
    mean = error = None
    if len(pairs) > 1:
        mean, error = fmean(differences), stdev(differences) / sqrt(len(pairs))
    return EndEffect(
        end=end,
        statuses=batch.statuses(candidate),
        difference=mean,
        t=mean / error if mean is not None and error else None,
        same=is_same,
        chance=1.0 if is_same else round(chance(differences), 9),
    )


def _finding(knob: str, ends: tuple[EndEffect, ...], sign: int) -> KnobFinding:
    measured = [(sign * end.difference, end) for end in ends if end.difference is not None]
    if any(end.moves for end in ends):
        lowest, end = min(measured, key=lambda pair: pair[0])
        is_worse = lowest > 0 and all(end.moves for _, end in measured)
        better = "neither" if is_worse else end.end
        return KnobFinding(knob=knob, verdict="alive", better=better, ends=ends)
    verdict: KnobVerdict = "unproven" if len(measured) == len(ends) else "unstable"
    if all(end.same for end in ends):
        verdict = "dead"
    return KnobFinding(knob=knob, verdict=verdict, better=None, ends=ends)


# Whether a shorter evaluation ranks candidates as the full one does

LEAST_CANDIDATES = 8
"""With fewer, agreement is rarely shown, and its interval is much too narrow."""

LEAST_AGREEMENT, AGREEMENT_LEVEL = 0.5, 0.1
"""The needed lower bound of Kendall's tau-b, and how often its two-sided interval may be wrong."""


class Certificate(Frozen):
    """How far short and full evaluations of the same candidates agree."""

    compared: int  # without those that failed at both lengths
    tau: float | None  # Kendall's tau-b; None where all scores of one length are equal
    lower: float | None  # its interval
    upper: float | None
    level: float  # how often the interval misses the truth
    asked: float  # the lower bound needed
    holds: bool  # whether short evaluations may replace full ones


def certificate(state: RunState) -> Certificate | None:
    """The result of a check of a proxy; None until its candidates are evaluated at both lengths.

    A failed candidate ranks after every healthy one. One that failed at both lengths is left out.
    """
    plan = state.plan
    if plan.proxy is None or not state.is_closed("proxy") or not state.generations[0].closed:
        return None
    batches = (state.generations[0], state.comparisons["proxy"])
    ranked = ([inf if s is None else s for s in batch.to_minimize()] for batch in batches)
    pairs = [pair for pair in zip(*ranked, strict=True) if min(pair) < inf]
    full, short = [f for f, _ in pairs], [s for _, s in pairs]
    random = Random(f"{plan.evaluation_seed}/0")  # noqa: S311 - no secret
    lower, upper = tau_b_interval(full, short, random, AGREEMENT_LEVEL) or (None, None)
    return Certificate(
        compared=len(pairs),
        tau=tau_b(full, short),
        lower=lower,
        upper=upper,
        level=AGREEMENT_LEVEL,
        asked=LEAST_AGREEMENT,
        holds=lower is not None and lower >= LEAST_AGREEMENT and len(pairs) >= LEAST_CANDIDATES,
    )


# Campaigns

LEVEL = 0.05
"""How often an interval misses the truth."""

_Scores = Sequence[Mapping[int, float]]  # of each condition, its healthy scores by seed


class ConditionRow(Frozen):
    """One condition over all seeds."""

    name: str
    statuses: dict[str, int]  # of what is settled
    scores: tuple[float | None, ...]  # in the order of the seeds
    mean: float | None
    sd: float | None


class CampaignReport(Frozen):
    """A campaign's conditions, and what was found."""

    rows: tuple[ConditionRow, ...]
    gains: tuple[NamedGain, ...]  # effects of factors, then conditions against controls


def campaign_report(state: RunState, *, is_over: bool) -> CampaignReport:
    """The results so far. Nothing is found until it `is_over`: repeated looks find chance."""
    campaign, batch = state.plan.campaign, next(iter(state.generations), None)
    assert campaign is not None, "the run is a campaign"
    rows, scores, gains = list[ConditionRow](), list[Mapping[int, float]](), list[NamedGain]()
    for number, condition in enumerate(campaign.conditions):
        scores.append(own := {} if batch is None else batch.scores_by_seed(number))
        row = ConditionRow(
            name=condition.name,
            statuses={} if batch is None else batch.statuses(number),
            scores=tuple(own.get(seed) for seed in campaign.seeds),
            mean=fmean(own.values()) if own else None,
            sd=stdev(own.values()) if len(own) > 1 else None,
        )
        rows.append(row)
    judging = state.plan.thresholds.alive_level if is_over else -1.0  # below 0: nothing is found
    for kind, compared in {"effect": _effects, "condition": _against_controls}.items():
        named = list(compared(campaign, scores, state.plan.sign))
        flags = believed([one.chance for _, _, one in named], judging)
        gains += [NamedGain(kind, *one, flag) for one, flag in zip(named, flags, strict=True)]
    return CampaignReport(rows=tuple(rows), gains=tuple(gains))


def _against_controls(
    campaign: CampaignPlan, scores: _Scores, sign: int
) -> Iterator[tuple[str, str, Gain]]:
    """Each condition against every control; a control against those before it."""
    names = [condition.name for condition in campaign.conditions]
    controls = [n for n, condition in enumerate(campaign.conditions) if condition.control]
    for number, own in enumerate(scores):
        for control in controls:
            if control < number or number not in controls:
                found = gain(own, scores[control], LEVEL / 2, sign)
                yield names[number], names[control], found


def _effects(campaign: CampaignPlan, scores: _Scores, sign: int) -> Iterator[tuple[str, str, Gain]]:
    """Each level of a factor against its first, as shares of the first control's mean score.

    Without a control's, of the mean of the conditions' means.
    """
    means = [fmean(own.values()) for own in scores if own]
    pairs = zip(campaign.conditions, scores, strict=True)
    controls = (fmean(own.values()) for condition, own in pairs if condition.control and own)
    reference = next(controls, fmean(means) if means else 0.0)
    for factor, (first, *others) in campaign.factors.items():
        for level in others:
            values = main_effect(campaign, scores, factor, level)
            found = gain_of([-sign * value for value in values], reference, LEVEL / 2)
            yield f"{factor}: {level}", first, found


def main_effect(campaign: CampaignPlan, scores: _Scores, factor: str, level: str) -> list[float]:
    """The mean difference of a level from its factor's first, of each seed that any pair has.

    A pair has the same levels of all other factors, and on the seed a score of both.
    """
    named = zip(campaign.conditions, scores, strict=True)
    cells = {frozenset(one.levels.items()): own for one, own in named if one.levels}
    before, after = {(factor, campaign.factors[factor][0])}, {(factor, level)}
    pairs = [(cells[one - before | after], cells[one]) for one in cells if before <= one]
    found = ([a[s] - b[s] for a, b in pairs if s in a and s in b] for s in campaign.seeds)
    return [fmean(values) for values in found if values]
