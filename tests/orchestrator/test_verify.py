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
    assert (found.records, found.files, found.without_files) == (39, 16, 0)
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert verify(decided).divergence is None


def test_last_lines_that_are_gone_are_missed_by_the_mark_of_the_head(run: Path) -> None:
    cut(run, -5, keep_head=True)
    assert "is rolled back" in divergence(run)


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")
    found = verify(run)
    assert found.divergence is None
    assert (found.files, found.without_files) == (8, 8)


# Records that were written by somebody who knows the format; tests/acceptance has more


def test_scores_without_their_files_do_not_lead_to_the_recorded_state(run: Path) -> None:
    lines = lines_of(run)
    worst = max(numbers(lines, "settled")[:8], key=lambda n: lines[n]["event"]["score"])
    lines[worst]["event"]["score"] = 0.5
    seal_again(run, lines)
    shutil.rmtree(run / "eval")
    assert "diverges at generation 0" in divergence(run)
