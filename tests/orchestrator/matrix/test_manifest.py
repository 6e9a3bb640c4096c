"""How a campaign stands, seen from beside it."""

import json
from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger import LEDGER, read
from orchestrator.look.run import Run
from orchestrator.matrix.manifest import MANIFEST
from orchestrator.records.runs import Result, load_state
from tests.ledgers import cut

Train = Callable[..., Result]


def test_a_campaign_leaves_a_manifest_of_all_its_runs(train: Train, tmp_path: Path) -> None:
    result = train(tmp_path)
    found = json.loads((result.directory / MANIFEST).read_bytes())
    assert (found["name"], found["total_runs"]) == ("toy", 15)
    assert [run["control"] for run in found["runs"]].count(True) == 3
    assert all((result.directory / run["directory"]).is_dir() for run in found["runs"])


@pytest.mark.parametrize(
    ("is_gone", "counts"),
    [(False, {"ok": 4, "running": 1, "pending": 10}), (True, {"ok": 4, "pending": 11})],
)
def test_it_shows_what_is_in_flight_unless_its_process_is_gone(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_gone: bool, counts: Any
) -> None:
    directory = train(tmp_path).directory
    records = read(directory / LEDGER)
    settled = [place for place, one in enumerate(records) if one.event.kind == "settled"]
    reserved = [place for place, one in enumerate(records) if one.event.kind == "reserved"]
    cut(directory, 1 + next(place for place in reserved if place > settled[3]))
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: is_gone)
    last = datetime.fromisoformat(read(directory / LEDGER)[-1].at)
    run = Run(load_state(directory), last + timedelta(seconds=1), directory)
    assert run.matrix is not None
    assert run.matrix.counts == counts
