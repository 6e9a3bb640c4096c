"""What a campaign found: its conditions against the controls, and the main effects of its factors.

Every comparison is paired by seed: each
seed gives one value, and Student's t over the seeds gives an interval and a chance. Effects, and
differences from controls, are each judged together: a share `rate` of what is found is expected to
be chance (Benjamini and Hochberg).

A main effect is a level against the factor's first level, averaged over the combinations of the
other factors' levels. On each seed it uses the combinations of which both conditions have a score.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import product
from math import floor, log10, sqrt
from statistics import fmean, stdev

from budgets.matrix import Matrix, matrix_of
from budgets.plan import DIRECTION, CampaignTerms, Condition, Direction, Factor, Frozen
from budgets.state import RunState
from budgets.stats import believed, chance, detectable, interval

LEVEL = 0.05
"""How often an interval misses the truth."""

DIGITS = 12
"""Of a score: differences in later digits are rounding errors."""

Scores = Mapping[int, Mapping[int, float]]
"""Healthy scores by the number of the condition, then by seed."""


class Difference(Frozen):
    """A mean difference between scores, and how sure it is."""

    seeds: int  # that it was measured on
    mean: float | None  # None without a seed
    lower: float | None  # bounds of the interval; None below two seeds
    upper: float | None
    sd: float | None  # of one seed's difference
    chance: float | None  # of so large a |t| without an effect; None below two seeds
    percent: float | None  # of the reference, likewise its bounds
    percent_lower: float | None
    percent_upper: float | None
    is_found: bool = False  # more than chance, all of its kind considered


def difference(values: Sequence[float], reference: float | None, size: float) -> Difference:
    """The mean of one difference a seed, in percent of `reference`; `size` is a score's size."""
    if size:
        values = [round(value, DIGITS - 1 - floor(log10(size))) for value in values]
    mean, is_enough = fmean(values) if values else None, len(values) > 1
    numbers = (mean, *(interval(values, LEVEL) or (None, None)))
    shares = (None if n is None or not reference else 100 * n / abs(reference) for n in numbers)
    return Difference(
        seeds=len(values),
        **dict(zip(("mean", "lower", "upper"), numbers, strict=True)),
        **dict(zip(("percent", "percent_lower", "percent_upper"), shares, strict=True)),
        sd=stdev(values) if is_enough else None,
        chance=round(chance(values), 9) if is_enough else None,
    )


def _judged(differences: Sequence[Difference], rate: float | None) -> list[Difference]:
    """The same, with those marked that are found together; without a rate none is."""
    if rate is None:
        return list(differences)
    flags = believed([own.chance for own in differences], rate)
    return [
        own.model_copy(update={"is_found": flag})
        for own, flag in zip(differences, flags, strict=True)
    ]


class Comparison(Frozen):
    """A condition against a control, on the seeds on which both have a score."""

    control: str
    difference: Difference


class Effect(Frozen):
    """The main effect of a factor's level against the factor's first level."""

    factor: str
    level: str
    against: str
    difference: Difference


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
    """All results of a campaign."""

    name: str
    measure: str  # what a cell's score is
    seeds: tuple[int, ...]
    level: float  # how often an interval misses the truth
    rate: float  # share of what is found that may be chance
    reference: float | None  # score of which an effect's percents are
    reference_of: str  # whose score that is
    statuses: dict[str, int]
    evaluations: int  # conditions * seeds
    unsettled: int  # of these
    is_over: bool  # nothing is judged earlier: repeated looks would find chance
    rows: tuple[ConditionRow, ...]
    effects: tuple[Effect, ...]
    direction: Direction = DIRECTION
    detectable_percent: float | None  # main effect that so many seeds show at 80 % power

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows if row.is_control)

    @property
    def found(self) -> tuple[Effect, ...]:
        """Effects that are more than chance, the largest first."""
        known = (effect for effect in self.effects if effect.difference.is_found)
        return tuple(sorted(known, key=lambda effect: -abs(effect.difference.mean or 0)))


def campaign_of(state: RunState, *, is_over: bool) -> CampaignReport | None:
    """The results of a campaign in one ledger; None of any other run."""
    if state.plan.campaign is None:
        return None
    rate = state.plan.thresholds.alive_level
    return campaign_report(matrix_of(state), rate, is_over=is_over)


def campaign_report(
    matrix: Matrix, rate: float, *, is_over: bool, measure: str = "score"
) -> CampaignReport:
    """The results so far; judged only if the campaign `is_over`."""
    terms = matrix.terms
    scores = {number: matrix.scores(number) for number in range(len(terms.conditions))}
    size = max((abs(score) for own in scores.values() for score in own.values()), default=0.0)
    reference, whose = _reference(terms, scores)
    judging = rate if is_over else None
    effects = _effects(terms, scores, reference, size, judging)
    return CampaignReport(
        name=terms.name,
        measure=measure,
        direction=terms.direction,
        seeds=terms.seeds,
        level=LEVEL,
        rate=rate,
        reference=reference,
        reference_of=whose,
        statuses=matrix.counts,
        evaluations=len(matrix.cells),
        unsettled=matrix.unsettled,
        is_over=is_over,
        rows=tuple(_rows(matrix, scores, size, judging)),
        effects=effects,
        detectable_percent=_detectable_percent(effects, reference),
    )


def _reference(terms: CampaignTerms, scores: Scores) -> tuple[float | None, str]:
    """The first control's mean score; without one, the mean of the conditions' means."""
    for number, condition in enumerate(terms.conditions):
        if condition.control and scores[number]:
            return fmean(scores[number].values()), condition.name
    means = [fmean(own.values()) for own in scores.values() if own]
    return (fmean(means) if means else None), "all conditions"


def _rows(
    matrix: Matrix, scores: Scores, size: float, rate: float | None
) -> Iterator[ConditionRow]:
    """Each condition, compared with every control; a control with those before it."""
    conditions = matrix.terms.conditions
    controls = [number for number, condition in enumerate(conditions) if condition.control]
    pairs = [
        (number, control)
        for number, own in enumerate(conditions)
        for control in controls
        if control < number or not own.control
    ]
    judged = _judged([_against(scores[n], scores[control], size) for n, control in pairs], rate)
    compared: dict[int, list[Comparison]] = {number: [] for number in scores}
    for (number, control), own in zip(pairs, judged, strict=True):
        compared[number].append(Comparison(control=conditions[control].name, difference=own))
    for number, condition in enumerate(conditions):
        values = list(scores[number].values())
        lower, upper = interval(values, LEVEL) or (None, None)
        yield ConditionRow(
            name=condition.name,
            is_control=condition.control,
            levels=condition.levels,
            statuses=dict(Counter(cell.status for cell in matrix.rows[number])),
            scores=tuple(scores[number].get(seed) for seed in matrix.terms.seeds),
            healthy=len(values),
            mean=fmean(values) if values else None,
            sd=stdev(values) if len(values) > 1 else None,
            lower=lower,
            upper=upper,
            comparisons=tuple(compared[number]),
        )


def _against(own: Mapping[int, float], control: Mapping[int, float], size: float) -> Difference:
    seeds = sorted(set(own) & set(control))
    reference = fmean(control[seed] for seed in seeds) if seeds else None
    return difference([own[seed] - control[seed] for seed in seeds], reference, size)


def _detectable_percent(effects: Sequence[Effect], reference: float | None) -> float | None:
    """The detectable size of the least certain effect."""
    differences = [effect.difference for effect in effects if effect.difference.sd]
    errors = [(own.sd / sqrt(own.seeds), own.sd, own.seeds) for own in differences if own.sd]
    if not errors or not reference:
        return None
    _, sd, seeds = max(errors)
    return 100 * detectable(sd, seeds, LEVEL / 2) / abs(reference)


# Main effects of a factorial


def _effects(
    terms: CampaignTerms,
    scores: Scores,
    reference: float | None,
    size: float,
    rate: float | None,
) -> tuple[Effect, ...]:
    cells = cells_of(terms.factors, terms.conditions)
    moves = [
        (place, level) for place, factor in enumerate(terms.factors) for level in factor.levels[1:]
    ]
    values = [
        main_effect(scores, pairs_of(terms.factors, cells, place, level), terms.seeds)
        for place, level in moves
    ]
    judged = _judged([difference(own, reference, size) for own in values], rate)
    return tuple(
        Effect(
            factor=terms.factors[place].name,
            level=level,
            against=terms.factors[place].levels[0],
            difference=own,
        )
        for (place, level), own in zip(moves, judged, strict=True)
    )


def cells_of(
    factors: Sequence[Factor], conditions: Sequence[Condition]
) -> dict[tuple[str, ...], int]:
    """The number of the condition at each combination of levels.

    A control stands for a combination only where no other condition has its levels.
    """
    names = [factor.name for factor in factors]
    cells: dict[tuple[str, ...], int] = {}
    for controls in (False, True):
        for number, condition in enumerate(conditions):
            if condition.control is controls and all(name in condition.levels for name in names):
                cells.setdefault(tuple(condition.levels[name] for name in names), number)
    return cells if names else {}


def pairs_of(
    factors: Sequence[Factor], cells: Mapping[tuple[str, ...], int], place: int, level: str
) -> list[tuple[int, int]]:
    """Conditions with the factor at `level`, and the same with it at its first level."""
    pairs = []
    for levels in product(*(factor.levels for factor in factors)):
        moved = (*levels[:place], level, *levels[place + 1 :])
        if levels[place] == factors[place].levels[0] and levels in cells and moved in cells:
            pairs.append((cells[moved], cells[levels]))
    return pairs


def main_effect(
    scores: Scores, pairs: Sequence[tuple[int, int]], seeds: Sequence[int]
) -> list[float]:
    """The mean difference over the pairs, of each seed on which any pair has both scores."""
    by_seed = (
        [
            scores[a][seed] - scores[b][seed]
            for a, b in pairs
            if seed in scores[a] and seed in scores[b]
        ]
        for seed in seeds
    )
    return [fmean(own) for own in by_seed if own]
