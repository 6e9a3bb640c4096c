"""`status`: once, or until the run is over; it disturbs nobody and ends in order."""

import os
import pty
import select
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.ledger.chain import LEDGER
from tests.conftest import REPOSITORY
from tests.orchestrator.watch.conftest import Terminal

if TYPE_CHECKING:
    from tests.conftest import Command

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """A run that is over, where the command line finds it."""
    directory = tmp_path / "artifacts/cmaes/phase1/golden"
    directory.mkdir(parents=True)
    shutil.copy(GOLDEN / "schema_4" / LEDGER, directory / LEDGER)
    return directory


def cut(run: Path, records: int) -> list[bytes]:
    """The lines of the ledger, of which so many stay."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:records]))
    return lines


def test_a_run_that_is_over_is_told_once(run: Path, command: "Command") -> None:
    answer = command("status")
    assert answer.code == 0
    lines = answer.out.splitlines()
    assert lines[0] == "artifacts/cmaes/phase1/golden: finished"
    assert lines[1].startswith("Go that persists: ")
    assert any(line.startswith("  evaluations ") for line in lines)


def test_a_run_that_was_interrupted_says_how_it_goes_on(run: Path, command: "Command") -> None:
    cut(run, 60)
    answer = command("status")
    assert answer.out.splitlines()[-1] == "Repeat the command that began it to go on."


def test_json_has_the_report_the_pace_and_the_slots(run: Path, command: "Command") -> None:
    document = orjson.loads(command("status", "--json").out)
    assert document["running"] is False
    assert document["evaluations_by_status"]["ok"] > 0
    assert isinstance(document["devices"], str)  # of the report: what they are
    assert document["slots"] == []
    assert document["pace"] is None


def test_a_run_that_is_over_is_watched_for_a_moment(run: Path, command: "Command") -> None:
    answer = command("status", "--watch")
    assert answer.code == 0
    assert answer.out.splitlines()[0] == "artifacts/cmaes/phase1/golden: finished"
    assert "\x1b" not in answer.out


def test_watched_as_json_it_is_an_object_a_line(run: Path, command: "Command") -> None:
    (line,) = command("status", "golden", "--watch", "--json").out.splitlines()
    document = orjson.loads(line)
    assert (document["run_id"], document["standing"]) == ("golden", "finished")


@pytest.mark.parametrize("how", [(), ("--watch",)])
def test_a_run_that_is_not_there_is_one_clear_error(
    how: tuple[str, ...], run: Path, command: "Command"
) -> None:
    answer = command("status", "nobody", *how)
    assert answer.code == 2
    assert answer.err == (
        "error: no run 'nobody' in artifacts/cmaes (1 run there): name its directory, or say "
        "--runs-dir\n"
    )


@pytest.mark.parametrize("how", [(), ("--watch",)])
def test_a_damaged_ledger_is_named_with_its_place(
    how: tuple[str, ...], run: Path, command: "Command"
) -> None:
    lines = cut(run, 50)
    (run / LEDGER).write_bytes(b"".join([*lines[:50], lines[60]]))
    answer = command("status", *how)
    assert answer.code == 6
    assert "record 50 at byte" in answer.err


@pytest.mark.parametrize("how", [(), ("--watch",)])
def test_a_ledger_whose_end_was_cut_off_is_refused(
    how: tuple[str, ...], run: Path, command: "Command"
) -> None:
    cut(run, 50)
    (run / "head.json").write_text('{"seq": 70, "h": "0"}')
    answer = command("status", *how)
    assert answer.code == 6
    assert "rolled back by 21 records" in answer.err


def test_a_ledger_without_a_record_cannot_be_told(run: Path, command: "Command") -> None:
    (run / LEDGER).write_bytes(b"")
    answer = command("status")
    assert answer.code == 2
    assert "holds no whole record yet" in answer.err


def test_a_campaign_of_trainings_is_watched_as_a_run(tmp_path: Path, command: "Command") -> None:
    directory = tmp_path / "artifacts/cmaes/campaign/golden"
    directory.mkdir(parents=True)
    shutil.copy(GOLDEN / "schema_5_campaign" / LEDGER, directory / LEDGER)
    assert command("status", "golden", "--watch").code == 0


def words(run: Path, *more: str) -> list[str]:
    return [sys.executable, "-m", "orchestrator", "status", str(run), "--watch", *more]


@contextmanager
def watcher(run: Path, stdout: int) -> "Iterator[subprocess.Popen[bytes]]":
    """Somebody who watches the run in a process of their own."""
    environment = {**os.environ, "TERM": "xterm", "PYTHONPATH": str(REPOSITORY)}
    with subprocess.Popen(
        words(run), stdout=stdout, stderr=subprocess.PIPE, cwd=run, env=environment
    ) as process:
        yield process
        process.kill()


def read_until(said: bytes, place: int) -> bytes:
    """What was read up to and with that; a test has a time limit."""
    heard = b""
    while said not in heard:
        select.select([place], [], [])
        more = os.read(place, 1 << 16)
        assert more, heard
        heard += more
    return heard


def test_watched_through_a_pipe_a_run_is_heard_to_its_end(run: Path) -> None:
    lines = cut(run, 140)
    with watcher(run, subprocess.PIPE) as process:
        assert process.stdout is not None
        read_until(b"generations finished", process.stdout.fileno())
        with (run / LEDGER).open("ab") as ledger:
            ledger.writelines(lines[140:])
        rest = process.stdout.read().decode()
        assert process.wait() == 0
    assert "winner" in rest
    assert "Go that persists: " in rest


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGINT, 0), (signal.SIGTERM, 143)])
def test_on_a_terminal_it_ends_in_order(signum: int, code: int, run: Path) -> None:
    cut(run, 60)
    master, slave = pty.openpty()
    with watcher(run, slave) as process:
        os.close(slave)
        heard = read_until(b"in flight", master)
        process.send_signal(signum)
        with suppress(OSError):  # nobody has the other end any more
            while True:
                heard += os.read(master, 1 << 16)
        assert process.wait() == code
    os.close(master)
    terminal = Terminal(80, 24)
    terminal.write(heard.decode())
    seen = terminal.seen()
    assert sum("in flight" in line for line in seen) == 1  # the last view stays, and no other one
    assert seen[-1] == ""


@pytest.mark.slow  # test_readers has it without a process
def test_a_pipe_that_is_closed_ends_it(run: Path) -> None:
    lines = cut(run, 60)
    with watcher(run, subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        read_until(b"generations finished", process.stdout.fileno())
        process.stdout.close()
        with (run / LEDGER).open("ab") as ledger:
            ledger.writelines(lines[60:100])
        assert process.wait() == 0
        assert process.stderr.read() == b""
