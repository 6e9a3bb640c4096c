"""Ledgers of every released schema replay to the same report, whatever becomes of the code."""

from pathlib import Path

import pytest

from budgets.fold import fold
from budgets.ledger.chain import LEDGER, read
from budgets.report.model import BudgetReport, budget_report
from orchestrator.running import artifacts
from orchestrator.search import Search
from orchestrator.verification.verify import verify

GOLDEN = sorted((Path(__file__).parents[1] / "golden").glob("schema_*"))
SEARCHES = [path for path in GOLDEN if not path.name.endswith(("_check", "_campaign"))]


@pytest.mark.parametrize("directory", GOLDEN, ids=lambda path: path.name)
def test_a_golden_ledger_still_gives_its_report(directory: Path) -> None:
    """Reports may say more than they did; they say everything they did, in the same order."""
    state = fold(read(directory / LEDGER).records)

    recorded = BudgetReport.model_validate_json((directory / "report.json").read_bytes())
    given = budget_report(state)
    assert given.model_dump(include=recorded.model_fields_set) == recorded.model_dump(
        include=recorded.model_fields_set
    )
    lines = iter(artifacts.markdown(state).split("\n"))
    for line in (directory / "summary.md").read_text().split("\n"):
        assert any(now.startswith(line) for now in lines), line


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
