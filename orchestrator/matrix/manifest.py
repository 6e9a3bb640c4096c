"""`manifest.json`: the runs of a campaign and their directories; and their status.

A campaign has one ledger, and its manifest follows from that. In an export each cell is a run of
its own, which the manifest locates.
"""

from datetime import datetime
from os.path import isdir
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from budgets.effects import PENDING, RUNNING, Cell, Matrix, matrix_of
from budgets.events import Reserved
from budgets.ledger import LEDGER, LedgerCorruptError
from budgets.plan import CampaignPlan
from budgets.state import ImpossibleEventError, RunState
from budgets.storage import document, read_plain, write_aside
from objectives.settings import in_words
from orchestrator.records.runs import attempt_place, is_there, recorded_state, runs_of_cell
from orchestrator.records.standing import Standing, standing_of

MANIFEST = "manifest.json"

DAMAGED = "damaged"
"""Status of a cell whose run cannot be read, or is another kind of run."""


class ManifestRun(BaseModel):
    """One cell and its directory."""

    model_config = ConfigDict(frozen=True)

    name: str
    directory: str  # relative to the manifest
    condition: str
    seed: int
    control: bool = False


class Manifest(BaseModel):
    """The runs of a campaign."""

    model_config = ConfigDict(frozen=True)

    name: str
    kind: Literal["training", "slurm"]  # a cell is an evaluation of one run, or a job
    objective: str
    total_runs: int
    campaign: CampaignPlan | None  # None: an exported search
    runs: tuple[ManifestRun, ...]


def exported_campaign(run: str, root: Path) -> tuple[Path, Manifest] | None:
    """Return the exported campaign of that name or directory; None if there is none.

    Raises ValueError if its manifest is not one.
    """
    for place in (Path(run), root / "campaign" / run):
        path = place / MANIFEST
        if not isdir(place) or is_there(place / LEDGER) or not path.exists():
            continue
        try:
            manifest = Manifest.model_validate_json(read_plain(path))
        except ValidationError as error:
            said = f"{path} is not a campaign's manifest: {in_words(error)}"
            raise ValueError(said) from error
        if manifest.campaign is not None:
            return place, manifest
    return None


def write_manifest(directory: Path, state: RunState) -> None:
    """Write the manifest of a campaign in one ledger; a run is where its last attempt is."""
    campaign = state.plan.campaign
    assert campaign is not None, "a campaign has them"
    batch = state.generations[0] if state.generations else None
    runs = []
    for place, (condition, seed, name) in enumerate(campaign.runs):
        candidate = place // len(campaign.seeds)
        last = Reserved(generation=0, candidate=candidate, seed=seed, attempt=1, reserve_ms=0)
        if batch is not None and (attempts := batch.attempts.get((candidate, seed))):
            last = attempts[-1].reserved
        own = {"condition": condition.name, "seed": seed, "control": condition.control}
        runs.append(ManifestRun(name=name, directory=f"eval/{attempt_place(last)}", **own))
    manifest = Manifest(
        name=campaign.name,
        kind="training",
        objective=state.plan.objective.name,
        total_runs=len(runs),
        campaign=campaign,
        runs=tuple(runs),
    )
    write_aside(directory / MANIFEST, document(manifest.model_dump(mode="json")))


# Status


def matrix_of_runs(directory: Path, manifest: Manifest, now: datetime) -> Matrix:
    """Return the matrix of an exported campaign, each cell from its own ledger."""
    campaign = manifest.campaign
    assert campaign is not None, "a campaign has them"
    places = {(run.condition, run.seed): directory / run.directory for run in manifest.runs}
    rows = tuple(
        tuple(_cell(places[condition.name, seed], now) for seed in campaign.seeds)
        for condition in campaign.conditions
    )
    return Matrix(campaign=campaign, rows=rows)


def _cell(place: Path, now: datetime) -> Cell:
    """The cell of the run in or below `place`; pending if there is none."""
    try:
        state = next(filter(None, map(recorded_state, runs_of_cell(place))), None)
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
        return Cell(status=DAMAGED, note=str(error))
    if state is None:
        return Cell(status=PENDING)
    if state.plan.campaign is None or state.plan.campaign.evaluations != 1:
        return Cell(status=DAMAGED, note=f"{state.plan.run_id} is not a campaign of one evaluation")
    return in_flight(matrix_of(state), standing_of(state, now)).cells[0]


def in_flight(matrix: Matrix, standing: Standing) -> Matrix:
    """Return the matrix with the host of running cells; pending if their process is gone."""

    def seen(cell: Cell) -> Cell:
        if cell.status != RUNNING:
            return cell
        if not standing.goes_on:
            return cell.model_copy(update={"status": PENDING, "note": "interrupted"})
        note = ", ".join(filter(None, (cell.note, standing.host and f"on {standing.host}")))
        return cell.model_copy(update={"note": note})

    rows = tuple(tuple(map(seen, row)) for row in matrix.rows)
    return matrix.model_copy(update={"rows": rows})
