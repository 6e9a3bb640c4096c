"""How a campaign stands, seen from beside it."""

import json
from collections.abc import Callable
from pathlib import Path

from budgets.plan import CampaignPlan
from orchestrator.matrix.manifest import MANIFEST
from orchestrator.records.runs import Result

Train = Callable[..., Result]


def test_a_campaign_leaves_a_manifest_of_all_its_runs(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    found = json.loads((result.directory / MANIFEST).read_bytes())
    assert (found["name"], found["total_runs"]) == ("toy", 15)
    assert CampaignPlan.model_validate(found["campaign"]) == result.state.plan.campaign
    assert [run["control"] for run in found["runs"]].count(True) == 3
    assert all((result.directory / run["directory"]).is_dir() for run in found["runs"])
