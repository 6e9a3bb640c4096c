"""What a campaign found: its conditions against the controls, and the effects of its factors.

Lower scores are better, so a difference above 0 is worse. Every comparison is paired by seed: each
seed gives one value, and Student's t over the seeds an interval and a chance. Of all effects
said to move the score a share `rate` at most is expected to be luck, and likewise of all
conditions said to differ from a control.

A main effect is a level against the factor's first level, averaged over the combinations of all
other factors. A two-factor interaction is a difference of differences: how much more moving one
factor does at a level of the other than at its first level. Both average with equal weights over
combinations in which every corner is there, so that no other factor takes part. D. C. Montgomery,
"Design and Analysis of Experiments", chapter 5; with an interaction there half of the one here.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations, product
from math import fsum, prod, sqrt
from statistics import fmean, stdev

from budgets.matrix import Matrix, matrix_of
from budgets.plan import CampaignTerms, Condition, Factor, Frozen
from budgets.state import RunState
from budgets.stats import believed, chance, detectable, interval

LEVEL = 0.05
"""How often an interval misses what it is of."""

TINY = 1e-9
"""Of the scale: differences below are rounding."""

Scores = Mapping[int, Mapping[int, float]]
"""Healthy scores by the number of the condition, then by seed."""

Cells = Mapping[tuple[str, ...], int]
"""The number of the condition at each combination of levels, in the order of the factors."""


class Difference(Frozen):
    """A mean difference between scores, and how sure it is."""

    seeds: int  # that it was seen on
    mean: float | None  # None without a seed
    lower: float | None  # bounds of the interval; None below two seeds
    upper: float | None
    sd: float | None  # of one seed's difference
    chance: float | None  # of so large a |t| were there none; None below two seeds
    percent: float | None  # of the reference, likewise its bounds
    percent_lower: float | None
    percent_upper: float | None
    is_found: bool = False  # too much for chance, all its kind considered


def difference(values: Sequence[float], reference: float | None, size: float) -> Difference:
    """That of one value a seed, in percent of `reference`. Scores are about as large as `size`."""
    values = [0.0 if abs(value) <= TINY * size else value for value in values]
    if values and max(values) - min(values) <= TINY * size:  # one and the same, but for rounding
        values = [fmean(values)] * len(values)
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
    """With those named that may be believed together; none may before the campaign is over."""
    if rate is None:
        return list(differences)
    flags = believed([own.chance for own in differences], rate)
    return [
        own.model_copy(update={"is_found": flag})
        for own, flag in zip(differences, flags, strict=True)
    ]


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
    size = max((abs(score) for own in scores.values() for score in own.values()), default=0.0)
    reference, whose = _reference(terms, scores)
    judging = rate if is_over else None
    effects = tuple(_effects(terms, scores, reference, size, judging))
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


# Effects of a factorial


def _effects(
    terms: CampaignTerms,
    scores: Scores,
    reference: float | None,
    size: float,
    rate: float | None,
) -> list[Effect]:
    """Every main effect, then every two-factor interaction, of the conditions with scores."""
    factors, found = terms.factors, list[Effect]()
    cells = usable(cells_of(factors, terms.conditions), scores)
    for moved in moves(factors):
        corners = corners_of(factors, cells, moved)
        shared = [set(scores[number]) for corner in corners for number in corner]
        values = [
            fsum(
                sign * scores[number][seed] for corner in corners for number, sign in corner.items()
            )
            / len(corners)
            for seed in (sorted(set.intersection(*shared)) if shared else ())
        ]
        others = [len(f.levels) for place, f in enumerate(factors) if place not in moved]
        effect = Effect(
            factors=tuple(factors[place].name for place in moved),
            levels=tuple(moved.values()),
            against=tuple(factors[place].levels[0] for place in moved),
            combinations=prod(others),
            averaged=len(corners),
            difference=difference(values, reference, size),
        )
        found.append(effect)
    judged = _judged([effect.difference for effect in found], rate)
    return [
        effect.model_copy(update={"difference": own})
        for effect, own in zip(found, judged, strict=True)
    ]


def cells_of(
    factors: Sequence[Factor], conditions: Sequence[Condition]
) -> dict[tuple[str, ...], int]:
    """The conditions that are cells of the factorial.

    A control is one only where no other condition has its levels.
    """
    names = [factor.name for factor in factors]
    found: dict[tuple[str, ...], int] = {}
    for controls in (False, True):
        for number, condition in enumerate(conditions):
            if condition.control is controls and all(name in condition.levels for name in names):
                found.setdefault(tuple(condition.levels[name] for name in names), number)
    return found if names else {}


def usable(cells: Cells, scores: Scores) -> dict[tuple[str, ...], int]:
    """The cells with a score on half of the seeds at least that the fullest one has.

    A cell that nearly always fails would leave every effect without seeds to be seen on.
    """
    most = max((len(scores[number]) for number in cells.values()), default=0)
    return {
        levels: number
        for levels, number in cells.items()
        if scores[number] and 2 * len(scores[number]) >= most
    }


def moves(factors: Sequence[Factor]) -> Iterator[dict[int, str]]:
    """One factor, then two, moved from the first level: the new levels by the factor's place."""
    for count in (1, 2):
        for places in combinations(range(len(factors)), count):
            for levels in product(*(factors[place].levels[1:] for place in places)):
                yield dict(zip(places, levels, strict=True))


def corners_of(
    factors: Sequence[Factor], cells: Cells, moved: Mapping[int, str]
) -> list[dict[int, int]]:
    """The conditions, with the sign of each, that show the move at a combination of the others.

    Combinations of which a corner is missing are left out.
    """
    found = []
    others = (
        factor.levels[:1] if n in moved else factor.levels for n, factor in enumerate(factors)
    )
    for combination in product(*others):
        corners: dict[int | None, int] = {}
        for changed in product((False, True), repeat=len(moved)):
            levels, sign = list(combination), 1
            for (place, level), is_moved in zip(moved.items(), changed, strict=True):
                levels[place] = level if is_moved else levels[place]
                sign = sign if is_moved else -sign
            corners[cells.get(tuple(levels))] = sign
        if None not in corners:
            found.append({number: sign for number, sign in corners.items() if number is not None})
    return found
