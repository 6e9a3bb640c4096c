"""The head of a run's page, which says how it stands at the moment."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.serve.catalogue import Catalogue
from orchestrator.serve.view import View
from orchestrator.serve.watching import view

if TYPE_CHECKING:
    from tests.orchestrator.serve.conftest import Growing


def head(root: Path) -> View:
    catalogue = Catalogue(root, fresh_seconds=0.0)
    (entry,) = catalogue.listing().entries
    run = catalogue.find(entry.id)
    assert run is not None
    sight = run.sight(catalogue.now())
    assert sight is not None
    return view(run.entry, sight.snapshot, "v")


def test_a_run_that_nobody_carries_out_ends_at_no_time_and_evaluates_nothing(
    grow: "Callable[..., Growing]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = grow(records=12)
    going = head(run.directory)
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: True)
    left = head(run.directory)

    assert going.text["ends"].startswith("at about ")
    assert left.text["ends"] == ""
    assert [row["cells"][2] for row in left.tables["devices"] if row["cells"][1] != "idle"]
    for before, after in zip(going.tables["devices"], left.tables["devices"], strict=True):
        assert before["cells"][2] != "interrupted"
        assert after["cells"][2] in ("interrupted", None)
