"""The head of a run's page, which says how it stands at the moment."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.serve.catalogue import Catalogue
from orchestrator.serve.pages import run_view
from tests.orchestrator.report.test_page import Seen

if TYPE_CHECKING:
    from tests.orchestrator.serve.conftest import Growing


def head(root: Path) -> Seen:
    catalogue = Catalogue(root, fresh_seconds=0.0)
    (entry,) = catalogue.listing().entries
    run = catalogue.find(entry.id)
    assert run is not None
    sight = run.sight(catalogue.now())
    assert sight is not None
    return Seen(run_view(run.entry, sight.snapshot, "v").parts["head"])


def test_a_run_that_nobody_carries_out_ends_at_no_time_and_evaluates_nothing(
    grow: "Callable[..., Growing]", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = grow(records=12)
    going = head(run.directory)
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: True)
    left = head(run.directory)

    assert "Ends at about " in going.words
    assert "Ends" not in left.words
    assert [clock for clock in going.of("time") if "data-ago" not in clock]
    assert "interrupted" not in going.words
    assert not [clock for clock in left.of("time") if "data-ago" not in clock]
    assert left.words.count("interrupted") == 1 + 1  # the run and what was in flight
