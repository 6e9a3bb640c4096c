"""`verify` finds what was done to a run, and says where."""

import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER
from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests.ledgers import cut, sealed

RunSearch = Callable[..., Result]
Lines = list[dict[str, Any]]


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory, run_search: RunSearch) -> Path:
    return run_search(tmp_path_factory.mktemp("finished"), settings={"noise": 0.01}).directory


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy to tamper with."""
    return Path(shutil.copytree(finished, tmp_path / finished.name))


@pytest.fixture
def decided(confirmed_run: Path, place: Path) -> Path:
    """A copy of one with all comparisons and a verdict."""
    return Path(shutil.copytree(confirmed_run, place / confirmed_run.name))


def seal_again(run: Path, lines: Iterable[dict[str, Any]]) -> None:
    """Write `lines` with a chain that is whole: the work of somebody who knows the format."""
    (run / LEDGER).write_bytes(sealed(lines))
    (run / HEAD).unlink(missing_ok=True)
    shutil.rmtree(run / "reports", ignore_errors=True)


def lines_of(run: Path) -> Lines:
    return [orjson.loads(line) for line in (run / LEDGER).read_bytes().splitlines()]


def numbers(lines: Lines, kind: str) -> list[int]:
    return [n for n, line in enumerate(lines) if line["event"]["kind"] == kind]


def divergence(run: Path) -> str:
    found = verify(run).divergence
    assert found is not None
    return found


def test_an_untouched_run_holds_in_every_respect(run: Path, decided: Path) -> None:
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    found = verify(run)
    assert found.divergence is None
    held = ["hash chain", "accounts", "evaluation seeds", "search", "settlements", "calibration"]
    assert [line.partition(":")[0] for line in found.held] == held
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert any("the advice of 1 models" in line for line in verify(decided).held)


def test_last_lines_that_are_gone_are_missed_by_the_mark_of_the_head(run: Path) -> None:
    cut(run, -5, keep_head=True)
    assert "is rolled back" in divergence(run)


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")
    found = verify(run)
    assert found.divergence is None
    assert any("8 attempts' own files agree, 8 have none" in line for line in found.held)


# Records that were written by somebody who knows the format; tests/acceptance has more


def test_scores_without_their_files_do_not_lead_to_the_recorded_state(run: Path) -> None:
    lines = lines_of(run)
    worst = max(numbers(lines, "settled")[:8], key=lambda n: lines[n]["event"]["score"])
    lines[worst]["event"]["score"] = 0.5
    seal_again(run, lines)
    shutil.rmtree(run / "eval")
    assert "diverges at generation 0" in divergence(run)


def test_a_forged_calibration_is_found_by_its_own_ledger(tmp_path: Path, finished: Path) -> None:
    root = Path(shutil.copytree(finished.parent.parent, tmp_path / "runs"))
    run = root / "phase1" / finished.name
    assert any(line == "calibration: its ledger agrees" for line in verify(run).held)
    lines = lines_of(run)
    lines[0]["event"]["plan"]["calibration"]["samples"][0]["score"] += 0.1
    seal_again(run, lines)
    shutil.rmtree(run / "eval")  # whose files know the plan that they were made for
    assert "the plan's calibration is not the one in" in divergence(run)
