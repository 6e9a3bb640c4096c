"""A campaign as a matrix, condition by seed, and what it found.

Comparisons of conditions are paired by seed: each seed gives one value, and Student's t over the
seeds gives an interval and a chance. Effects, and differences from controls, are each judged
together: a share `rate` of what is found is expected to be chance (Benjamini and Hochberg).

A main effect is a level against the factor's first level, averaged over the combinations of the
other factors' levels. On each seed it uses the combinations of which both conditions have a score.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, log10, sqrt
from statistics import fmean, stdev

from budgets.events import Status
from budgets.plan import CampaignPlan, Direction, Frozen
from budgets.state import Batch, RunState
from budgets.stats import believed, chance, detectable, interval

# The matrix

PENDING, RUNNING = "pending", "running"
"""The status of a cell without a result; others have the `Status` of their result."""


class Cell(Frozen):
    """One condition on one seed: an evaluation."""

    status: str
    score: float | None = None
    seconds: float | None = None  # that it took
    note: str = ""  # why it failed, or where it runs


class Matrix(Frozen):
    """A row of cells for each condition, a cell for each seed, in the order of the campaign."""

    campaign: CampaignPlan
    rows: tuple[tuple[Cell, ...], ...]

    @property
    def cells(self) -> list[Cell]:
        return [cell for row in self.rows for cell in row]

    @property
    def counts(self) -> dict[str, int]:
        """How many cells have each status, the healthy first and the pending last."""
        found = Counter(cell.status for cell in self.cells)
        others = sorted(found.keys() - {*Status, RUNNING, PENDING})
        order = (*map(str, Status), *others, RUNNING, PENDING)
        return {status: found[status] for status in order if found[status]}

    @property
    def unsettled(self) -> int:
        return sum(cell.status in {PENDING, RUNNING} for cell in self.cells)

    def scores(self, condition: int) -> dict[int, float]:
        """Healthy scores by seed."""
        row = zip(self.campaign.seeds, self.rows[condition], strict=True)
        return {seed: cell.score for seed, cell in row if cell.score is not None}


def matrix_of(state: RunState) -> Matrix:
    """The matrix of a campaign in one ledger. Raises ValueError on any other run."""
    campaign = state.plan.campaign
    if campaign is None:
        raise ValueError(f"{state.plan.run_id} is not a campaign: it is a {state.plan.phase}")
    generation = state.generations[0] if state.generations else None
    rows = tuple(
        tuple(_cell(generation, candidate, seed) for seed in campaign.seeds)
        for candidate in range(len(campaign.conditions))
    )
    return Matrix(campaign=campaign, rows=rows)


def _cell(generation: Batch | None, candidate: int, seed: int) -> Cell:
    result = generation.result(candidate, seed) if generation else None
    if result is not None:
        status, score, seconds = str(result.status), result.score, result.seconds
        return Cell(status=status, score=score, seconds=seconds, note=result.cause)
    is_running = generation is not None and (candidate, seed) in generation.running
    return Cell(status=RUNNING if is_running else PENDING)


# Differences

LEVEL = 0.05
"""How often an interval misses the truth."""

DIGITS = 12
"""Of a score: differences in later digits are rounding errors."""

Scores = Sequence[Mapping[int, float]]
"""Of each condition, its healthy scores by seed."""


class Difference(Frozen):
    """A mean difference between scores, and how sure it is."""

    seeds: int  # that it was measured on
    mean: float | None  # None without a seed
    lower: float | None  # bounds of the interval; None below two seeds
    upper: float | None
    sd: float | None  # of one seed's difference
    chance: float | None  # of so large a |t| without an effect; None below two seeds
    percent: float | None  # of the reference, as are its bounds
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


def _judged(differences: Sequence[Difference], rate: float) -> list[Difference]:
    """The same, with those marked that are found together."""
    flags = believed([own.chance for own in differences], rate)
    marked = zip(differences, flags, strict=True)
    return [own.model_copy(update={"is_found": flag}) for own, flag in marked]


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
    direction: Direction
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
    campaign, scores = matrix.campaign, [matrix.scores(n) for n in range(len(matrix.rows))]
    size = max((abs(score) for own in scores for score in own.values()), default=0.0)
    reference, whose = _reference(campaign, scores)
    judging = rate if is_over else -1.0  # below 0 nothing is found
    effects = _effects(campaign, scores, reference, size, judging)
    compared = _comparisons(campaign, scores, size, judging)
    numbers = range(len(campaign.conditions))
    return CampaignReport(
        name=campaign.name,
        measure=measure,
        direction=campaign.direction,
        seeds=campaign.seeds,
        level=LEVEL,
        rate=rate,
        reference=reference,
        reference_of=whose,
        statuses=matrix.counts,
        evaluations=len(matrix.cells),
        unsettled=matrix.unsettled,
        is_over=is_over,
        rows=tuple(_row(number, matrix, compared.get(number, ())) for number in numbers),
        effects=effects,
        detectable_percent=_detectable_percent(effects, reference),
    )


def _reference(campaign: CampaignPlan, scores: Scores) -> tuple[float | None, str]:
    """The first control's mean score; without one, the mean of the conditions' means."""
    for condition, own in zip(campaign.conditions, scores, strict=True):
        if condition.control and own:
            return fmean(own.values()), condition.name
    means = [fmean(own.values()) for own in scores if own]
    return (fmean(means) if means else None), "all conditions"


def _comparisons(
    campaign: CampaignPlan, scores: Scores, size: float, rate: float
) -> dict[int, list[Comparison]]:
    """By number, each condition against every control; a control against those before it."""
    names, differences = [], []
    for number, own in enumerate(campaign.conditions):
        for against, control in enumerate(campaign.conditions):
            if control.control and (against < number or not own.control):
                names.append((number, control.name))
                differences.append(_against(scores[number], scores[against], size))
    compared: dict[int, list[Comparison]] = {}
    for (number, name), one in zip(names, _judged(differences, rate), strict=True):
        compared.setdefault(number, []).append(Comparison(control=name, difference=one))
    return compared


def _against(own: Mapping[int, float], control: Mapping[int, float], size: float) -> Difference:
    seeds = sorted(set(own) & set(control))
    reference = fmean(control[seed] for seed in seeds) if seeds else None
    return difference([own[seed] - control[seed] for seed in seeds], reference, size)


def _row(number: int, matrix: Matrix, compared: Sequence[Comparison]) -> ConditionRow:
    condition, cells = matrix.campaign.conditions[number], matrix.rows[number]
    values = [cell.score for cell in cells if cell.score is not None]
    lower, upper = interval(values, LEVEL) or (None, None)
    return ConditionRow(
        name=condition.name,
        is_control=condition.control,
        levels=condition.levels,
        statuses=dict(Counter(cell.status for cell in cells)),
        scores=tuple(cell.score for cell in cells),
        healthy=len(values),
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        lower=lower,
        upper=upper,
        comparisons=tuple(compared),
    )


def _detectable_percent(effects: Sequence[Effect], reference: float | None) -> float | None:
    """The detectable size of the least certain effect."""
    known = [(one.difference.sd, one.difference.seeds) for one in effects if one.difference.sd]
    if not known or not reference:
        return None
    sd, seeds = max(known, key=lambda own: own[0] / sqrt(own[1]))
    return 100 * detectable(sd, seeds, LEVEL / 2) / abs(reference)


# Main effects of a factorial


def _effects(
    campaign: CampaignPlan, scores: Scores, reference: float | None, size: float, rate: float
) -> tuple[Effect, ...]:
    moves = [
        (place, level)
        for place, factor in enumerate(campaign.factors)
        for level in factor.levels[1:]
    ]
    values = (main_effect(campaign, scores, place, level) for place, level in moves)
    judged = _judged([difference(own, reference, size) for own in values], rate)
    return tuple(
        Effect(
            factor=campaign.factors[place].name,
            level=level,
            against=campaign.factors[place].levels[0],
            difference=own,
        )
        for (place, level), own in zip(moves, judged, strict=True)
    )


def main_effect(campaign: CampaignPlan, scores: Scores, place: int, level: str) -> list[float]:
    """The mean difference of a level from its factor's first, of each seed that any pair has.

    A pair has the same levels of all other factors. A control stands for a combination of levels
    only where no other condition has it.
    """
    names, first = [factor.name for factor in campaign.factors], campaign.factors[place].levels[0]
    cells: dict[tuple[str, ...], Mapping[int, float]] = {}
    for condition, own in sorted(
        zip(campaign.conditions, scores, strict=True), key=lambda pair: pair[0].control
    ):
        if condition.levels.keys() >= set(names):
            cells.setdefault(tuple(condition.levels[name] for name in names), own)
    pairs = [
        (cells[moved], own)
        for levels, own in cells.items()
        if levels[place] == first
        and (moved := (*levels[:place], level, *levels[place + 1 :])) in cells
    ]
    by_seed = ([a[s] - b[s] for a, b in pairs if s in a and s in b] for s in campaign.seeds)
    return [fmean(own) for own in by_seed if own]
