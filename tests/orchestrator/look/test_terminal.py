"""A run on a terminal, in a pipe and to a program: it fits, steers and disturbs nothing."""

import io
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from rich.cells import cell_len
from rich.console import Console

from budgets.ledger import LEDGER
from objectives.api import ObjectiveSpec
from orchestrator.cli import run as output
from orchestrator.look.run import Run, Slot
from orchestrator.look.terminal import looks, picture, slot_lines
from orchestrator.records.runs import load_state
from tests.conftest import REPOSITORY
from tests.console import Shell
from tests.orchestrator.look.golden import GOLDEN, NOW, moments

Command = Callable[..., Any]
WIDTHS = (200, 60, 30)
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e[bold]<b>\n\r"


def drawn(run: Run, width: int) -> list[str]:
    """The picture's lines, without styles."""
    console = Console(file=io.StringIO(), width=width, color_system=None, emoji=False)
    with console.capture() as found:
        console.print(picture(run), end="")
    return found.get().split("\n")[:-1]


@pytest.mark.usefixtures("carried_out")
def test_every_prefix_of_a_ledger_fits_every_terminal() -> None:
    for run in moments("statuses"):
        for width in WIDTHS:
            assert max(map(cell_len, drawn(run, width))) <= width


@pytest.mark.parametrize("width", WIDTHS)
def test_hostile_and_long_names_are_shown_in_full_and_steer_nothing(width: int) -> None:
    state, run_id = load_state(GOLDEN / "interrupted"), "a-name-that-nearly-fills-a-line" * 3
    objective = ObjectiveSpec(name=HOSTILE)
    plan = state.plan.model_copy(update={"run_id": run_id, "objective": objective})
    state.accounts = state.accounts._replace(plan=plan)
    run = Run(state, NOW, GOLDEN)
    run.slots = tuple(replace(slot, device=HOSTILE, what=HOSTILE) for slot in run.slots)
    lines = drawn(run, width)
    assert all(line.isprintable() and cell_len(line) <= width for line in lines)
    said = "".join("".join(lines).split())
    assert all(one in said for one in (run_id, "interrupted"))


def test_of_many_devices_overdue_ones_come_first_and_the_rest_is_counted() -> None:
    usual: Any = {"doing": "running", "what": "candidate 1", "expected_seconds": 10.0}
    slots = [Slot(slot=number, device="cpu", seconds=5.0, **usual) for number in range(300)]
    slots[200] = replace(slots[200], seconds=50.0)
    slots[299] = Slot(slot=299, device="cpu")
    lines = slot_lines(tuple(slots), 3)
    assert len(lines) == 4
    assert lines[0].startswith("slot 200 cpu ")
    assert lines[-1] == "and 297 more"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that is over, where the command line finds it."""
    directory = tmp_path / "artifacts/cmaes/phase1/golden"
    directory.mkdir(parents=True)
    shutil.copy(GOLDEN / "go" / LEDGER, directory / LEDGER)
    return directory


def cut(run: Path, records: int) -> list[bytes]:
    """The lines of the ledger, of which so many stay."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:records]))
    return lines


def grow(run: Path, *lines: bytes) -> None:
    with (run / LEDGER).open("ab") as ledger:
        ledger.writelines(lines)


def test_a_run_is_followed_from_where_it_is_to_its_end(run: Path) -> None:
    lines, looked = cut(run, 140), looks(run)
    assert next(looked)[0] == []
    grow(run, *lines[140:200], lines[200][:20])
    news, _ = next(looked)
    assert len(news) > 20
    grow(run, lines[200][20:], *lines[201:])
    assert next(looked)[1].standing.kind == "finished"


ENVIRONMENT = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(REPOSITORY)}
for name in ("COLUMNS", "LINES", "NO_COLOR"):
    ENVIRONMENT.pop(name, None)


def test_a_pipe_that_is_closed_ends_it(run: Path) -> None:
    """At once, also where nothing is new."""
    cut(run, 60)
    words = [sys.executable, "-m", "orchestrator", "status", str(run), "--watch"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with psutil.Popen(words, **pipes, env=ENVIRONMENT) as process:
        process.stdout.readline()
        process.stdout.close()
        assert (process.stderr.read(), process.wait()) == (b"", 0)


SEARCH = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "seconds=0.4", "--run-id", "s"),
    *("--executor", "local", "--workers", "2", "--assume-eval-seconds", "1"),
)
SECONDS = 120


@pytest.fixture
def shell(tmp_path: Path) -> Iterator[Shell]:
    shell = Shell(tmp_path, ENVIRONMENT)
    yield shell
    shell.close()
    assert b"?25l" not in shell._raw  # the cursor was never hidden


def begun(shell: Shell, *words: str) -> psutil.Process:
    """A command whose picture is on the terminal."""
    command = shlex.join([sys.executable, "-m", "orchestrator", *words])
    shell.start(command, ("... in flight, ...",), SECONDS)
    (process,) = psutil.Process(shell._process.pid).children()
    return process


def viewer_of(command: psutil.Process) -> psutil.Process:
    (found,) = [one for one in command.children() if output.VIEWER[-1] in one.cmdline()]
    return found


@pytest.mark.parametrize(("signum", "code"), [(2, 0), (15, 143), (9, 137)])
def test_watching_leaves_the_picture(signum: int, code: int, run: Path, shell: Shell) -> None:
    cut(run, 60)
    begun(shell, "status", str(run), "--watch").send_signal(signum)
    found, seen = shell.ended(SECONDS)
    assert found == code
    assert sum("in flight, " in line for line in seen) == 1


def test_a_killed_run_takes_its_viewer_with_it(shell: Shell) -> None:
    command = begun(shell, *SEARCH)
    viewer = viewer_of(command)
    command.kill()
    assert shell.ended(SECONDS)[0] == 137
    psutil.wait_procs([viewer], SECONDS)
    assert shell.run("echo $((40 + 2))", SECONDS) == (0, ["42", ""])


def test_without_its_viewer_a_search_goes_on_in_lines(shell: Shell) -> None:
    viewer_of(begun(shell, *SEARCH)).kill()
    code, seen = shell.ended(SECONDS)
    assert code == 0
    assert sum(line.startswith("[16/16]") for line in seen) == 1


def test_a_terminal_that_is_held_holds_up_no_evaluation(shell: Shell, tmp_path: Path) -> None:
    viewer = viewer_of(begun(shell, *SEARCH))
    os.write(shell._ours, b"\x13")
    while b'"concluded"' not in (tmp_path / "artifacts/cmaes/phase1/s" / LEDGER).read_bytes():
        time.sleep(0.02)  # a test has a time limit
    os.write(shell._ours, b"\x11")
    code, seen = shell.ended(SECONDS)
    assert (code, viewer.is_running()) == (0, False)
    assert sum(line.startswith("Generation 1 ") for line in seen) == 1
    assert not any("running (pid" in line for line in seen)  # the picture has gone


def test_what_a_viewer_did_not_take_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(output, "VIEWER", ("sleep", "99"))  # as if its terminal were stopped
    monkeypatch.setattr(output, "VIEWER_SECONDS", 0.0)
    monkeypatch.setattr(output, "can_paint", lambda _console: True)
    with (tmp_path / "terminal").open("w") as file:
        live = output.Output(file)
        running: Any = type("Running", (), {"directory": tmp_path})
        live.look(running)
        for number in range(3000):
            live.say(f"note {number} {'-' * 30}")
        live.rest()
    said = [int(one) for one in re.findall(r"note (\d+)", (tmp_path / "terminal").read_text())]
    assert 0 < said[0] < 2000  # what fits into the pipe
    assert said == list(range(said[0], 3000))
