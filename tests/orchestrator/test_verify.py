"""`verify` finds what was done to a run, and says where."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests.ledgers import cut

RunSearch = Callable[..., Result]


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


def test_an_untouched_run_holds_in_every_respect(run: Path, decided: Path) -> None:
    before = {p: p.read_bytes() for p in run.rglob("*") if p.is_file()}
    found = verify(run)
    assert found.divergence is None
    assert (found.records, found.files, found.without_files) == (39, 16, 0)
    assert {p: p.read_bytes() for p in run.rglob("*") if p.is_file()} == before
    assert verify(decided).divergence is None


def test_last_lines_that_are_gone_are_missed_by_the_mark_of_the_head(run: Path) -> None:
    cut(run, -5, keep_head=True)
    assert "is rolled back" in str(verify(run).divergence)


def test_deleted_evaluations_are_counted_not_hidden(run: Path) -> None:
    shutil.rmtree(run / "eval/gen_0000")
    found = verify(run)
    assert found.divergence is None
    assert (found.files, found.without_files) == (8, 8)
