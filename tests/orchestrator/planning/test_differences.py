"""Where two plans differ: provenance counts as far as it may decide a score."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger.chain import LEDGER
from objectives.analytic import AnalyticObjective
from orchestrator.planning.differences import differences
from orchestrator.records.recorded import Result
from orchestrator.running.run import PlanChangedError

Run = Callable[..., Result]
QUICK: dict[str, Any] = {"assumed_seconds": 1.0}
BEFORE: dict[str, str | int] = {"commit": "a" * 40, "dirty": 1, "data_sha256": "d" * 64}
COMMITTED = BEFORE | {"commit": "b" * 40, "dirty": 0}


@pytest.fixture
def begun(tmp_path: Path, run_search: Run, monkeypatch: pytest.MonkeyPatch) -> Result:
    """A run whose sources were at a commit, and not quite."""
    monkeypatch.setattr(AnalyticObjective, "provenance", BEFORE)
    return run_search(tmp_path, **QUICK)


@pytest.mark.parametrize(
    ("provenance", "expected"),
    [
        (BEFORE, []),
        (COMMITTED, []),
        ({"data_sha256": "d" * 64}, []),
        (BEFORE | {"program_torch": "2.6"}, ["provenance.program_torch: None -> 2.6"]),
        (COMMITTED | {"data_sha256": "e"}, [f"provenance.data_sha256: {'d' * 64} -> e"]),
    ],
)
def test_a_commit_is_for_the_record(
    provenance: dict[str, str | int], expected: list[str], begun: Result
) -> None:
    plan = begun.state.plan
    assert differences(plan, plan.model_copy(update={"provenance": provenance})) == expected


@pytest.mark.parametrize("more", [{}, {"fork": True}])
def test_to_commit_what_was_dirty_leaves_a_run_the_same(
    more: dict[str, Any],
    begun: Result,
    tmp_path: Path,
    run_search: Run,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    before = (begun.directory / LEDGER).read_bytes()
    monkeypatch.setattr(AnalyticObjective, "provenance", COMMITTED)

    again = run_search(tmp_path, **QUICK, **more)

    assert again.directory == begun.directory
    assert (again.directory / LEDGER).read_bytes() == before
    assert again.state.plan.provenance == BEFORE


def test_other_data_is_another_plan(
    begun: Result, tmp_path: Path, run_search: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = COMMITTED | {"data_sha256": "e" * 64}
    monkeypatch.setattr(AnalyticObjective, "provenance", other)
    with pytest.raises(PlanChangedError, match="data_sha256") as refused:
        run_search(tmp_path, **QUICK)
    assert "commit" not in str(refused.value)
    assert begun.verdict.decision == "done"
