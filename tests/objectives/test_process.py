"""Programs that talk, are silent, hang on or fail: each is heard, none outlives its evaluation."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from objectives import process
from objectives.api import (
    CommandLine,
    DivergedError,
    OutOfMemoryError,
    SetupError,
)
from objectives.process import Exit, run
from tests.objectives.processes import is_running

Run = Callable[..., Exit]


@pytest.fixture
def heard() -> list[str]:
    return []


@pytest.fixture
def beats() -> list[Mapping[str, float]]:
    return []


@pytest.fixture
def python(tmp_path: Path, heard: list[str], beats: list[Mapping[str, float]]) -> Run:
    """Runs a Python program; `hear` and `beat` may do more than remember."""

    def start(
        code: str,
        hear: Callable[[str], Mapping[str, float] | None] = lambda line: None,
        beat: Callable[[], object] = lambda: None,
        **environment: str,
    ) -> Exit:
        def listen(line: str) -> Mapping[str, float] | None:
            heard.append(line)
            return hear(line)

        def note(metrics: Mapping[str, float]) -> None:
            beats.append(dict(metrics))
            beat()

        argv = (sys.executable, "-I", "-S", "-c", code)
        return run(CommandLine(argv, tmp_path, environment), listen, note)

    return start


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Heartbeats come, and CPU time is asked for, twenty times a second."""
    monkeypatch.setattr(process, "BEAT_SECONDS", 0.05)
    monkeypatch.setattr(process, "CHECK_SECONDS", 0.05)


def test_every_line_of_both_streams_is_heard_and_passed_on(
    python: Run, heard: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    ended = python("import sys; print('a\\n\\nb'); print('c', file=sys.stderr)")

    assert ended == Exit(0, ended.tail)
    assert sorted(heard) == sorted(ended.tail) == ["a", "b", "c"]
    assert capsysbinary.readouterr() == (b"a\n\nb\n", b"c\n")


LINES = [
    ("print('score: 1', end='')", ["score: 1"]),
    ("print('1 %\\r2 %\\r3 %')", ["1 %", "2 %", "3 %"]),
    (r"print('\x1b[2K\x1b]0;title\x07\x1b[1;38;5;9mloss: 1\x1b[0m')", ["loss: 1"]),
    ("import sys; print(repr(sys.stdin.read()))", ["''"]),
    ("import os; os.write(1, b'\\xc3'); os.write(1, b'\\xa4\\n')", ["ä"]),
    ("import os; print('PATH' in os.environ, os.environ['WORD'])", ["False a b"]),
    ("for n in range(20_000): print(n)", [str(n) for n in range(20_000)]),
]


@pytest.mark.parametrize(("code", "lines"), LINES)
def test_lines_are_heard_as_a_person_reads_them(
    code: str, lines: list[str], python: Run, heard: list[str]
) -> None:
    ended = python(code, WORD="a b")
    assert heard == lines
    assert ended.tail == tuple(lines[-process.TAIL_LINES :])


def test_what_is_no_text_is_passed_on_byte_for_byte(
    python: Run, heard: list[str], capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = bytes(range(256)) * 300
    python("import os\nd = bytes(range(256)) * 300\nwhile d: d = d[os.write(1, d):]")

    assert capsysbinary.readouterr().out == data
    assert any("\N{REPLACEMENT CHARACTER}" in line for line in heard)


def test_a_huge_line_is_heard_as_far_as_it_is_looked_at(python: Run, heard: list[str]) -> None:
    ended = python("import sys; sys.stdout.write('x' * 3_000_000 + '\\nscore: 1\\n')")

    assert [len(line) for line in heard] == [process.LONGEST_LINE, len("score: 1")]
    assert ended.last_line == "score: 1"


def test_metrics_that_a_line_gives_come_with_a_heartbeat(
    python: Run, beats: list[Mapping[str, float]]
) -> None:
    python("print(1); print(2)", hear=lambda line: {"loss": float(line)})
    assert beats == [{"loss": 2.0}]


def test_a_listener_that_raises_ends_the_program(python: Run, tmp_path: Path) -> None:
    code = "import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)"

    def nan(line: str) -> None:
        (tmp_path / "pid").write_text(line)
        raise DivergedError(line)

    with pytest.raises(DivergedError):
        python(code, hear=nan)

    assert not psutil.pid_exists(int((tmp_path / "pid").read_text()))


@pytest.mark.usefixtures("impatient")
def test_a_silent_program_that_computes_is_alive(python: Run, tmp_path: Path) -> None:
    code = "import os\nwhile not os.path.exists('seen'): pass"
    python(code, beat=(tmp_path / "seen").touch)
    assert (tmp_path / "seen").exists()


@pytest.mark.usefixtures("impatient")
def test_what_a_silent_program_started_counts_as_its_life(python: Run, tmp_path: Path) -> None:
    child = "import os\nwhile not os.path.exists('seen'): pass"
    code = f"import subprocess, sys; subprocess.run([sys.executable, '-I', '-S', '-c', {child!r}])"
    python(code, beat=(tmp_path / "seen").touch)
    assert (tmp_path / "seen").exists()


@pytest.mark.usefixtures("impatient")
def test_a_program_that_waits_shows_no_sign_of_life(
    tmp_path: Path, beats: list[Mapping[str, float]]
) -> None:
    line = CommandLine(("sleep", "0.5"), tmp_path, {"PATH": os.environ["PATH"]})
    run(line, lambda line: None, beats.append)
    assert len(beats) <= 2  # of ten: its start took CPU time


@pytest.mark.usefixtures("impatient")
def test_output_without_an_end_of_line_is_a_sign_of_life(python: Run, tmp_path: Path) -> None:
    code = "import os, time\nwhile not os.path.exists('seen'): os.write(1, b'.'); time.sleep(0.01)"
    python(code, beat=(tmp_path / "seen").touch)
    assert (tmp_path / "seen").exists()


@pytest.mark.usefixtures("impatient")
def test_a_program_that_closes_its_streams_is_waited_for(python: Run, tmp_path: Path) -> None:
    code = (
        "import os, sys\nprint('last words', flush=True)\nos.close(1); os.close(2)\n"
        "while not os.path.exists('seen'): pass\nos._exit(7)"
    )
    ended = python(code, beat=(tmp_path / "seen").touch)
    assert ended == Exit(7, ("last words",))


DAEMON = """
import os, sys, time
if os.fork() == 0:
    {away}
    open("pid.aside", "w").write(str(os.getpid()))
    os.rename("pid.aside", "pid")
    {busy}
    time.sleep(600)
while not os.path.exists("pid"): pass
print("score: 1", flush=True)
os._exit(0)
"""


@pytest.mark.parametrize("busy", ["", "while True: os.write(1, b'noise\\n' * 100)"])
@pytest.mark.parametrize("away", ["", "os.setsid()"])
def test_a_process_left_behind_that_holds_the_streams_holds_nobody_up(
    busy: str, away: str, python: Run, heard: list[str], tmp_path: Path
) -> None:
    began = time.monotonic()
    try:
        ended = python(DAEMON.format(away=away, busy=busy))
        daemon = int((tmp_path / "pid").read_text())
        assert ended.code == 0
        assert "score: 1" in heard
        assert time.monotonic() - began < 60
        if not away:  # of the program's group: gone with it
            while is_running(daemon):
                assert time.monotonic() - began < 60
    finally:
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has a death signal")
def test_a_program_is_gone_with_us_when_we_are_killed(tmp_path: Path) -> None:
    mine = f"""
import sys
from pathlib import Path
from objectives.api import CommandLine
from objectives.process import run
tell = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
line = CommandLine((sys.executable, "-S", "-c", tell), Path({str(tmp_path)!r}), {{}})
run(line, lambda text: None, lambda metrics: None)
"""
    with subprocess.Popen((sys.executable, "-c", mine), stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        program = int(ours.stdout.readline())
        ours.kill()
    began = time.monotonic()
    while is_running(program):
        assert time.monotonic() - began < 60


@pytest.mark.parametrize(
    ("argv", "expected"),
    [
        (("./nothing",), "cannot start './nothing' in .*: No such file or directory"),
        ((".",), "cannot start '.' in .*: Permission denied"),
        (("echo", "a\0b"), "cannot start 'echo' in .*: embedded null byte"),
        (("/bin/sh",), "there is no directory .*/nowhere"),
    ],
)
def test_what_cannot_be_started_is_a_mistake_of_setup(
    argv: tuple[str, ...], expected: str, tmp_path: Path
) -> None:
    directory = tmp_path / "nowhere" if "nowhere" in expected else tmp_path
    with pytest.raises(SetupError, match=expected):
        run(CommandLine(argv, directory, {"PATH": "/bin"}), lambda line: None, lambda metrics: None)


@pytest.mark.parametrize("code", ["os.kill(os.getpid(), 9)", "os._exit(137)"])  # as a shell says
def test_the_kernels_kill_for_memory_is_known(
    code: str, python: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter((4, 5))
    monkeypatch.setattr(process, "oom_kills", lambda: next(kills))
    with pytest.raises(OutOfMemoryError, match="the kernel ran out of memory"):
        python(f"import os; {code}")


def test_a_word_of_memory_is_kept_beyond_the_last_lines(python: Run) -> None:
    code = "print('CUDA out of memory. Tried to allocate 2 GiB'); [print(n) for n in range(100)]"
    ended: Any = python(code)
    assert ended.out_of_memory == "CUDA out of memory. Tried to allocate 2 GiB"
    ended.require_success()  # it found a way
