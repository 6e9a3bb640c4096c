"""A campaign as a matrix, condition by seed: what is settled, running and pending."""

from collections import Counter

from budgets.events import Status
from budgets.plan import CampaignTerms, Frozen
from budgets.state import Batch, RunState

PENDING, RUNNING = "pending", "running"
"""The status of a cell without a result; others have the `Status` of their result."""


class Cell(Frozen):
    """One condition on one seed: an evaluation."""

    status: str
    score: float | None = None
    seconds: float | None = None  # that it took
    note: str = ""  # why it failed, where it runs, which attempt


class Matrix(Frozen):
    """A row of cells for each condition, a cell for each seed, in the order of the terms."""

    terms: CampaignTerms
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
        row = zip(self.terms.seeds, self.rows[condition], strict=True)
        return {seed: cell.score for seed, cell in row if cell.score is not None}


def matrix_of(state: RunState) -> Matrix:
    """The matrix of a campaign in one ledger. Raises ValueError on any other run."""
    terms = state.plan.campaign
    if terms is None:
        raise ValueError(f"{state.plan.run_id} is no campaign: it is a {state.plan.phase}")
    generation = state.generations[0] if state.generations else None
    rows = (
        tuple(_cell(generation, candidate, seed) for seed in terms.seeds)
        for candidate in range(len(terms.conditions))
    )
    return Matrix(terms=terms, rows=tuple(rows))


def _cell(generation: Batch | None, candidate: int, seed: int) -> Cell:
    if generation is None:
        return Cell(status=PENDING)
    result = generation.result(candidate, seed)
    if result is not None:
        status, score, seconds = str(result.status), result.score, result.seconds
        return Cell(status=status, score=score, seconds=seconds, note=result.cause)
    attempts = generation.attempts.get((candidate, seed), ())
    is_running = bool(attempts) and attempts[-1].settled is None
    again = "" if len(attempts) <= is_running else f"attempt {len(attempts) + (not is_running)}"
    return Cell(status=RUNNING if is_running else PENDING, note=again)
