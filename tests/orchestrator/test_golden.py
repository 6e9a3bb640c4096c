"""Ledgers of every released schema replay, whatever becomes of the code."""

from pathlib import Path

import pytest

from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from orchestrator.search import Search
from orchestrator.verification.verify import verify

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("schema_*"))
SEARCHES = [path for path in GOLDEN if not path.name.endswith(("_check", "_campaign"))]


@pytest.mark.parametrize("directory", SEARCHES, ids=lambda path: path.name)
def test_a_golden_ledger_is_still_the_search_its_plan_gives(directory: Path) -> None:
    state = fold(read(directory / LEDGER).records)
    assert state.plan.search is not None

    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations, accept_drift=True)  # made on another machine, perhaps

    assert search.generation == state.plan.resolved.generations


@pytest.mark.parametrize("directory", GOLDEN, ids=lambda path: path.name)
def test_a_golden_ledger_holds_in_every_respect(directory: Path) -> None:
    found = verify(directory, accept_drift=True)

    assert found.divergence is None
    assert found.records == len(read(directory / LEDGER).records)
