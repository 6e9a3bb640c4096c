"""A run on a terminal, in a pipe and to a program: it fits, steers nothing, and disturbs nobody."""

import fcntl
import io
import json
import os
import pty
import re
import select
import shutil
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest
from rich.cells import cell_len
from rich.console import Console

from budgets.ledger.chain import LEDGER, LedgerCorruptError
from orchestrator.cli import output
from orchestrator.cli.output import Output
from orchestrator.look import text
from orchestrator.look.rows import Slot
from orchestrator.look.run import Run
from orchestrator.look.terminal import ASCII, Picture, device_lines, listing, status_lines
from orchestrator.look.viewer import LOOK_SECONDS, PATIENCE, Reader, watch_run
from orchestrator.records import standing
from orchestrator.records.recorded import load_state
from orchestrator.records.tail import Tail
from tests.conftest import REPOSITORY
from tests.console import UNSEEN, Terminal

if TYPE_CHECKING:
    from tests.conftest import Command

RUNS = REPOSITORY / "tests/golden/runs"
SIZES = ((200, 60), (80, 24), (60, 15), (20, 5))
HOSTILE = "\x1b[2J\x1b]0;owned\x07\u202e[bold]<b>\n\r"
ENVIRONMENT = {**os.environ, "TERM": "xterm-256color", "PYTHONPATH": str(REPOSITORY)}
for name in ("COLUMNS", "LINES", "NO_COLOR"):
    ENVIRONMENT.pop(name, None)


def drawn(run: Run, width: int, height: int, encoding: str = "utf-8") -> list[str]:
    """The picture's lines, without styles."""
    page = io.TextIOWrapper(io.BytesIO(), encoding=encoding, errors="replace", newline="")
    console = Console(file=page, width=width, height=height, color_system=None, emoji=False)
    with console.capture() as found:
        console.print(Picture(run, height))
    return found.get().encode(encoding, "replace").decode(encoding).split("\n")[:-1]


@pytest.fixture
def _carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run that is not over is being carried out, here."""
    monkeypatch.setattr(standing, "owner_is_gone", lambda _owner: False)
    monkeypatch.setattr(standing, "_is_here", lambda _state: True)


@pytest.mark.usefixtures("_carried_out")
@pytest.mark.parametrize("name", ["beaten_by_a_control", "statuses"])
def test_every_prefix_of_a_ledger_fits_every_terminal(name: str) -> None:
    tail = Tail(RUNS / name)
    for record in tail.news():
        assert tail.state is not None
        run = Run(tail.state, datetime.fromisoformat(record.at) + timedelta(seconds=1), RUNS / name)
        for width, height in SIZES:
            lines = drawn(run, width, height)
            assert 0 < len(lines) <= height
            assert max(map(cell_len, lines)) <= width
        assert list(status_lines(RUNS / name, run))


def loaded(name: str, **changes: Any) -> Run:
    """A stored run, with another plan than it had."""
    state = load_state(RUNS / name)
    state.plan = state.plan.model_copy(update=changes)
    return Run(state, datetime.now(UTC), RUNS / name)


@pytest.mark.parametrize(("width", "height"), [(80, 24), (60, 15)])
def test_a_narrow_terminal_has_the_name_and_the_standing_in_full(width: int, height: int) -> None:
    run_id = "a-name-that-nearly-fills-the-line-of-a-terminal-and-goes-on"
    said = "".join("".join(drawn(loaded("go", run_id=run_id), width, height)).split())
    assert run_id in said
    assert "finished" in said


@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_name_steers_a_terminal(encoding: str) -> None:
    run = loaded("interrupted", run_id=HOSTILE, objective={"name": HOSTILE, "settings": {}})
    run.slots = tuple(replace(slot, device=HOSTILE, what=HOSTILE) for slot in run.slots)
    for width, height in SIZES:
        lines = drawn(run, width, height, encoding)
        assert all(line.isprintable() for line in lines)
        assert max(map(cell_len, lines)) <= width


def test_picture_and_status_have_the_same_balances() -> None:
    run = loaded("interrupted")
    pages = "\n".join(drawn(run, 100, 40)), "\n".join(status_lines(RUNS, run))
    for balance in run.balances:
        if balance.counts:
            for page in pages:
                (line,) = re.findall(rf"(?<!comparison ){balance.currency} .* spent.*", page)
                assert f"{text.amount(balance, balance.spent)} spent" in line
                assert text.amount(balance, balance.reserved) in line or not balance.reserved


def test_of_many_devices_overdue_ones_come_first_and_the_rest_is_counted() -> None:
    usual = {"doing": "running", "what": "candidate 1", "seconds": 5.0, "expected_seconds": 10.0}
    slots = [Slot(slot=number, device="cpu", **usual) for number in range(300)]  # type: ignore[arg-type]
    slots[200] = replace(slots[200], seconds=50.0)
    slots[299] = Slot(slot=299, device="cpu")
    lines = [line.plain for line in device_lines(tuple(slots), 4, 100, ASCII)]
    assert len(lines) == 4
    assert lines[0].startswith("cpu 201 ")
    assert "overdue" in lines[0]
    assert "297 more: 296 running, 1 idle" in lines[-1]


def test_of_a_listing_the_lines_that_do_not_fit_are_counted() -> None:
    console = Console(file=io.StringIO(), width=40, color_system=None)
    with console.capture() as found:
        console.print(listing([f"row {number}" for number in range(10)], 4))
    assert found.get().splitlines() == ["row 0", "row 1", "row 2", "and 7 lines more"]


# A ledger that grows


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that is over, where the command line finds it."""
    directory = tmp_path / "artifacts/cmaes/phase1/golden"
    directory.mkdir(parents=True)
    shutil.copy(RUNS / "go" / LEDGER, directory / LEDGER)
    return directory


def cut(run: Path, records: int) -> list[bytes]:
    """The lines of the ledger, of which so many stay."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:records]))
    return lines


def watched(run: Path, *turns: Callable[[], object]) -> list[tuple[list[str], Run]]:
    """What a reader is told who looks once more after each of these, until the run is over."""
    told, left = list[tuple[list[str], Run]](), list(turns)

    def read(news: list[str], seen: Any) -> bool:
        told.append((news, seen))
        return True

    def wait(seconds: float) -> None:
        assert seconds >= LOOK_SECONDS
        left.pop(0)()

    reader: Reader = read
    watch_run(run, reader, wait)
    return told


def test_a_run_is_followed_from_where_it_is_to_its_end(run: Path) -> None:
    lines = cut(run, 140)

    def grow() -> None:
        with (run / LEDGER).open("ab") as ledger:
            ledger.writelines([*lines[140:200], lines[200][:20]])

    def finish() -> None:
        with (run / LEDGER).open("ab") as ledger:
            ledger.writelines([lines[200][20:], *lines[201:]])

    (before, _), (news, _), (_, last) = watched(run, grow, finish)
    assert before == []
    assert len(news) > 20
    assert last.standing.kind == "finished"


def test_a_ledger_that_is_taken_away_or_replaced_is_no_error_and_no_news(run: Path) -> None:
    kept = run.with_name("kept")
    cut(run, 100)
    turns = (
        lambda: (run / LEDGER).rename(kept),
        lambda: shutil.copy(RUNS / "go" / LEDGER, run / LEDGER),
    )
    (_, first), (_, gone), (news, last) = watched(run, *turns)
    assert first.standing.kind == gone.standing.kind == "interrupted"
    assert first.standing.whose != gone.standing.whose
    assert news == []
    assert last.is_over


def test_a_damaged_ledger_is_given_some_looks(run: Path) -> None:
    lines = cut(run, 100)
    looks = []

    def damage() -> None:
        looks.append(1)
        if len(looks) == 1:
            with (run / LEDGER).open("ab") as ledger:
                ledger.writelines([lines[120], lines[121]])

    with pytest.raises(LedgerCorruptError):
        watched(run, *[damage] * 9)
    assert len(looks) == PATIENCE


# The command


def test_watched_as_json_it_is_a_document_a_line(run: Path, command: "Command") -> None:
    (line,) = command("status", "golden", "--watch", "--json").out.splitlines()
    once = json.loads(command("status", "golden", "--json").out)
    assert json.loads(line).keys() == once.keys()
    assert (once["run_id"], once["standing"], once["slots"]) == ("go", "finished", [])


@pytest.mark.parametrize("how", [(), ("--watch",)])
@pytest.mark.parametrize(("name", "code"), [("nobody", 2), ("golden", 6)])
def test_what_is_not_there_or_damaged_is_an_error(
    how: tuple[str, ...], name: str, code: int, run: Path, command: "Command"
) -> None:
    lines = cut(run, 50)
    (run / LEDGER).write_bytes(b"".join([*lines[:50], lines[60]]))
    assert command("status", name, *how).code == code


def test_a_ledger_without_a_record_cannot_be_told(run: Path, command: "Command") -> None:
    (run / LEDGER).write_bytes(b"")
    assert command("status").code == 2


@pytest.mark.parametrize("name", ["campaign", "space_check", "calibration"])
def test_runs_of_every_kind_are_watched(name: str, command: "Command") -> None:
    assert command("status", str(RUNS / name), "--watch").code == 0


SHELL = 'trap : INT TERM; "$@"; echo "exit code $?."; read -r end'


class Person:
    """Somebody at a terminal in whose shell a command runs."""

    def __init__(self, directory: Path, *words: str) -> None:
        self.terminal, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        self.heard = b""
        self.shell = psutil.Popen(
            ["/bin/sh", "-c", SHELL, "sh", sys.executable, "-m", "orchestrator", *words],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env=ENVIRONMENT,
            cwd=directory,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),
        )
        os.close(slave)

    def sees(self, what: bytes) -> None:
        """Wait until that is on the terminal; a test has a time limit."""
        while what not in self.heard:
            self.heard += os.read(self.terminal, 1 << 16)

    def sees_the_end(self) -> int:
        while (found := re.search(rb"exit code (\d+)\.", self.heard)) is None:
            self.heard += os.read(self.terminal, 1 << 16)
        return int(found[1])

    def leaves(self) -> None:
        """With all that has been written by now."""
        while select.select([self.terminal], [], [], 0)[0]:
            self.heard += os.read(self.terminal, 1 << 16)
        for process in (*self.shell.children(recursive=True), self.shell):
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.shell.wait()
        os.close(self.terminal)

    def seen(self) -> list[str]:
        screen = Terminal(1000, 30)
        screen.write(UNSEEN.sub("", self.heard.decode()))
        return screen.seen()

    @property
    def command(self) -> psutil.Process:
        (found,) = self.shell.children()
        return found

    @property
    def viewer(self) -> psutil.Process:
        children = self.command.children()
        (found,) = [one for one in children if "orchestrator.look.viewer" in one.cmdline()]
        return found


@contextmanager
def at_terminal(directory: Path, *words: str) -> Iterator[Person]:
    person = Person(directory, *words)
    try:
        yield person
    finally:
        person.leaves()


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_watching_on_a_terminal_ends_in_order_and_leaves_the_picture(
    signum: int, code: int, run: Path
) -> None:
    cut(run, 60)
    with at_terminal(run, "status", str(run), "--watch") as person:
        person.sees(b"in flight")
        person.command.send_signal(signum)
        assert person.sees_the_end() == code
    assert sum("in flight" in line for line in person.seen()) == 1
    assert person.seen()[-2:] == [f"exit code {code}.", ""]


def test_a_pipe_that_is_closed_ends_it(run: Path) -> None:
    lines = cut(run, 60)
    words = [sys.executable, "-m", "orchestrator", "status", str(run), "--watch"]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, **pipes, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        try:
            process.stdout.readline()
            process.stdout.close()
            with (run / LEDGER).open("ab") as ledger:
                ledger.writelines(lines[60:100])
            assert process.stderr.read() == b""
            assert process.wait() == 0
        finally:
            process.kill()


# The running command

SEARCH = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "seconds=0.3", "--run-id", "s"),
    *("--executor", "local", "--workers", "2", "--assume-eval-seconds", "1"),
)
PICTURE = b"in flight, "


def ledger_of(directory: Path) -> Path:
    return directory / "artifacts/cmaes/phase1/s" / LEDGER


def until(holds: Callable[[], object]) -> None:
    while not holds():  # a test has a time limit
        select.select([], [], [], 0.02)


def test_a_search_shows_a_picture_and_leaves_its_report_alone(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *SEARCH) as person:
        person.sees(PICTURE)
        viewer = person.viewer
        assert person.sees_the_end() == 0
        assert not viewer.is_running()
    seen = "\n".join(person.seen())
    assert "Generation 1 (2 of 2)" in seen
    assert "to come" not in seen
    assert b"?25l" not in person.heard  # the cursor was never hidden


def test_a_kill_leaves_an_empty_line_and_no_viewer(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *SEARCH) as person:
        person.sees(PICTURE)
        viewer = person.viewer
        person.command.kill()
        person.sees_the_end()
        until(lambda: not viewer.is_running() or viewer.status() == psutil.STATUS_ZOMBIE)
    assert "in flight" not in "\n".join(person.seen())
    assert person.seen()[-2:] == ["exit code 137.", ""]


def test_a_drain_is_announced_and_seen(tmp_path: Path) -> None:
    slow = (word.replace("seconds=0.3", "seconds=2") for word in SEARCH)
    with at_terminal(tmp_path, *slow) as person:
        person.sees(PICTURE)
        person.heard = b""
        os.write(person.terminal, b"\x03")  # for the whole group
        person.sees(b"interrupt again")
        person.sees(PICTURE)
        assert person.sees_the_end() == 130


def test_without_its_viewer_a_search_goes_on_in_lines(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *SEARCH) as person:
        person.sees(PICTURE)
        person.viewer.kill()
        assert person.sees_the_end() == 0
    assert re.search(r"\[16/16\]  generation 1", "\n".join(person.seen()))


def test_a_terminal_that_is_held_holds_up_no_evaluation(tmp_path: Path) -> None:
    with at_terminal(tmp_path, *SEARCH) as person:
        person.sees(PICTURE)
        os.write(person.terminal, b"\x13")
        until(lambda: b'"concluded"' in ledger_of(tmp_path).read_bytes())
        os.write(person.terminal, b"\x11")
        assert person.sees_the_end() == 0


def test_what_a_viewer_did_not_print_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    master, slave = pty.openpty()
    monkeypatch.setattr(output, "VIEWER", (sys.executable, "-c", ""))
    monkeypatch.setattr(output, "can_paint", lambda _console: True)
    state, printed = load_state(RUNS / "go"), io.StringIO()
    with os.fdopen(slave, "w") as file:
        file.write = printed.write  # type: ignore[method-assign]
        with Output(Console(file=file)) as live:
            run: Any = type("Running", (), {"state": state, "directory": tmp_path})
            live.look(run)
            for number in range(300):
                live.say(f"note {number}")
    os.close(master)
    assert re.findall(r"note (\d+)", printed.getvalue()) == list(map(str, range(300)))
