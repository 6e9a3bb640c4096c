"""What a person sees of the run that a command carries out: lines, and on a terminal a view."""

import fcntl
import io
import os
import pty
import struct
import sys
import termios
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

import pytest
from rich.console import Console

from budgets.events import Concluded, Status
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.execution.engine import Engine
from orchestrator.planning.request import Request
from orchestrator.running.searching import Searching
from orchestrator.running.session import Session
from orchestrator.simulation.session import Person
from orchestrator.watch import live as watched_live
from orchestrator.watch.live import MOST_UNNOTED, Live
from tests.orchestrator.watch.conftest import Terminal, Watched


def plain() -> Console:
    return Console(file=io.StringIO(), width=110)


def said(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


class Hand:
    """A run in hand, as far as somebody looks at it."""

    def __init__(self, run: Watched, directory: Path) -> None:
        self.state, self.directory = run.state, directory


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """A terminal, of which nothing that only a real one has is used."""
    monkeypatch.setenv("TERM", "xterm")
    return Terminal(100, 30)


def on(terminal: Terminal) -> Console:
    return Console(file=terminal, force_terminal=True, color_system=None)


def test_off_a_terminal_every_record_has_its_line() -> None:
    console, run = plain(), Watched()
    with Live(console) as live:
        run.ask()
        for candidate in range(2):
            run.evaluate(candidate, 1.25)
            live.observe(run.state, run.records[-1].event)
            live.look(Hand(run, Path()))  # type: ignore[arg-type]
    assert [line.split("  ")[0] for line in said(console).splitlines()] == ["[1/8]", "[2/8]"]
    assert "\x1b" not in said(console)


def test_a_dumb_terminal_gets_lines(terminal: Terminal, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    run = Watched()
    with Live(on(terminal)) as live:
        run.ask()
        run.evaluate(0)
        live.observe(run.state, run.records[-1].event)
    assert terminal.seen()[0].startswith("[1/8]  generation 0")


def observed(live: Live, run: Watched) -> None:
    """Everything since the last time."""
    for record in run.records[getattr(run, "told", 0) :]:
        live.observe(run.state, record.event)
    run.told = len(run.records)  # type: ignore[attr-defined]


def test_on_a_terminal_a_view_stands_below_what_lasts(terminal: Terminal, tmp_path: Path) -> None:
    run = Watched()
    with Live(on(terminal), now=lambda: run.now) as live:
        run.ask()
        run.evaluate(0, 1.0)
        run.evaluate(1, Status.NAN)
        run.reserve(2)
        observed(live, run)
        live.look(Hand(run, tmp_path))  # type: ignore[arg-type]
        picture = live._picture(20)
        assert picture is not None
        console = plain()
        console.print(picture)
        assert "1 ok, 1 failed (1 nan), 1 in flight" in said(console)
        assert "cpu 1  candidate 2" in said(console)
    seen = terminal.seen()
    assert seen[0].startswith("Starting phase1 small: ")
    assert [line for line in seen if line.startswith("[")] == [
        line for line in seen if line.startswith("[2/8]") and "nan" in line
    ]
    assert seen[-1] == ""  # the view is gone: what follows is the command's


def test_a_snapshot_is_taken_when_something_has_changed_and_not_too_often(
    terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, taken, clock = Watched(), list[int](), [0.0]

    def counted(*_: Any) -> Any:
        taken.append(1)
        return run.snapshot()

    monkeypatch.setattr(watched_live, "snapshot", counted)
    with Live(on(terminal), monotonic=lambda: clock[0]) as live:
        hand: Any = Hand(run, tmp_path)
        run.ask()
        observed(live, run)
        for _ in range(3):
            live.look(hand)
        assert len(taken) == 1
        run.evaluate(0)
        observed(live, run)
        live.look(hand)
        assert len(taken) == 1
        clock[0] += 100.0
        live.look(hand)
        live.look(hand)
        assert len(taken) == 2


def test_records_that_nobody_looks_at_do_not_pile_up(terminal: Terminal) -> None:
    run = Watched()
    with Live(on(terminal)) as live:
        run.ask()
        event = run.reserve(0)
        for _ in range(3 * MOST_UNNOTED):
            live.observe(run.state, event)
        assert len(live._unnoted) <= MOST_UNNOTED
        assert list(live._noted.slots.values()) == [0]


def test_each_run_of_a_session_has_its_own_view(terminal: Terminal, tmp_path: Path) -> None:
    first, second = Watched(), Watched()
    with Live(on(terminal)) as live:
        first.ask()
        first.evaluate(0)
        observed(live, first)
        live.look(Hand(first, tmp_path / "first"))  # type: ignore[arg-type]
        assert live._picture(20) is not None
        live.observe(first.state, Concluded(reason="done"))
        assert live._picture(20) is None
        observed(live, second)
        assert live._picture(20) is None
        live.look(Hand(second, tmp_path / "second"))  # type: ignore[arg-type]
        console = plain()
        picture = live._picture(20)
        assert picture is not None
        console.print(picture)
        assert "0 ok, 0 in flight" in said(console)


def test_a_report_and_what_follows_come_after_the_view(terminal: Terminal) -> None:
    with Live(on(terminal)) as live:
        live.say("before")
        live.rest()
        live.markdown("# Report")
        live.say("after")
    seen = [line.strip() for line in terminal.seen() if line.strip()]
    assert seen[0] == "before"
    assert "Report" in seen[1] + seen[2]
    assert seen[-1] == "after"


def test_what_others_print_stands_above_the_view(
    terminal: Terminal, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stderr", terminal)
    with Live(on(terminal)):
        sys.stderr.write("a library warns\n")
    assert terminal.seen()[0] == "a library warns"
    assert sys.stderr is terminal


def test_a_wish_to_end_is_answered_in_its_place(
    terminal: Terminal, capfd: pytest.CaptureFixture[str]
) -> None:
    live = Live(on(terminal))
    live.announce("at once")
    assert capfd.readouterr().err == "\nat once\n"
    with live:
        live.announce("Finishing what is running")
    assert terminal.seen()[0] == "Finishing what is running"


class Vanishes(Terminal):
    """A terminal that goes away after some writing."""

    def __init__(self, place: TextIO) -> None:
        super().__init__(100, 30)
        self._place, self._writes = place, 3

    def write(self, text: str) -> int:
        if not self._writes:
            raise OSError(5, "Input/output error")
        self._writes -= 1
        return super().write(text)

    def fileno(self) -> int:
        return self._place.fileno()


def test_a_run_goes_on_when_its_terminal_goes_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    with (tmp_path / "place").open("w") as place:
        state = searched(tmp_path, on(Vanishes(place)))
    assert state.concluded is not None


def searched(root: Path, console: Console, **settings: Any) -> Any:
    """A whole search of tier min, calibration and all, watched on that console."""
    spec = ObjectiveSpec(name="sphere", settings={"dimension": 2, **settings})
    with (
        Live(console) as live,
        Session(
            root / "runs",
            Engine(kind="inline", workers=1),
            live.observe,
            live.say,
            stop=Person(),
            look=live.look,
        ) as session,
    ):
        request = Request("phase1", "min", registry.load(spec))
        return Searching(request, session.engine.slots()).carry_out(session).state


def test_a_session_of_two_runs_is_watched_to_its_end(terminal: Terminal, tmp_path: Path) -> None:
    state = searched(tmp_path, on(terminal))
    seen = terminal.seen()
    assert state.concluded is not None
    assert any(line.startswith("Starting calibration") for line in seen)
    assert any(line.startswith("Starting phase1") for line in seen)
    assert sum(line.startswith("Generation ") for line in seen) == 2
    assert not any(line.startswith("[") for line in seen)  # all were healthy
    assert not any(line.startswith("run  ") for line in seen)  # the view is gone


def test_on_a_real_terminal_a_run_is_painted_and_leaves_it_in_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    master, slave = pty.openpty()
    fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
    heard: list[bytes] = []
    reader = threading.Thread(target=drain, args=(master, heard))
    reader.start()
    with open(slave, "w", encoding="utf-8") as file:
        console = Console(file=file, force_terminal=True, color_system=None)
        assert searched(tmp_path, console, seconds=0.05).concluded is not None
    reader.join()
    os.close(master)
    text = b"".join(heard).decode()
    assert "in flight" in text  # of the calibration, or of the search after it
    assert "cpu 1  " in text
    terminal = Terminal(100, 30)
    terminal.write(text)
    assert not any(line.startswith("run  ") for line in terminal.seen())
    assert any(line.startswith("Generation 1 (2 of 2)") for line in terminal.seen())


def drain(place: int, heard: list[bytes]) -> None:
    with suppress(OSError):  # the other end is closed
        while more := os.read(place, 1 << 16):
            heard.append(more)


def test_failures_stay_on_the_terminal(terminal: Terminal, tmp_path: Path) -> None:
    searched(tmp_path, on(terminal), failure_rate=0.1)
    assert any("InjectedError" in line for line in terminal.seen())
