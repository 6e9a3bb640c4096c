"""Odd files are refused with one clear line and the right exit code."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.ledger import LEDGER

Command = Callable[..., Any]

SEARCH = ("phase1", "--tier", "min", "--objective", "sphere", "--executor", "inline")
RUN = "min-sphere-s1"


def assert_one_clear_error(answer: Any, code: int = 2) -> None:
    assert answer.code == code, answer
    assert answer.err.startswith("error: ")
    assert answer.err.count("\n") == 1
    assert answer.err.removesuffix("\n").isprintable()


def directory(path: Path) -> None:
    path.unlink()
    path.mkdir()


def link_elsewhere(path: Path) -> None:
    path.rename(path.with_name("elsewhere"))
    path.symlink_to("elsewhere")


def pipe(path: Path) -> None:
    path.unlink()
    os.mkfifo(path)


EVERY_READER = (SEARCH, ("status", RUN), ("report", RUN, "--rebuild"), ("verify", RUN))


@pytest.mark.parametrize("verb", EVERY_READER, ids=lambda verb: verb[0])
@pytest.mark.parametrize("change", [directory, link_elsewhere, pipe])
def test_a_ledger_that_is_no_plain_file_is_refused(
    change: Callable[[Path], None], verb: tuple[str, ...], run: Path, command: Command
) -> None:
    change(run / LEDGER)
    answer = command(*verb)
    assert_one_clear_error(answer)
    assert str(Path(RUN) / LEDGER) in answer.err


def test_a_run_is_not_begun_through_a_broken_link(run: Path, command: Command) -> None:
    (run / LEDGER).unlink()
    (run / LEDGER).symlink_to("nowhere")
    assert_one_clear_error(command(*SEARCH))
    assert not (run / "nowhere").exists()


@pytest.mark.parametrize("part", ["reports", "eval"])
@pytest.mark.parametrize("verb", EVERY_READER, ids=lambda verb: verb[0])
def test_a_linked_part_of_a_run_is_refused(
    verb: tuple[str, ...], part: str, run: Path, command: Command, tmp_path: Path
) -> None:
    (run / part).rename(tmp_path / part)
    (run / part).symlink_to(tmp_path / part)
    before = {p: p.stat().st_mtime_ns for p in (tmp_path / part).rglob("*")}

    answer = command(*verb)
    assert_one_clear_error(answer)
    assert f"{part} is a symbolic link" in answer.err
    assert {p: p.stat().st_mtime_ns for p in (tmp_path / part).rglob("*")} == before


def test_a_linked_file_is_replaced_and_what_it_points_to_is_left_alone(
    run: Path, command: Command, tmp_path: Path
) -> None:
    victim = tmp_path / "precious"
    victim.write_text("precious")
    for name in ("summary.md", "best.json", "reports/gen_0000.md"):
        (run / name).unlink()
        (run / name).symlink_to(victim)

    assert command("report", "--rebuild").code == 0

    assert victim.read_text() == "precious"
    assert not (run / "summary.md").is_symlink()


@pytest.mark.parametrize("data", ["pipe", "jsonl:pipe"])
def test_data_that_may_never_end_is_not_waited_for(
    data: str, command: Command, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert_one_clear_error(command("plan", "--set", f"data={data}"))
