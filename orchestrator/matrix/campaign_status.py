"""How the cells of a campaign stand, also while another process or other jobs run them."""

from datetime import UTC, datetime
from pathlib import Path

from budgets.ledger import LedgerCorruptError
from budgets.matrix import PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.state import ImpossibleEventError, RunState
from orchestrator.records.manifest import Manifest, seed_of
from orchestrator.records.runs import recorded_state, runs_of_cell
from orchestrator.records.standing import Standing, standing_of

DAMAGED = "damaged"


def matrix_of_runs(directory: Path, manifest: Manifest, now: datetime) -> Matrix:
    """The matrix of an exported campaign: each cell as its own ledger has it."""
    terms = manifest.terms()
    cells = {
        (run.condition, seed_of(run)): cell_of(directory / run.directory, now)
        for run in manifest.runs
    }
    absent = Cell(status=PENDING)
    rows = tuple(
        tuple(cells.get((condition.name, seed), absent) for seed in terms.seeds)
        for condition in terms.conditions
    )
    return Matrix(terms=terms, rows=rows)


def cell_of(place: Path, now: datetime) -> Cell:
    """The cell whose run lies in or below `place`; pending where none is there."""
    try:
        state = next(filter(None, map(recorded_state, runs_of_cell(place))), None)
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
        return Cell(status=DAMAGED, note=str(error))
    if state is None:
        return Cell(status=PENDING)
    if state.plan.campaign is None:
        return Cell(status=DAMAGED, note=f"a {state.plan.phase} in the place of an evaluation")
    cells = in_flight(matrix_of(state), state, standing_of(state, now), now).cells
    if len(cells) != 1:
        return Cell(status=DAMAGED, note=f"a campaign of {len(cells)} cells in the place of one")
    return cells[0]


def in_flight(matrix: Matrix, state: RunState, standing: Standing, now: datetime) -> Matrix:
    """The matrix with the moments at which cells began; what nobody runs is pending."""
    moments = {}
    for attempt in state.running_attempts():
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
