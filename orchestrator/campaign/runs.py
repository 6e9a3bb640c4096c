"""Runs of their own as cells of a campaign: where they lie, how they stand, what their score is."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import fmean

from budgets.campaign.matrix import PAUSED, PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.state import RunState
from orchestrator.records.manifest import Manifest, seed_of
from orchestrator.records.recorded import recorded_state, runs_of_cell
from orchestrator.records.standing import Kind, Standing, standing_of

STOPPED, DAMAGED = "stopped", "damaged"

WINNER, LAST_MEAN = "the winner's score on fresh seeds", "mean score of the last generation"
"""What may stand for a search: the first, where every search that is over has it."""


@dataclass(frozen=True)
class Known:
    """A cell before it is known what all cells are compared by."""

    cell: Cell
    scores: Mapping[str, float]  # by measure


def matrix_of_runs(directory: Path, manifest: Manifest, now: datetime) -> tuple[Matrix, str]:
    """Every cell as its own ledger has it, and what their scores are."""
    terms = manifest.terms()
    known = {
        (run.condition, seed_of(run)): known_of(directory / run.directory, now)
        for run in manifest.runs
    }
    measure = _measure(list(known.values()))
    absent = Known(Cell(status=PENDING), {})
    rows = tuple(
        tuple(_scored(known.get((condition.name, seed), absent), measure) for seed in terms.seeds)
        for condition in terms.conditions
    )
    return Matrix(terms=terms, rows=rows), measure


def _measure(known: Sequence[Known]) -> str:
    measures = [own.scores for own in known if own.scores]
    if all("score" in scores for scores in measures):
        return "score"
    return WINNER if all(WINNER in scores for scores in measures) else LAST_MEAN


def _scored(known: Known, measure: str) -> Cell:
    return known.cell.model_copy(update={"score": known.scores.get(measure)})


def known_of(place: Path, now: datetime) -> Known:
    """The cell whose run lies in or below `place`; pending where none is there."""
    try:
        state = next(filter(None, map(recorded_state, runs_of_cell(place))), None)
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
        return Known(Cell(status=DAMAGED, note=str(error)), {})
    if state is None:
        return Known(Cell(status=PENDING), {})
    if state.plan.campaign is not None:
        return _of_training(state, now)
    return _of_search(state, now)


def _of_training(state: RunState, now: datetime) -> Known:
    """A cell that is a campaign of its own, of one condition on one seed."""
    matrix, standing = matrix_of(state), standing_of(state, now)
    cells = in_flight(matrix, state, standing, now).cells
    if len(cells) == 1:
        cell = cells[0]
        return Known(cell, {} if cell.score is None else {"score": cell.score})
    return Known(
        Cell(status=DAMAGED, note=f"a campaign of {len(cells)} cells in the place of one"), {}
    )


def in_flight(matrix: Matrix, state: RunState, standing: Standing, now: datetime) -> Matrix:
    """The matrix with the moments at which cells began; what nobody carries out is pending."""
    rows, moments = [], {}
    for attempt in state.open_tries():
        reserved = attempt.reserved
        ms = state.wall_offset_ms + attempt.reserved_ms  # those of other sessions do not go on
        moments[reserved.candidate, reserved.seed] = datetime.fromtimestamp(ms / 1000, UTC)
    for number, row in enumerate(matrix.rows):
        keys = [(number, seed) for seed in matrix.terms.seeds]
        timed = (
            _timed(cell, moments.get(key), standing, now)
            for key, cell in zip(keys, row, strict=True)
        )
        rows.append(tuple(timed))
    return matrix.model_copy(update={"rows": tuple(rows)})


def _timed(cell: Cell, since: datetime | None, standing: Standing, now: datetime) -> Cell:
    if cell.status != RUNNING or since is None:
        return cell
    if not standing.goes_on:
        return cell.model_copy(update={"status": PENDING, "note": "interrupted"})
    seconds = max(0.0, (now - since).total_seconds())
    where = f"on {standing.host}" if standing.host else ""
    note = ", ".join(filter(None, (cell.note, where)))
    return cell.model_copy(update={"since": since.isoformat(), "seconds": seconds, "note": note})


_CELL: dict[Kind, str] = {
    "planned": PENDING,
    "running": RUNNING,
    "elsewhere": RUNNING,
    "interrupted": PENDING,
    "paused": PAUSED,
    "stopped": STOPPED,
    "finished": "ok",
}


def _of_search(state: RunState, now: datetime) -> Known:
    standing = standing_of(state, now)
    status = _CELL[standing.kind]
    began = datetime.fromtimestamp(state.began_ms / 1000, now.tzinfo)
    cell = Cell(
        status=status,
        seconds=state.accounts.wall_ms / 1000,
        since=began.isoformat() if status == RUNNING else None,
        settled=state.accounts.evaluations + state.accounts.apart,
        planned=state.plan.resolved.evaluations + state.plan.apart,
        note=_note(standing),
    )
    return Known(cell, _scores(state) if cell.is_over else {})


def _note(standing: Standing) -> str:
    if standing.kind in ("paused", "stopped"):
        return standing.ruling.reason
    if standing.kind == "interrupted":
        return "interrupted"
    return f"on {standing.host}" if standing.host else ""


def _scores(state: RunState) -> dict[str, float]:
    """What a search may be compared by. No best score is: the luckiest shows luck."""
    found = {}
    winner = state.panel("winner")
    if winner is not None and (score := winner.score(0)) is not None:
        found[WINNER] = score
    full = [generation for generation in state.told if generation.is_full]
    if full and (healthy := full[-1].healthy):
        found[LAST_MEAN] = fmean(healthy)
    return found
