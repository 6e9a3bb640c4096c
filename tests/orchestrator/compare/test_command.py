"""`compare` as a person types it."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.ledger.chain import LEDGER

if TYPE_CHECKING:
    from tests.conftest import Command


@pytest.fixture
def runs(tmp_path: Path, confirmed_run: Path, finished_run: Path) -> Path:
    """The runs directory that the command looks into, with a Go and a run of tier min."""
    root = tmp_path / "artifacts/cmaes"
    for own in (confirmed_run, finished_run):
        shutil.copytree(own, root / "phase1" / own.name)
    return root


GO, MIN = "confirmed", "min-sphere-s1"


def test_runs_are_side_by_side_on_a_terminal(runs: Path, command: "Command") -> None:
    answer = command("compare", GO, MIN)
    assert answer.code == 0
    assert "These scores cannot be compared" in answer.out
    assert "dimension" in answer.out


def test_the_same_as_json(runs: Path, command: "Command") -> None:
    found = orjson.loads(command("compare", GO, MIN, "--json").out)
    assert [run["identity"]["run_id"] for run in found["runs"]] == [GO, MIN]
    assert found["scores"]["groups"] == [[0], [1]]


def test_a_page_lies_with_the_first_runs_reports(runs: Path, command: "Command") -> None:
    answer = command("compare", GO, MIN, "--html")
    path = runs / "phase1" / GO / "reports/compare.html"
    assert answer.out.startswith(str(Path(*path.parts[-6:])))
    assert "file://" in answer.out
    assert "<h1>" in path.read_text()


def test_or_where_a_person_wants_it(runs: Path, tmp_path: Path, command: "Command") -> None:
    assert command("compare", GO, MIN, "--md", "--out", "both.md").code == 0
    assert (tmp_path / "both.md").read_text().startswith("# confirmed")
    assert command("compare", GO, MIN, "--html", "--out", "-").out.startswith("<!doctype html>")


def test_the_same_runs_give_the_same_page(runs: Path, command: "Command") -> None:
    pages = [command("compare", GO, MIN, "--html", "--out", "-").out for _ in range(2)]
    assert pages[0] == pages[1]


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ((GO,), "expected 2 to 20 different runs to compare, got 1"),
        ((GO, "nothing"), "no run 'nothing' in artifacts/cmaes"),
        ((GO, MIN, "--out", "x.html"), "--out says where to: add --html or --md"),
        ((GO, MIN, "--html", "--md"), "--html and --md: one at a time"),
        ((GO, MIN, "--html", "--out", "."), "is a directory"),
    ],
)
def test_a_mistake_is_one_clear_line(
    runs: Path, command: "Command", words: tuple[str, ...], says: str
) -> None:
    answer = command("compare", *words)
    assert answer.code == 2
    assert says in answer.err
    assert answer.err.count("\n") == 1


def test_a_damaged_ledger_is_named(runs: Path, command: "Command") -> None:
    ledger = runs / "phase1" / MIN / LEDGER
    ledger.write_bytes(ledger.read_bytes().replace(b'"score":1', b'"score":2', 1))
    answer = command("compare", GO, MIN)
    assert answer.code == 6
    assert MIN in answer.err


def test_a_run_that_has_not_begun_is_named(runs: Path, command: "Command") -> None:
    (runs / "phase1" / MIN / LEDGER).write_bytes(b"")
    (runs / "phase1" / MIN / "ledger.head").unlink(missing_ok=True)
    answer = command("compare", GO, MIN)
    assert answer.code in (2, 6)
    assert MIN in answer.err
