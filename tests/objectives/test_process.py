"""Programs that talk, are silent, hang on or fail: each is heard, none outlives its evaluation."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from objectives import process
from objectives.api import DivergedError, OutOfMemoryError, SetupError
from objectives.process import CommandLine, run


class Python:
    """Runs Python programs, and keeps what is heard of them."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.heard: list[str] = []

    def __call__(
        self, code: str, hear: Callable[[str], Mapping[str, float]] = lambda line: {}
    ) -> tuple[str, ...]:
        def listen(line: str) -> Mapping[str, float]:
            self.heard.append(line)
            return hear(line)

        argv = (sys.executable, "-I", "-S", "-c", code)
        return run(CommandLine(argv, self.directory, {}), listen, lambda metrics: None)


def is_running(pid: int) -> bool:
    """Whether it does anything yet: a zombie only waits for its parent."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


@pytest.fixture
def python(tmp_path: Path) -> Python:
    return Python(tmp_path)


@pytest.mark.parametrize(
    ("code", "lines"),
    [
        ("print('score: 1', end='')", ["score: 1"]),
        ("print('1 %\\r2 %\\r3 %\\n\\n4 %')", ["1 %", "2 %", "3 %", "4 %"]),
        (r"print('\x1b[2K\x1b]0;title\x07\x1b[1;38;5;9mloss: 1\x1b[0m')", ["loss: 1"]),
        ("import sys; print(repr(sys.stdin.read()))", ["''"]),
        ("import os; os.write(2, b'\\xc3'); os.write(2, b'\\xa4\\n')", ["ä"]),
        ("for n in range(20_000): print(n)", [str(n) for n in range(20_000)]),
        ("print('x' * 3_000_000 + '\\nend')", ["x" * process.LONGEST_LINE, "end"]),
    ],
)
def test_lines_of_both_streams_are_heard_as_a_person_reads_them(
    code: str, lines: list[str], python: Python
) -> None:
    assert python(code) == tuple(lines[-process.TAIL_LINES :])
    assert python.heard == lines


@pytest.mark.parametrize(
    ("program", "why"), [("/no/such", "No such file or directory"), ("\0", "embedded null byte")]
)
def test_why_a_program_cannot_be_started_is_said(program: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match=f"in {tmp_path}: {why}$"):
        run(CommandLine((program,), tmp_path, {}), lambda _: {}, lambda _: None)


def test_a_word_of_memory_is_kept_beyond_the_last_lines(python: Python) -> None:
    said = "print('CUDA out of memory. Tried 2 GiB'); [print(n) for n in range(100)]; exit(1)"
    with pytest.raises(OutOfMemoryError, match=r"status 1: CUDA out of memory\. Tried 2 GiB"):
        python(said)


def test_output_is_passed_on_byte_for_byte(
    python: Python, capsysbinary: pytest.CaptureFixture[bytes]
) -> None:
    data = bytes(range(256)) * 300
    python("import os\nd = bytes(range(256)) * 300\nwhile d: d = d[os.write(1, d):]")
    assert capsysbinary.readouterr().out == data
    assert any("\N{REPLACEMENT CHARACTER}" in line for line in python.heard)


def test_a_listener_that_raises_ends_the_program(python: Python) -> None:
    def nan(line: str) -> Mapping[str, float]:
        raise DivergedError(line)

    with pytest.raises(DivergedError) as raised:
        python("import os, time\nprint(os.getpid(), flush=True)\ntime.sleep(600)", hear=nan)
    assert not psutil.pid_exists(int(str(raised.value)))


DAEMON = """
import os, sys, time
if os.fork() == 0:
    {away}
    open("pid.aside", "w").write(str(os.getpid()))
    os.rename("pid.aside", "pid")
    while True: os.write(1, b'noise\\n' * 100)
while not os.path.exists("pid"): pass
print("score: 1", flush=True)
os._exit(0)
"""


@pytest.mark.timeout(60)
@pytest.mark.parametrize("away", ["", "os.setsid()"])
def test_a_process_left_behind_that_holds_the_streams_holds_nobody_up(
    away: str, python: Python, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(process, "DRAIN_SECONDS", 0.5)
    try:
        python(DAEMON.format(away=away))
        assert "score: 1" in python.heard
        while not away and is_running(int((tmp_path / "pid").read_text())):
            time.sleep(0.01)  # of the program's group: gone with it
    finally:
        with suppress(ProcessLookupError, FileNotFoundError):
            os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


@pytest.mark.timeout(60)
def test_a_program_is_gone_with_us_when_we_are_killed(tmp_path: Path) -> None:
    mine = f"""
import sys
from pathlib import Path
from objectives.process import CommandLine, run
tell = "import os, time; print(os.getpid(), flush=True); time.sleep(600)"
line = CommandLine((sys.executable, "-S", "-c", tell), Path({str(tmp_path)!r}), {{}})
run(line, lambda text: {{}}, lambda metrics: None)
"""
    with subprocess.Popen((sys.executable, "-c", mine), stdout=subprocess.PIPE) as ours:
        assert ours.stdout is not None
        program = int(ours.stdout.readline())
        ours.kill()
    while is_running(program):
        time.sleep(0.01)


@pytest.mark.parametrize("code", ["os.kill(os.getpid(), 9)", "os._exit(137)"])  # as a shell says
def test_the_kernels_kill_for_memory_is_known(
    code: str, python: Python, monkeypatch: pytest.MonkeyPatch
) -> None:
    kills = iter((4, 5))
    monkeypatch.setattr(process, "oom_kills", lambda: next(kills))
    with pytest.raises(OutOfMemoryError, match="the kernel ran out of memory"):
        python(f"import os; {code}")
