"""How the cells of a campaign stand, also while others run them, and what their scores are."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from budgets.campaign.matrix import PAUSED, PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.ledger import LedgerCorruptError
from budgets.state import ImpossibleEventError, RunState
from orchestrator.records.manifest import Manifest, seed_of
from orchestrator.records.recorded import recorded_state, runs_of_cell
from orchestrator.records.standing import Kind, Standing, standing_of

STOPPED, DAMAGED = "stopped", "damaged"

SCORE = "score"
WINNER, LAST_MEAN = "the winner's score on fresh seeds", "mean score of the last generation"
"""What may stand for a search: the first, where every search that is over has it."""

STATUS: dict[Kind, str] = {
    "planned": PENDING,
    "running": RUNNING,
    "elsewhere": RUNNING,
    "interrupted": PENDING,
    "paused": PAUSED,
    "stopped": STOPPED,
    "finished": "ok",
}
"""Of a cell that is a run of its own."""


@dataclass(frozen=True)
class RunCell:
    """A cell that is a run of its own, before it is known what all of them are compared by."""

    cell: Cell
    scores: Mapping[str, float] = field(default_factory=dict)  # by measure


def matrix_of_runs(directory: Path, manifest: Manifest, now: datetime) -> tuple[Matrix, str]:
    """Every cell as its own ledger has it, and what their scores are."""
    terms = manifest.terms()
    cells = {
        (run.condition, seed_of(run)): cell_of(directory / run.directory, now)
        for run in manifest.runs
    }
    scored = [one.scores for one in cells.values() if one.scores]
    measure = LAST_MEAN
    for better in (WINNER, SCORE):
        if all(better in scores for scores in scored):
            measure = better
    absent = RunCell(Cell(status=PENDING))
    rows = [
        [cells.get((condition.name, seed), absent) for seed in terms.seeds]
        for condition in terms.conditions
    ]
    matrix = tuple(
        tuple(one.cell.model_copy(update={"score": one.scores.get(measure)}) for one in row)
        for row in rows
    )
    return Matrix(terms=terms, rows=matrix), measure


def cell_of(place: Path, now: datetime) -> RunCell:
    """The cell whose run lies in or below `place`; pending where none is there."""
    try:
        state = next(filter(None, map(recorded_state, runs_of_cell(place))), None)
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
        return RunCell(Cell(status=DAMAGED, note=str(error)))
    if state is None:
        return RunCell(Cell(status=PENDING))
    standing = standing_of(state, now)
    if state.plan.campaign is None:
        return _search_cell(state, standing, now)
    cells = in_flight(matrix_of(state), state, standing, now).cells
    if len(cells) != 1:
        note = f"a campaign of {len(cells)} cells in the place of one"
        return RunCell(Cell(status=DAMAGED, note=note))
    (cell,) = cells
    return RunCell(cell, {} if cell.score is None else {SCORE: cell.score})


def in_flight(matrix: Matrix, state: RunState, standing: Standing, now: datetime) -> Matrix:
    """The matrix with the moments at which cells began; what nobody runs is pending."""
    moments = {}
    for attempt in state.open_tries():
        reserved = attempt.reserved
        ms = state.wall_offset_ms + attempt.reserved_ms  # those of other sessions do not go on
        moments[reserved.candidate, reserved.seed] = datetime.fromtimestamp(ms / 1000, UTC)
    rows = tuple(
        tuple(
            _timed(cell, moments.get((number, seed)), standing, now)
            for seed, cell in zip(matrix.terms.seeds, row, strict=True)
        )
        for number, row in enumerate(matrix.rows)
    )
    return matrix.model_copy(update={"rows": rows})


def _timed(cell: Cell, since: datetime | None, standing: Standing, now: datetime) -> Cell:
    if cell.status != RUNNING or since is None:
        return cell
    if not standing.goes_on:
        return cell.model_copy(update={"status": PENDING, "note": "interrupted"})
    seconds = max(0.0, (now - since).total_seconds())
    note = ", ".join(filter(None, (cell.note, standing.host and f"on {standing.host}")))
    return cell.model_copy(update={"since": since.isoformat(), "seconds": seconds, "note": note})


def _search_cell(state: RunState, standing: Standing, now: datetime) -> RunCell:
    status, note = STATUS[standing.kind], standing.host and f"on {standing.host}"
    if standing.kind in ("paused", "stopped"):
        note = standing.ruling.reason
    elif standing.kind == "interrupted":
        note = "interrupted"
    began = datetime.fromtimestamp(state.began_ms / 1000, now.tzinfo)
    cell = Cell(
        status=status,
        seconds=state.accounts.wall_ms / 1000,
        since=began.isoformat() if status == RUNNING else None,
        settled=state.accounts.evaluations + state.accounts.apart,
        planned=state.plan.resolved.evaluations + state.plan.apart,
        note=note,
    )
    return RunCell(cell, _scores(state) if cell.is_over else {})


def _scores(state: RunState) -> dict[str, float]:
    """What a search may be compared by. No best score is: the luckiest shows luck."""
    found = {}
    winner = state.panel("winner")
    if winner is not None and (score := winner.score(0)) is not None:
        found[WINNER] = score
    if state.told and (healthy := state.told[-1].healthy):
        found[LAST_MEAN] = fmean(healthy)
    return found
