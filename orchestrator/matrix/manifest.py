"""`manifest.json`: the runs of a campaign and their directories."""

from pathlib import Path

from budgets.events import Reserved
from budgets.state import RunState
from budgets.storage import document, write_aside
from orchestrator.records.runs import attempt_place

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
