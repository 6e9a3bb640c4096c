"""`manifest.json`: the runs of a campaign and their directories."""

from pathlib import Path

from budgets.state import RunState
from budgets.storage import document, write_aside
from orchestrator.records.runs import attempt_place

MANIFEST = "manifest.json"


def write_manifest(directory: Path, state: RunState) -> None:
    """Write the manifest of a campaign; a run is where its last attempt is."""
    campaign = state.plan.campaign
    assert campaign is not None, "the run is a campaign"
    begun = {key: own[-1] for batch in state.generations for key, own in batch.attempts.items()}
    runs = []
    for number, (condition, seed, name) in enumerate(campaign.runs):
        last = begun.get((number // len(campaign.seeds), seed))
        runs.append(
            {
                "name": name,
                "directory": last and f"eval/{attempt_place(last.reserved)}",  # None: not begun
                "condition": condition.name,
                "seed": seed,
                "control": condition.control,
            }
        )
    head = {"name": campaign.name, "objective": state.plan.objective.name, "total_runs": len(runs)}
    said = campaign.model_dump(mode="json")
    write_aside(directory / MANIFEST, document({**head, "campaign": said, "runs": runs}))
