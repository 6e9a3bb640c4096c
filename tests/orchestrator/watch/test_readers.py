"""Whoever is told of a run hears what it needs, and nothing stops when nobody reads."""

import sys
from datetime import UTC, datetime
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest
from rich.console import Console

from budgets.events import Status
from orchestrator.watch.readers import AsJson, AsLines, OnTerminal, write
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.view import run_in
from tests.orchestrator.watch.conftest import NOBODY, Terminal, Watched

if TYPE_CHECKING:
    from collections.abc import Callable

RUN = Path("artifacts/run")
NOW = datetime(2030, 1, 1, tzinfo=UTC)
SHOWS = run_in(RUN, lambda: NOW)


def test_a_pipe_hears_where_it_stands_and_a_line_a_record(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, reader = Watched(), AsLines(SHOWS)
    run.ask()
    assert reader.see(run.snapshot())
    run.evaluate(0, 1.25)
    reader.hear(run.state, run.records[-2].event)
    reader.hear(run.state, run.records[-1].event)
    assert reader.see(run.snapshot())
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"{RUN}: running (pid {run.owner.pid})"
    assert out[1] == "0 of 2 generations finished."
    assert out[2].startswith("[1/8]  generation 0  candidate  0  ok 1.25  in 2.0 s")
    assert len(out) == 3


def test_a_pipe_hears_when_nobody_carries_it_out_any_more(
    capsys: pytest.CaptureFixture[str],
) -> None:
    reader = AsLines(SHOWS)
    reader.see(Watched().snapshot())
    reader.see(Watched(owner=NOBODY).snapshot())
    lines = capsys.readouterr().out.splitlines()
    assert f"{RUN}: interrupted" in lines
    assert lines[-1].endswith("Repeat the command that began it to go on.")


def test_a_program_gets_an_object_a_line_when_there_is_something_new(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run, reader = Watched(), AsJson(SHOWS)
    run.ask()
    assert reader.see(run.snapshot(0))
    assert reader.see(run.snapshot(1))
    run.evaluate(0)
    assert reader.see(run.snapshot(2))
    first, second = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert (first["directory"], first["counts"]["ok"]) == (str(RUN), 0)
    assert second["counts"]["ok"] == 1


def test_a_run_elsewhere_is_said_once_however_long_it_is_silent(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = Watched(owner=NOBODY.model_copy(update={"boot_id": "another machine"}))
    lines, json = AsLines(SHOWS), AsJson(SHOWS)
    for seconds in (1, 2, 3):
        assert lines.see(run.snapshot(seconds))
        assert json.see(run.snapshot(seconds))
    assert len(capsys.readouterr().out.splitlines()) == 2 + 1


class Closed(StringIO):
    """A pipe that nobody reads."""

    def write(self, text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize("reader", [AsLines(SHOWS), AsJson(SHOWS)], ids=["lines", "json"])
def test_a_pipe_that_nobody_reads_is_the_end(
    reader: AsLines[Snapshot] | AsJson[Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdout", Closed())
    assert not reader.see(Watched().snapshot())


def test_without_a_stream_nobody_reads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert not write("x")


def test_a_terminal_keeps_what_lasts_and_the_last_view() -> None:
    run, terminal = Watched(), Terminal(80, 24)
    console = Console(file=terminal, force_terminal=True, color_system=None, width=80, height=24)
    with OnTerminal(console, SHOWS) as reader:
        run.ask()
        for candidate, outcome in enumerate[float | Status]((1.0, Status.NAN)):
            run.evaluate(candidate, outcome)
            reader.hear(run.state, run.records[-1].event)
        assert reader.see(run.snapshot())
    seen = terminal.seen()
    assert [line for line in seen if line.startswith("[")] == [
        line for line in seen if "nan" in line and line.startswith("[2/8]")
    ]
    assert any(line.startswith("evaluations  1 ok, 1 failed (1 nan)") for line in seen)
    assert sum(line.startswith("run  ") for line in seen) == 1


def test_a_terminal_that_went_away_is_the_end(
    capfd: pytest.CaptureFixture[str],
) -> None:
    class Gone(Terminal):
        def write(self, text: str) -> int:
            raise OSError(5, "Input/output error")

    run = Watched()
    with OnTerminal(Console(file=Gone(), force_terminal=True), SHOWS) as reader:
        wait: Callable[[], bool] = lambda: reader.see(run.snapshot())  # noqa: E731
        while wait():
            pass
