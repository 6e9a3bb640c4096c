"""A process that is suspended or killed leaves the terminal in order."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY

PAINTS = """
import os, signal, sys
from rich.console import Console
from orchestrator.watch.tidy import tidy

with tidy(Console(file=sys.stdout)):
    print("ready", end="", flush=True)
    while sys.stdin.readline() != "end\\n":
        print("again", end="", flush=True)
print("left", end="", flush=True)
"""


class Painter:
    """A job of its own that paints on what we read."""

    def __init__(self) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", PAINTS],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            process_group=0,
            bufsize=0,
        )
        self.heard = b""

    def until(self, said: bytes) -> None:
        """Wait until it has said that; for ever, if it does not: a test has a time limit."""
        assert self.process.stdout is not None
        while said not in self.heard:
            more = self.process.stdout.read(1 << 16)
            assert more, self.heard
            self.heard += more

    def tell(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")

    def suspend(self) -> None:
        os.kill(self.process.pid, signal.SIGTSTP)
        _, status = os.waitpid(self.process.pid, os.WUNTRACED)
        assert os.WIFSTOPPED(status)

    def go_on(self) -> None:
        os.kill(self.process.pid, signal.SIGCONT)

    def close(self) -> None:
        self.process.kill()
        self.process.communicate()


@pytest.fixture
def painter() -> Iterator[Painter]:
    painter = Painter()
    painter.until(b"ready")
    yield painter
    painter.close()


def test_a_killed_process_has_what_it_painted_taken_away(painter: Painter) -> None:
    painter.process.kill()
    painter.until(b"ready\x1b[J")


def test_a_process_that_ends_by_itself_leaves_the_terminal_to_others(painter: Painter) -> None:
    painter.tell(b"end")
    painter.until(b"left")
    painter.process.wait()
    assert painter.heard == b"readyleft"


def test_a_suspended_process_takes_its_picture_away_each_time(painter: Painter) -> None:
    for _ in range(2):
        painter.suspend()
        painter.until(b"\r\x1b[J")
        painter.go_on()
        painter.tell(b"go on")
        painter.until(b"again")
        painter.heard = b""


def test_where_nobody_may_suspend_the_process_that_stays_so(tmp_path: Path) -> None:
    script = PAINTS.replace(
        "with tidy", "signal.signal(signal.SIGTSTP, signal.SIG_IGN)\nwith tidy"
    ).replace("    while", "    os.kill(os.getpid(), signal.SIGTSTP)\n    while")
    done = subprocess.run(
        [sys.executable, "-c", script],
        input="end\n",
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "readyleft"
    assert done.stderr == ""
