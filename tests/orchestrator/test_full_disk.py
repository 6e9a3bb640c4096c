"""A real disk that fills up, and one that cannot be written to: a tmpfs in a namespace of ours."""

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Reserved, Settled
from budgets.ledger import LEDGER
from orchestrator.execution.engine import Engine
from orchestrator.records.runs import Result
from tests.ledgers import events_of, every, wait_for_records

Found = Callable[[Path], dict[str, Any]]
REPOSITORY = Path(__file__).parents[2]
PHASE1 = (
    *("phase1", "--tier", "min", "--objective", "sphere", "--set", "noise=0.01"),
    *("--run-id", "run", "--assume-eval-seconds", "5", "--workers", "2"),
)


def may_mount() -> bool:
    """Whether this process may mount a tmpfs where only its children see it."""
    try:
        tried = subprocess.run(
            ["unshare", "-Urm", "mount", "-t", "tmpfs", "none", "/mnt"],  # noqa: S607
            capture_output=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return False
    return tried.returncode == 0


@dataclass
class Namespace:
    """A shell that has mounts of its own; commands are run in it, and files seen through it."""

    shell: "subprocess.Popen[str]"
    directory: Path

    def enter(self, *command: str) -> list[str]:
        inside = ["nsenter", "-U", "-m", "--preserve-credentials", "-t", str(self.shell.pid)]
        go_there = 'cd "$0" && exec "$@"'  # in there: nsenter's own --wd means the place out here
        return [*inside, "sh", "-c", go_there, str(self.directory), *command]

    def sh(self, script: str) -> None:
        subprocess.run(self.enter("sh", "-c", script), check=True)

    def orchestrator(self, *arguments: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            self.enter(sys.executable, "-m", "orchestrator", *arguments),
            env={**os.environ, "PYTHONPATH": str(REPOSITORY)},
            text=True,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def finished(self, *arguments: str) -> tuple[int, str]:
        """Its exit code and all that it said."""
        process = self.orchestrator(*arguments)
        out, err = process.communicate(timeout=90)
        assert "Traceback" not in err
        return process.returncode, out + err

    def seen(self, path: Path) -> Path:
        """The same file from outside."""
        return Path(f"/proc/{self.shell.pid}/root{path}")


@pytest.fixture
def namespace(tmp_path: Path) -> Iterator[Namespace]:
    """A directory `disk` of 12 MB, mounted where only this test's processes see it."""
    if not may_mount():
        pytest.skip("this process may not mount a tmpfs of its own (unshare -Urm)")
    (tmp_path / "disk").mkdir()
    script = f"mount -t tmpfs -o size=12m,mode=700 none {tmp_path}/disk && echo ready && read end"
    with subprocess.Popen(
        ["unshare", "-Urm", "sh", "-c", script],  # noqa: S607
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as shell:
        assert shell.stdout is not None
        assert shell.stdout.readline() == "ready\n"
        yield Namespace(shell, tmp_path)
        shell.kill()


def run_of(root: Path) -> Path:
    return root / "phase1/run"


def test_a_disk_that_fills_up_in_mid_run_is_exit_8_and_the_same_command_finishes_it(
    namespace: Namespace, tmp_path: Path, found: Found, run_search: Callable[..., Result]
) -> None:
    disk = tmp_path / "disk"
    seen = run_of(namespace.seen(disk))
    command = (*PHASE1, "--set", "seconds=0.3", "--executor", "local", "--runs-dir", str(disk))
    process = namespace.orchestrator(*command)
    wait_for_records(process, seen, 8)
    namespace.sh("head -c 13m /dev/zero > disk/filler 2>/dev/null; true")  # never more than that
    out, err = process.communicate(timeout=60)

    assert process.returncode == 8, out + err
    assert "repeat the command" in (out + err).lower()
    assert "Traceback" not in err
    cut_short = events_of(seen)
    assert sum(isinstance(e, Reserved) for e in cut_short) < 16

    namespace.sh("rm disk/filler")
    code, said = namespace.finished(*command)
    assert code == 0, said
    undisturbed = run_search(
        tmp_path / "w",
        settings={"noise": 0.01},
        engine=Engine(kind="inline", workers=2),
        assumed_seconds=5.0,
    )
    assert found(seen)["generations"] == found(undisturbed.directory)["generations"]
    final = every(Settled, seen)
    assert sum(event.status.final for event in final) == 16


def test_a_disk_that_is_full_already_is_exit_8_before_anything_is_reserved(
    namespace: Namespace, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    namespace.sh("head -c 8m /dev/zero > disk/filler")
    code, said = namespace.finished(*PHASE1, "--executor", "inline", "--runs-dir", str(disk))
    assert code == 8, said
    assert "needed to start an evaluation); make room and repeat the command" in said
    assert not every(Reserved, run_of(namespace.seen(disk)))


def test_a_directory_that_cannot_be_written_to_is_exit_8_before_anything_is_reserved(
    namespace: Namespace, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    namespace.sh("mount -o bind,ro disk disk || mount -o remount,bind,ro disk disk")
    code, said = namespace.finished(*PHASE1, "--executor", "local", "--runs-dir", str(disk))
    assert code == 8, said
    assert "Read-only file system" in said
    assert not list(namespace.seen(disk).iterdir())


def test_a_run_whose_directory_became_read_only_is_exit_8_and_unchanged(
    namespace: Namespace, tmp_path: Path
) -> None:
    disk = tmp_path / "disk"
    command = (*PHASE1, "--executor", "inline", "--runs-dir", str(disk))
    assert namespace.finished(*command, "--max-device-hours", "1e-6")[0] == 4
    ledger = run_of(namespace.seen(disk)) / LEDGER
    before = ledger.read_bytes()
    namespace.sh("mount -o bind,ro disk disk || mount -o remount,bind,ro disk disk")
    code, said = namespace.finished(*command, "--max-device-hours", "1e-6")
    assert code == 8, said
    assert "Nothing was started" in said
    assert ledger.read_bytes() == before
