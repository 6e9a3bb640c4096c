"""A campaign as a matrix, condition by seed, and what it found.

Comparisons of conditions are paired by seed: each seed gives one value, and Student's t over the
seeds gives an interval and a chance. Effects, and differences from controls, are each judged
together: a share `rate` of what is found is expected to be chance (Benjamini and Hochberg).
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from math import floor, log10
from statistics import fmean, stdev

from budgets.plan import CampaignPlan, Direction, Frozen
from budgets.state import RunState
from budgets.stats import believed, chance, interval

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
        """How many cells have each status."""
        return dict(Counter(cell.status for cell in self.cells))

    @property
    def unsettled(self) -> int:
        return sum(cell.status in {PENDING, RUNNING} for cell in self.cells)

    def scores(self, condition: int) -> dict[int, float]:
        """Healthy scores by seed."""
        row = zip(self.campaign.seeds, self.rows[condition], strict=True)
        return {seed: cell.score for seed, cell in row if cell.score is not None}


def matrix_of(state: RunState) -> Matrix:
    """The matrix of a campaign in one ledger."""
    campaign = state.plan.campaign
    assert campaign is not None, "the run is a campaign"
    numbers = range(len(campaign.conditions))
    rows = (tuple(_cell(state, number, seed) for seed in campaign.seeds) for number in numbers)
    return Matrix(campaign=campaign, rows=tuple(rows))


def _cell(state: RunState, candidate: int, seed: int) -> Cell:
    batch = state.generations[0] if state.generations else None
    if batch is None or (result := batch.result(candidate, seed)) is None:
        is_running = batch is not None and (candidate, seed) in batch.running
        return Cell(status=RUNNING if is_running else PENDING)
    status, note = str(result.status), result.cause
    return Cell(status=status, score=result.score, seconds=result.seconds, note=note)


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
    chance: float | None  # of so large a |t| without an effect; None below two seeds
    percent: float | None  # of the reference, as are its bounds
    percent_lower: float | None
    percent_upper: float | None
    is_found: bool = False  # more than chance, all of its kind considered


def difference(values: Sequence[float], reference: float | None, size: float) -> Difference:
    """The mean of one difference a seed, in percent of `reference`; `size` is a score's size."""
    if size:
        values = [round(value, DIGITS - 1 - floor(log10(size))) for value in values]
    mean = fmean(values) if values else None
    numbers = (mean, *(interval(values, LEVEL) or (None, None)))
    shares = [None if n is None or not reference else 100 * n / abs(reference) for n in numbers]
    return Difference(
        seeds=len(values),
        mean=mean,
        lower=numbers[1],
        upper=numbers[2],
        chance=round(chance(values), 9) if len(values) > 1 else None,
        percent=shares[0],
        percent_lower=shares[1],
        percent_upper=shares[2],
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

    @property
    def controls(self) -> tuple[str, ...]:
        return tuple(row.name for row in self.rows if row.is_control)

    @property
    def found(self) -> tuple[Effect, ...]:
        """Effects that are more than chance, the largest first."""
        known = (effect for effect in self.effects if effect.difference.is_found)
        return tuple(sorted(known, key=lambda effect: -abs(effect.difference.mean or 0)))


def campaign_report(matrix: Matrix, rate: float, *, is_over: bool) -> CampaignReport:
    """The results so far; judged only if the campaign `is_over`."""
    campaign, scores = matrix.campaign, [matrix.scores(n) for n in range(len(matrix.rows))]
    size = max((abs(score) for own in scores for score in own.values()), default=0.0)
    reference, whose = _reference(campaign, scores)
    judging = rate if is_over else -1.0  # below 0 nothing is found
    compared = _comparisons(campaign, scores, size, judging)
    return CampaignReport(
        name=campaign.name,
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
        rows=tuple(_row(matrix, number, own) for number, own in enumerate(compared)),
        effects=_effects(campaign, scores, reference, size, judging),
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
) -> list[list[Comparison]]:
    """Of each condition, against every control; of a control, against those before it."""
    controls = [n for n, condition in enumerate(campaign.conditions) if condition.control]
    pairs = [
        (number, control)
        for number in range(len(scores))
        for control in controls
        if control < number or number not in controls
    ]
    differences = [_against(scores[number], scores[control], size) for number, control in pairs]
    compared: list[list[Comparison]] = [[] for _ in scores]
    for (number, control), one in zip(pairs, _judged(differences, rate), strict=True):
        name = campaign.conditions[control].name
        compared[number].append(Comparison(control=name, difference=one))
    return compared


def _against(own: Mapping[int, float], control: Mapping[int, float], size: float) -> Difference:
    seeds = sorted(set(own) & set(control))
    reference = fmean(control[seed] for seed in seeds) if seeds else None
    return difference([own[seed] - control[seed] for seed in seeds], reference, size)


def _row(matrix: Matrix, number: int, compared: Sequence[Comparison]) -> ConditionRow:
    condition, cells = matrix.campaign.conditions[number], matrix.rows[number]
    values = list(matrix.scores(number).values())
    lower, upper = interval(values, LEVEL) or (None, None)
    return ConditionRow(
        name=condition.name,
        is_control=condition.control,
        statuses=dict(Counter(cell.status for cell in cells)),
        scores=tuple(cell.score for cell in cells),
        healthy=len(values),
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        lower=lower,
        upper=upper,
        comparisons=tuple(compared),
    )


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
    factors = campaign.factors
    return tuple(
        Effect(factor=factors[n].name, level=to, against=factors[n].levels[0], difference=own)
        for (n, to), own in zip(moves, judged, strict=True)
    )


def main_effect(campaign: CampaignPlan, scores: Scores, place: int, level: str) -> list[float]:
    """The mean difference of a level from its factor's first, of each seed that any pair has.

    A pair has the same levels of all other factors, and on the seed a score of both. A control
    stands for a combination of levels only where no other condition has it.
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
