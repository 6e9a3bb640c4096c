"""What a bench is asked, and how it says what it measured."""

import subprocess
import sys
from argparse import Namespace
from collections.abc import Iterator
from math import inf
from pathlib import Path

import pytest

from scripts.bench.bench import (
    FIGURES,
    Aim,
    Figure,
    Option,
    asked,
    bench,
    folder,
    orchestrate,
    p95,
)

OPTIONS = (
    Option("rounds", 7, 1, "turns, 100 % of them"),
    Option("rates", (1.0, 10.0), (10.0,)),
    Option("out", Path("kept"), None),
    Option("names", (), ("one",)),
    Option("retry", False, False),
)


def test_a_quick_run_takes_the_quick_values_but_for_what_is_said() -> None:
    assert vars(asked("", OPTIONS, [])) == {
        "quick": False,
        "json": None,
        "rounds": 7,
        "rates": (1.0, 10.0),
        "out": Path("kept"),
        "names": (),
        "retry": False,
    }
    words = ["--quick", "--rates", "2", "3", "--retry", "--json", "x"]
    assert vars(asked("", OPTIONS, words)) == {
        "quick": True,
        "json": Path("x"),
        "rounds": 1,
        "rates": [2.0, 3.0],
        "out": None,
        "names": ("one",),
        "retry": True,
    }


@pytest.mark.parametrize("word", ["0", "-1", "1.5", "many"])
def test_a_count_is_one_or_more(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        asked("", OPTIONS, [f"--rounds={word}"])
    assert ended.value.code == 2
    assert f"--rounds: expected 1 or more, got {word}" in capsys.readouterr().err


def test_help_tells_both_values(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        asked("What it is.", OPTIONS, ["--help"])
    said = " ".join(capsys.readouterr().out.split())
    assert "turns, 100 % of them (full: 7; quick: 1)" in said
    assert "(full: 1.0 10.0; quick: 10.0)" in said


@pytest.mark.parametrize(
    ("figure", "row"),
    [
        (Figure("plain", 0.12345), "| plain | 0.123 |  |  |"),
        (Figure("many", 12345.6, "records"), "| many | 12,346 records |  |  |"),
        (Figure("share", 3, "%", 1, 5.25), "| share | 3 % (1 to 5.25) |  |  |"),
        (Figure("one round", 3, "s", 3, 3), "| one round | 3 s |  |  |"),
        (Figure("spend", inf, "%"), "| spend | never |  |  |"),
        (Figure("just", 2, "s", aim=Aim(most=2)), "| just | 2 s | at most 2 s | met |"),
        (
            Figure("slow", 2.01, "s", aim=Aim(most=2, source="a.md")),
            "| slow | 2.01 s | at most 2 s, a.md | **missed** |",
        ),
        (
            Figure("low", 0.8, aim=Aim(0.9, 1.1)),
            "| low | 0.8 | at least 0.9, at most 1.1 | **missed** |",
        ),
    ],
)
def test_a_figure_is_a_row_with_its_aim(figure: Figure, row: str) -> None:
    assert figure.row() == row


def test_a_quick_figure_is_held_to_nothing() -> None:
    row = Figure("slow", 3, "s", aim=Aim(most=2)).row(judged=False)
    assert row == "| slow | 3 s | at most 2 s |  |"


def test_figures_are_printed_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = [Figure("time", 3, "s", aim=Aim(most=2)), Figure("spend", inf, "%", 1, inf)]

    def measure(given: Namespace) -> Iterator[Figure]:
        assert given.rounds == 1
        yield from figures

    kept = tmp_path / "figures.json"
    monkeypatch.setattr(sys, "argv", ["bench", "--quick", "--json", str(kept)])
    bench("What it is.", measure, *OPTIONS)
    head, rule, *rows = capsys.readouterr().out.splitlines()
    assert (head, rule) == ("| figure | value | aim | |", "|---|--:|---|---|")
    assert rows == [figure.row(judged=False) for figure in figures]
    assert FIGURES.validate_json(kept.read_bytes()) == figures


def test_95_in_100_stay_within_it() -> None:
    assert p95([7.0]) == 7.0
    assert p95([float(n) for n in range(101)]) == pytest.approx(95)


def test_a_folder_that_nobody_named_is_gone_afterwards(tmp_path: Path) -> None:
    with folder(tmp_path / "named" / "deep") as kept, folder() as passing:
        assert kept.is_dir()
        assert passing.is_dir()
    assert kept.is_dir()
    assert not passing.exists()


@pytest.mark.parametrize(("code", "ends"), [(0, False), (4, False), (2, True)])
def test_a_command_that_fails_ends_the_bench(
    code: int, ends: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def run(command: list[str], **_: object) -> subprocess.CompletedProcess[str]:
        return subprocess.CompletedProcess(command, code, stdout="words")

    monkeypatch.setattr(subprocess, "run", run)
    if not ends:
        assert orchestrate("plan") == "words"
        return
    with pytest.raises(SystemExit, match="plan ended with 2"):
        orchestrate("plan")
