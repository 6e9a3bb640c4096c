"""Sessions that resume a run: its plan, its owner, its kind of device."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger import LEDGER
from orchestrator.execution.api import Slots
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from orchestrator.run.files import PlanChangedError
from orchestrator.run.session import Session
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]
Cut = Callable[..., None]

# Forks


@pytest.fixture
def root(run: Path) -> Path:
    """Where a finished run of tier min and its calibration are."""
    return run.parent.parent


def test_a_run_goes_on_with_the_verdict_that_it_was_begun_with(
    tmp_path: Path, run_search: RunSearch
) -> None:
    terms = {"tier": "target", "max_evals": 16}
    begun = run_search(tmp_path, confirm_seeds=4, **terms)
    assert run_search(tmp_path, confirm_seeds=4, **terms).directory == begun.directory
    with pytest.raises(PlanChangedError, match=r"confirmation\.seeds: 4 -> 8"):
        run_search(tmp_path, **terms)


# Full disks


# What a session says and keeps to


@dataclass(frozen=True)
class Gpu(Engine):
    """As if this machine had one."""

    def slots(self) -> Slots:
        return Slots(1, "cuda", "a GPU", 1)


def test_a_run_is_not_taken_up_on_another_kind_of_device(
    run: Path, root: Path, run_search: RunSearch, cut: Cut
) -> None:
    cut(run, 12)
    before = (run / LEDGER).read_bytes()
    with pytest.raises(
        ValueError, match=r"planned for cpu, this machine offers cuda.*--device cpu"
    ):
        run_search(root, **NOISY, engine=Gpu("inline"))
    assert (run / LEDGER).read_bytes() == before


def test_a_run_that_another_process_concluded_meanwhile_is_over_and_no_error(
    tmp_path: Path, run_search: RunSearch, monkeypatch: pytest.MonkeyPatch
) -> None:
    prepare, results = Session._prepare, list[Result]()

    def overtaken(self: Session, *what: Any) -> None:
        monkeypatch.undo()
        results.append(run_search(tmp_path, assumed_seconds=1.0))
        prepare(self, *what)

    monkeypatch.setattr(Session, "_prepare", overtaken)  # between its look and its lock
    late = run_search(tmp_path, assumed_seconds=1.0)

    assert late.ruling == results[0].ruling
    assert late.state.head == results[0].state.head
