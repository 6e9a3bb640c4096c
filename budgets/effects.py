"""A campaign as a matrix, condition by seed, and what it found.

Comparisons of conditions are paired by seed: each seed gives one value, and Student's t over the
seeds gives an interval and a chance. Effects, and differences from controls, are each judged
together: a share `rate` of what is found is expected to be chance (Benjamini and Hochberg).
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from statistics import fmean, stdev

from budgets.plan import CampaignPlan, Condition, Direction, Frozen
from budgets.state import RunState
from budgets.stats import Gain, NamedGain, believed, gain, gain_of, interval

# The matrix

PENDING, RUNNING = "pending", "running"
"""The status of a cell without a result; others have the `Status` of their result."""


class Cell(Frozen):
    """One condition on one seed: an evaluation."""

    status: str
    score: float | None = None
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
    return Cell(status=str(result.status), score=result.score, note=result.cause)


# What it found

LEVEL = 0.05
"""How often an interval misses the truth."""

Scores = Sequence[Mapping[int, float]]
"""Of each condition, its healthy scores by seed."""


class ConditionRow(Frozen):
    """One condition over all seeds."""

    name: str
    statuses: dict[str, int]
    scores: tuple[float | None, ...]  # in the order of the seeds
    healthy: int
    mean: float | None
    sd: float | None
    lower: float | None  # bounds of the mean's interval, over seeds
    upper: float | None


class CampaignReport(Frozen):
    """All results of a campaign."""

    name: str
    seeds: tuple[int, ...]
    level: float  # how often an interval misses the truth
    rate: float  # share of what is found that may be chance
    statuses: dict[str, int]
    evaluations: int  # conditions * seeds
    unsettled: int  # of these
    is_over: bool  # nothing is judged earlier: repeated looks would find chance
    rows: tuple[ConditionRow, ...]
    gains: tuple[NamedGain, ...]  # effects of factors, then conditions against controls
    direction: Direction


def campaign_report(matrix: Matrix, rate: float, *, is_over: bool) -> CampaignReport:
    """The results so far; judged only if the campaign `is_over`."""
    campaign, judging = matrix.campaign, rate if is_over else -1.0  # below 0 nothing is found
    scores = [matrix.scores(number) for number in range(len(matrix.rows))]
    return CampaignReport(
        name=campaign.name,
        direction=campaign.direction,
        seeds=campaign.seeds,
        level=LEVEL,
        rate=rate,
        statuses=matrix.counts,
        evaluations=len(matrix.cells),
        unsettled=matrix.unsettled,
        is_over=is_over,
        rows=tuple(map(_row, campaign.conditions, matrix.rows)),
        gains=(
            *_judged("effect", _effects(campaign, scores), judging),
            *_judged("condition", _against_controls(campaign, scores), judging),
        ),
    )


def _row(condition: Condition, cells: Sequence[Cell]) -> ConditionRow:
    values = [cell.score for cell in cells if cell.score is not None]
    lower, upper = interval(values, LEVEL) or (None, None)
    return ConditionRow(
        name=condition.name,
        statuses=dict(Counter(cell.status for cell in cells)),
        scores=tuple(cell.score for cell in cells),
        healthy=len(values),
        mean=fmean(values) if values else None,
        sd=stdev(values) if len(values) > 1 else None,
        lower=lower,
        upper=upper,
    )


def _judged(kind: str, named: Iterable[tuple[str, str, Gain]], rate: float) -> list[NamedGain]:
    """Gains of a kind, with those marked that are found together."""
    every = list(named)
    flags = believed([gain.chance for _, _, gain in every], rate)
    return [NamedGain(kind, *one, flag) for one, flag in zip(every, flags, strict=True)]


def _sign(campaign: CampaignPlan) -> int:
    return 1 if campaign.direction == "minimize" else -1


def _against_controls(campaign: CampaignPlan, scores: Scores) -> Iterator[tuple[str, str, Gain]]:
    """Each condition against every control; a control against those before it."""
    names = [condition.name for condition in campaign.conditions]
    controls = [n for n, condition in enumerate(campaign.conditions) if condition.control]
    for number, own in enumerate(scores):
        for control in controls:
            if control < number or number not in controls:
                found = gain(own, scores[control], LEVEL / 2, _sign(campaign))
                yield names[number], names[control], found


def _effects(campaign: CampaignPlan, scores: Scores) -> Iterator[tuple[str, str, Gain]]:
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
            found = gain_of([-_sign(campaign) * value for value in values], reference, LEVEL / 2)
            yield f"{factor}: {level}", first, found


def main_effect(campaign: CampaignPlan, scores: Scores, factor: str, level: str) -> list[float]:
    """The mean difference of a level from its factor's first, of each seed that any pair has.

    A pair has the same levels of all other factors, and on the seed a score of both. A control
    stands for a combination of levels only where no other condition has it.
    """
    first = campaign.factors[factor][0]
    cells: dict[tuple[tuple[str, str], ...], Mapping[int, float]] = {}
    own = zip(campaign.conditions, scores, strict=True)
    for condition, by_seed in sorted(own, key=lambda pair: pair[0].control):
        if condition.levels.keys() >= campaign.factors.keys():
            cells.setdefault(tuple(sorted(condition.levels.items())), by_seed)
    moved = {levels: tuple(sorted({**dict(levels), factor: level}.items())) for levels in cells}
    pairs = [
        (cells[moved[levels]], by_seed)
        for levels, by_seed in cells.items()
        if (factor, first) in levels and moved[levels] in cells
    ]
    found = ([a[s] - b[s] for a, b in pairs if s in a and s in b] for s in campaign.seeds)
    return [fmean(values) for values in found if values]
