"""What a campaign found: its conditions against the controls, and the effects of its factors.

Lower scores are better, so a difference above 0 is worse. Every comparison is paired by seed: each
seed gives one value, and Student's t over the seeds an interval and a chance. Of all effects
said to move the score a share `rate` at most is expected to be luck, and likewise of all
conditions said to differ from a control.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import sqrt
from statistics import fmean, stdev

from budgets.campaign.contrasts import Contrast, cells_of, contrasts, usable
from budgets.campaign.controls import controls_of
from budgets.campaign.differences import LEVEL, Difference, difference, judged_together
from budgets.campaign.matrix import Matrix, matrix_of
from budgets.frozen import Frozen
from budgets.state import RunState
from budgets.stats import detectable, interval
from budgets.terms import CampaignTerms


class Comparison(Frozen):
    """A condition against a control, on the seeds that both have a score on."""

    control: str
    difference: Difference


class Effect(Frozen):
    """What moving a factor from its first level does, or how two factors act together."""

    factors: tuple[str, ...]  # one; or two that interact
    levels: tuple[str, ...]  # of each ...
    against: tuple[str, ...]  # ... its first, with which it is compared
    combinations: int  # of the other factors' levels
    averaged: int  # of these, over so many: of the rest a condition is missing or failed
    difference: Difference

    @property
    def is_interaction(self) -> bool:
        return len(self.factors) > 1


class ConditionRow(Frozen):
    """One condition over all seeds."""

    name: str
    is_control: bool
    levels: dict[str, str]
    statuses: dict[str, int]
    scores: tuple[float | None, ...]  # in the order of the seeds
    healthy: int
    mean: float | None
    sd: float | None
    lower: float | None  # bounds of the mean's interval, over seeds
    upper: float | None
    comparisons: tuple[Comparison, ...]


class CampaignReport(Frozen):
    """All that a campaign has to say."""

    name: str
    measure: str  # what a cell's score is
    seeds: tuple[int, ...]
    level: float  # with which probability an interval misses
    rate: float  # share of what is found that may be luck
    reference: float | None  # score that an effect's percents are of
    reference_of: str  # whose that is
    statuses: dict[str, int]
    evaluations: int  # conditions * seeds
    unsettled: int  # of these
    is_over: bool  # nothing is judged before: an interval watched while it grows is none
    rows: tuple[ConditionRow, ...]
    effects: tuple[Effect, ...]
    detectable_percent: float | None  # main effect that so many seeds show, 8 times of 10

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows if row.is_control)

    @property
    def found(self) -> tuple[Effect, ...]:
        """Effects that chance does not explain, the largest first."""
        known = (effect for effect in self.effects if effect.difference.is_found)
        return tuple(sorted(known, key=lambda e: (e.is_interaction, -abs(e.difference.mean or 0))))


def campaign_of(state: RunState, *, is_over: bool) -> CampaignReport | None:
    """The result of a campaign in one ledger; None of any other run. See `campaign_report`."""
    if state.plan.campaign is None:
        return None
    rate = state.plan.thresholds.alive_level
    return campaign_report(matrix_of(state), rate, is_over=is_over)


def campaign_report(
    matrix: Matrix, rate: float, *, is_over: bool, measure: str = "score"
) -> CampaignReport:
    """The result as far as it is known. `is_over`: no more is to come, so it may be judged."""
    terms = matrix.terms
    scores = {number: matrix.scores(number) for number in range(len(terms.conditions))}
    reference, whose = _reference(terms, scores)
    effects = _effects(terms, scores, reference, rate if is_over else None)
    return CampaignReport(
        name=terms.name,
        measure=measure,
        seeds=terms.seeds,
        level=LEVEL,
        rate=rate,
        reference=reference,
        reference_of=whose,
        statuses=matrix.counts,
        evaluations=len(matrix.cells),
        unsettled=matrix.unsettled,
        is_over=is_over,
        rows=_rows(matrix, scores, rate if is_over else None),
        effects=effects,
        detectable_percent=_detectable_percent(effects, reference),
    )


def _reference(
    terms: CampaignTerms, scores: Mapping[int, Mapping[int, float]]
) -> tuple[float | None, str]:
    """The first control's mean score; without one, the mean of the conditions' means."""
    for number, condition in enumerate(terms.conditions):
        if condition.control and scores[number]:
            return fmean(scores[number].values()), condition.name
    means = [fmean(own.values()) for own in scores.values() if own]
    return (fmean(means) if means else None), "all conditions"


def _effects(
    terms: CampaignTerms,
    scores: Mapping[int, Mapping[int, float]],
    reference: float | None,
    rate: float | None,
) -> tuple[Effect, ...]:
    cells = usable(cells_of(terms.factors, terms.conditions), scores)
    known = list(contrasts(terms.factors, cells))
    size = _size(scores)
    found = [difference(list(c.values(scores).values()), reference, size) for c in known]
    judged = judged_together(found, rate)
    return tuple(_effect(c, own) for c, own in zip(known, judged, strict=True))


def _effect(contrast: Contrast, own: Difference) -> Effect:
    return Effect(
        factors=contrast.factors,
        levels=contrast.levels,
        against=contrast.against,
        combinations=contrast.combinations,
        averaged=contrast.averaged,
        difference=own,
    )


def _size(scores: Mapping[int, Mapping[int, float]]) -> float:
    return max((abs(score) for own in scores.values() for score in own.values()), default=0.0)


def _rows(
    matrix: Matrix, scores: Mapping[int, Mapping[int, float]], rate: float | None
) -> tuple[ConditionRow, ...]:
    conditions, size = matrix.terms.conditions, _size(scores)
    pairs = [(n, control) for n in scores for control in controls_of(n, conditions)]
    judged = judged_together([_against(scores[n], scores[c], size) for n, c in pairs], rate)
    compared: dict[int, list[Comparison]] = {number: [] for number in scores}
    for (number, control), own in zip(pairs, judged, strict=True):
        compared[number].append(Comparison(control=conditions[control].name, difference=own))
    return tuple(_row(matrix, number, scores[number], tuple(compared[number])) for number in scores)


def _against(own: Mapping[int, float], control: Mapping[int, float], size: float) -> Difference:
    seeds = sorted(set(own) & set(control))
    reference = fmean(control[seed] for seed in seeds) if seeds else None
    return difference([own[seed] - control[seed] for seed in seeds], reference, size)


def _row(
    matrix: Matrix, number: int, scores: Mapping[int, float], compared: tuple[Comparison, ...]
) -> ConditionRow:
    condition, values = matrix.terms.conditions[number], list(scores.values())
    lower, upper = interval(values, LEVEL) or (None, None)
    return ConditionRow(
        name=condition.name,
        is_control=condition.control,
        levels=condition.levels,
        statuses=dict(Counter(cell.status for cell in matrix.rows[number])),
        scores=tuple(scores.get(seed) for seed in matrix.terms.seeds),
        healthy=len(values),
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        lower=lower,
        upper=upper,
        comparisons=compared,
    )


def telling(interactions: Sequence[Effect], most: int) -> list[Effect]:
    """At most so many, in their order: all that were found, and the least likely of the others."""

    def least_likely(effect: Effect) -> tuple[bool, float]:
        own = effect.difference
        return not own.is_found, 1.0 if own.chance is None else own.chance

    ranked = sorted(interactions, key=least_likely)
    count = max(most, sum(e.difference.is_found for e in interactions))
    kept = {(e.factors, e.levels) for e in ranked[:count]}
    return [e for e in interactions if (e.factors, e.levels) in kept]


def _detectable_percent(effects: Sequence[Effect], reference: float | None) -> float | None:
    """For the main effect that is known least."""
    known = [
        (own.sd / sqrt(own.seeds), own.sd, own.seeds)
        for own in (effect.difference for effect in effects if not effect.is_interaction)
        if own.sd
    ]
    if not known or not reference:
        return None
    _, sd, seeds = max(known)
    return 100 * detectable(sd, seeds, LEVEL / 2) / abs(reference)
