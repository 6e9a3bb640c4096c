"""Lines scroll above a picture that stays whole, whoever else writes and however it is resized."""

import threading
import time
from collections.abc import Callable

import pytest
from rich.console import Console
from rich.markdown import Markdown
from rich.text import Text

from orchestrator.watch.screen import PAINT_SHARE, Screen, Size, can_paint
from tests.orchestrator.watch.conftest import Terminal


class Stage:
    """A screen whose turns are taken one by one, on a clock that stands still."""

    def __init__(self, terminal: Terminal, above: int = 4) -> None:
        self.terminal, self.now = terminal, 0.0
        self.picture: str | None = "one\ntwo"
        self.asked: list[int] = []
        console = Console(file=terminal, force_terminal=True, color_system=None, width=None)
        self.screen = Screen(console, self._picture, above, self._size, lambda: self.now)

    def _picture(self, lines: int) -> Text | None:
        self.asked.append(lines)
        return None if self.picture is None else Text(self.picture)

    def _size(self) -> Size:
        return Size(self.terminal.columns, self.terminal.lines)

    def turn(self, *said: str, seconds: float = 0.0, is_over: bool = False) -> list[str]:
        """What is seen after one turn."""
        self.now += seconds
        self.terminal.write(self.screen._turn(list(said), is_over=is_over))
        return self.terminal.seen()


@pytest.fixture
def stage() -> Stage:
    return Stage(Terminal(20, 10))


def test_a_picture_stands_below_what_was_there_and_what_is_said(stage: Stage) -> None:
    stage.terminal.write("$ run\n")
    assert stage.turn() == ["$ run", "", "one", "two"]
    assert stage.turn("first", "second") == ["$ run", "first", "second", "", "one", "two"]


def test_a_picture_is_painted_over_the_last_one(stage: Stage) -> None:
    stage.turn()
    stage.picture = "three"
    assert stage.turn(seconds=1.0) == ["", "three"]
    stage.picture = "4\n5\n6"
    assert stage.turn(seconds=1.0) == ["", "4", "5", "6"]


def test_it_is_painted_once_a_second_however_much_is_said(stage: Stage) -> None:
    stage.turn()
    for _ in range(9):
        stage.turn("line", seconds=0.1)
    assert len(stage.asked) == 1
    stage.turn(seconds=0.2)
    assert len(stage.asked) == 2


def test_it_may_have_the_terminal_but_for_a_few_lines(stage: Stage) -> None:
    stage.turn()
    assert stage.asked == [6]
    small = Stage(Terminal(20, 3))
    small.turn()
    assert small.asked == [1]


def test_a_picture_that_is_dear_is_painted_less_often(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = iter((0.0, 0.01))
    monkeypatch.setattr(time, "thread_time", lambda: next(ticks))
    stage.turn()
    assert stage.screen._due == pytest.approx(0.01 / PAINT_SHARE)


def test_in_the_end_only_what_was_said_is_left(stage: Stage) -> None:
    stage.turn("first")
    assert stage.turn("last", is_over=True) == ["first", "last", ""]


def test_what_somebody_else_writes_stays_above_it(stage: Stage) -> None:
    stage.turn()
    stage.terminal.write("\nstray\n")
    seen = stage.turn(seconds=1.0)
    assert [line.split("  ")[0] for line in seen] == ["", "stray", "", "one", "two"]


def test_a_person_who_presses_enter_leaves_nothing_behind(stage: Stage) -> None:
    stage.turn()
    stage.terminal.write("\r\n")
    assert stage.turn(seconds=1.0) == ["", "", "one", "two"]


def test_a_screen_that_is_full_scrolls(stage: Stage) -> None:
    said = [f"line {number}" for number in range(30)]
    for line in said:
        stage.turn(line, seconds=0.4)
    assert stage.terminal.seen() == [*said, "", "one", "two"]


@pytest.mark.parametrize("columns", [12, 7, 60])
def test_a_terminal_that_is_resized_has_one_picture(columns: int, stage: Stage) -> None:
    stage.picture = "a picture as wide"
    stage.turn("said before")
    stage.terminal.resize(columns)
    stage.picture = "fits"
    seen = stage.turn(seconds=0.1)  # at once, not only when it is due
    assert "".join(seen) == "said beforefits"


def test_text_that_is_said_steers_no_terminal_and_is_folded_by_it(stage: Stage) -> None:
    seen = stage.turn("\x1b[2J" + "x" * 25)
    assert seen[:2] == ["�[2J" + "x" * 16, "x" * 9]


def test_a_report_is_laid_out(stage: Stage) -> None:
    stage.turn(Markdown("# A title"))  # type: ignore[arg-type]
    assert any("A title" in line for line in stage.terminal.seen())


def test_without_a_picture_there_are_lines_alone(stage: Stage) -> None:
    stage.picture = None
    assert stage.turn() == [""]
    assert 0 < stage.screen._due < 1
    assert stage.turn("line") == ["line", ""]


def test_a_job_in_the_background_says_its_lines_and_paints_nothing(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stage.screen, "_is_in_front", lambda: False)
    assert stage.turn("line") == ["line", ""]
    assert stage.asked == []
    assert stage.screen._due == 1.0  # then it looks again whether it is in front


def until(condition: Callable[[], bool]) -> None:
    """Wait until it holds; for ever, if it does not: a test has a time limit."""
    pause = threading.Event()
    while not condition():
        pause.wait(0.005)


def test_its_own_thread_says_what_was_put_before_the_end() -> None:
    terminal = Terminal(20, 10)
    console = Console(file=terminal, force_terminal=True, color_system=None)
    screen = Screen(console, lambda lines: Text("picture"), 4, lambda: Size(20, 10))
    screen.start()
    screen.say("first")
    screen.say("second")
    screen.stop()
    assert terminal.seen() == ["first", "second", ""]
    assert not screen.is_alive()


class Gone(Terminal):
    """A terminal that went away."""

    def write(self, text: str) -> int:
        raise OSError(5, "Input/output error")


def test_a_terminal_that_went_away_ends_the_painting_and_nothing_else() -> None:
    console = Console(file=Gone(), force_terminal=True)
    screen = Screen(console, lambda lines: Text("picture"), 4, lambda: Size(20, 10))
    screen.start()
    until(lambda: not screen.is_alive())
    screen.say("nobody hears this")
    screen.stop()


class Impatient(Terminal):
    """A terminal that somebody has made not to wait."""

    refusals = 2

    def write(self, text: str) -> int:
        if self.refusals:
            self.refusals -= 1
            raise BlockingIOError(11, "Resource temporarily unavailable")
        return super().write(text)


def test_a_terminal_that_does_not_wait_is_tried_again() -> None:
    terminal = Impatient(20, 10)
    console = Console(file=terminal, force_terminal=True, color_system=None)
    screen = Screen(console, lambda lines: Text("picture"), 4, lambda: Size(20, 10))
    screen.start()
    for number in range(3):
        screen.say(f"line {number}")
        until(screen._queue.empty)
    screen.stop()
    assert "line 2" in terminal.seen()


@pytest.mark.parametrize(
    ("is_terminal", "term", "can"),
    [
        (True, "xterm", True),
        (True, "dumb", False),
        (True, "", False),
        (False, "xterm", False),
    ],
)
def test_only_a_terminal_that_understands_is_painted_on(
    is_terminal: bool, term: str, can: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", term)
    terminal = Terminal()
    monkeypatch.setattr(terminal, "isatty", lambda: is_terminal)
    assert can_paint(Console(file=terminal)) is can


def test_a_stream_that_was_closed_is_no_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    terminal = Terminal()
    console = Console(file=terminal)

    def closed() -> bool:
        raise ValueError("I/O operation on closed file")

    monkeypatch.setattr(terminal, "isatty", closed)
    assert not can_paint(console)
