"""`manifest.json`: what a campaign consists of, and where its cells lie; how each of them stands.

A campaign has one ledger, and the manifest follows from it. Of an export, where each cell is a run
of its own, the manifest says which directories they lie in.
"""

from datetime import datetime
from os.path import isdir
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from budgets.events import Reserved
from budgets.ledger import LEDGER, LedgerCorruptError
from budgets.matrix import PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.plan import CampaignTerms
from budgets.state import ImpossibleEventError, RunState
from budgets.storage import document, read_plain, write_aside
from orchestrator.records.runs import attempt_place, is_there, recorded_state, runs_of_cell
from orchestrator.records.standing import Standing, standing_of

MANIFEST = "manifest.json"

DAMAGED = "damaged"
"""A cell whose run cannot be read, or is something else."""


class ManifestRun(BaseModel):
    """One cell, and where it lies."""

    model_config = ConfigDict(frozen=True)

    name: str
    directory: str  # from the manifest's own
    condition: str
    seed: int
    control: bool = False


class Manifest(BaseModel):
    """A campaign's parts."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["training", "slurm"]  # a cell is an evaluation of one run, or a job
    objective: str  # whose scores these are
    total_runs: int
    terms: CampaignTerms | None  # None: an exported search
    runs: tuple[ManifestRun, ...]


def read_manifest(directory: Path) -> Manifest | None:
    """The manifest in `directory`; None where there is none. Raises ValueError on another file."""
    path = directory / MANIFEST
    try:
        return Manifest.model_validate_json(read_plain(path))
    except FileNotFoundError:
        return None
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) or "the whole"
        raise ValueError(f"{path} is no campaign's manifest: {place}: {first['msg']}") from error


def campaign_of_runs(run: str, root: Path) -> tuple[Path, Manifest] | None:
    """The campaign of that name, or in that directory, whose cells are runs; None without it.

    Raises ValueError where its manifest is another file.
    """
    for place in (Path(run), root / "campaign" / run):
        if isdir(place) and not is_there(place / LEDGER):  # not even a path, perhaps
            manifest = read_manifest(place)
            if manifest is not None and manifest.terms is not None:
                return place, manifest
    return None


def write_manifest(directory: Path, state: RunState) -> None:
    """Write the manifest of a campaign in one ledger."""
    terms = state.plan.campaign
    assert terms is not None, "a campaign has them"
    runs = tuple(
        ManifestRun(
            name=name,
            directory=f"eval/{_place(state, place // len(terms.seeds), seed)}",
            condition=condition.name,
            seed=seed,
            control=condition.control,
        )
        for place, (condition, seed, name) in enumerate(terms.runs)
    )
    manifest = Manifest(
        name=terms.name,
        kind="training",
        objective=state.plan.objective.name,
        total_runs=len(runs),
        terms=terms,
        runs=runs,
    )
    write_aside(directory / MANIFEST, document(manifest.model_dump(mode="json")))


def _place(state: RunState, candidate: int, seed: int) -> str:
    """The directory of its last attempt, or of the first to come."""
    tries = state.generations[0].attempts.get((candidate, seed), ()) if state.generations else ()
    first = Reserved(generation=0, candidate=candidate, seed=seed, attempt=1, reserve_ms=0)
    return attempt_place(tries[-1].reserved if tries else first)


# How the cells stand, also while another process or other jobs run them


def matrix_of_runs(directory: Path, manifest: Manifest, now: datetime) -> Matrix:
    """The matrix of an exported campaign: each cell as its own ledger has it."""
    terms = manifest.terms
    assert terms is not None, "a campaign has them"
    cells = {
        (run.condition, run.seed): _cell(directory / run.directory, now) for run in manifest.runs
    }
    absent = Cell(status=PENDING)
    rows = tuple(
        tuple(cells.get((condition.name, seed), absent) for seed in terms.seeds)
        for condition in terms.conditions
    )
    return Matrix(terms=terms, rows=rows)


def _cell(place: Path, now: datetime) -> Cell:
    """The cell whose run lies in or below `place`; pending where none is there."""
    try:
        state = next(filter(None, map(recorded_state, runs_of_cell(place))), None)
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
        return Cell(status=DAMAGED, note=str(error))
    if state is None:
        return Cell(status=PENDING)
    cells = []
    if state.plan.campaign is not None:
        cells = in_flight(matrix_of(state), standing_of(state, now)).cells
    if len(cells) != 1:
        return Cell(status=DAMAGED, note=f"{state.plan.run_id} is no campaign of one evaluation")
    return cells[0]


def in_flight(matrix: Matrix, standing: Standing) -> Matrix:
    """The matrix with where cells run; what nobody runs any more is pending."""

    def seen(cell: Cell) -> Cell:
        if cell.status != RUNNING:
            return cell
        if not standing.goes_on:
            return cell.model_copy(update={"status": PENDING, "note": "interrupted"})
        note = ", ".join(filter(None, (cell.note, standing.host and f"on {standing.host}")))
        return cell.model_copy(update={"note": note})

    rows = tuple(tuple(map(seen, row)) for row in matrix.rows)
    return matrix.model_copy(update={"rows": rows})
