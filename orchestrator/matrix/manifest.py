"""`manifest.json`: the runs of a campaign and their directories; and their status."""

from pathlib import Path

from budgets.effects import PENDING, RUNNING, Cell, Matrix
from budgets.events import Reserved
from budgets.state import RunState
from budgets.storage import document, write_aside
from orchestrator.records.runs import attempt_place
from orchestrator.records.standing import Standing

MANIFEST = "manifest.json"


def write_manifest(directory: Path, state: RunState) -> None:
    """Write the manifest of a campaign; a run is where its last attempt is."""
    campaign = state.plan.campaign
    assert campaign is not None, "a campaign has them"
    batch = state.generations[0] if state.generations else None
    runs = []
    for number, (condition, seed, name) in enumerate(campaign.runs):
        candidate = number // len(campaign.seeds)
        last = Reserved(generation=0, candidate=candidate, seed=seed, attempt=1, reserve_ms=0)
        if batch is not None and (attempts := batch.attempts.get((candidate, seed))):
            last = attempts[-1].reserved
        place = {"name": name, "directory": f"eval/{attempt_place(last)}"}
        own = {"condition": condition.name, "seed": seed, "control": condition.control}
        runs.append({**place, **own})
    manifest = {
        "name": campaign.name,
        "objective": state.plan.objective.name,
        "total_runs": len(runs),
        "campaign": campaign.model_dump(mode="json"),
        "runs": runs,
    }
    write_aside(directory / MANIFEST, document(manifest))


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
