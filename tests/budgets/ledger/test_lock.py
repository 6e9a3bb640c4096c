"""One process at a time has a run's ledger; who that is, and since when, is said to the others."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from budgets.ledger.lock import LOCK, LedgerLockedError, has_open, processes_with, take_lock

REPOSITORY = Path(__file__).parents[3]

HOLDS = """
import sys
from pathlib import Path
from budgets.ledger.lock import take_lock
take_lock(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""

FORKS_AND_DIES = """
import os, sys
from pathlib import Path
from budgets.ledger.lock import take_lock
lock = take_lock(Path(sys.argv[1]))
child = os.fork()
if child == 0:
    os.set_inheritable(lock, True)
    sys.stdin.read()
    os._exit(0)
print(child, flush=True)
os._exit(0)
"""


@contextmanager
def running(program: str, directory: Path) -> Iterator["subprocess.Popen[str]"]:
    """A process that runs until the block ends; its first line is waited for."""
    with subprocess.Popen(
        [sys.executable, "-c", program, str(directory)],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        yield process
        assert process.stdin is not None
        process.stdin.close()


def first_line(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_a_second_process_is_told_who_has_it_and_since_when(tmp_path: Path) -> None:
    with running(HOLDS, tmp_path) as owner:
        assert first_line(owner) == "held"
        with pytest.raises(LedgerLockedError) as refusal:
            take_lock(tmp_path)
        who = rf"\(host {os.uname().nodename}, pid {owner.pid}, since 20\d\d-\S+T\S+\+00:00\)"
        assert refusal.match(who)
        assert f"orchestrator status {tmp_path}" in str(refusal.value)
        assert "is held by process" not in str(refusal.value)  # it is the owner itself
    os.close(take_lock(tmp_path))


def test_a_killed_owner_holds_nothing(tmp_path: Path) -> None:
    with running(HOLDS, tmp_path) as owner:
        assert first_line(owner) == "held"
        owner.kill()
        owner.wait()
        os.close(take_lock(tmp_path))


def test_a_forked_child_of_a_dead_owner_is_named_and_nothing_is_taken_from_it(
    tmp_path: Path,
) -> None:
    with running(FORKS_AND_DIES, tmp_path) as owner:
        child = int(first_line(owner))
        assert owner.wait() == 0
        for _ in range(2):
            with pytest.raises(LedgerLockedError) as refusal:
                take_lock(tmp_path)
            assert f"pid {owner.pid}, since" in str(refusal.value)
            assert f"The lock is held by process {child} on this machine" in str(refusal.value)
        assert processes_with(tmp_path / LOCK) == [child]
    assert wait_until_free(tmp_path)


def wait_until_free(directory: Path) -> bool:
    deadline = time.monotonic() + 10
    while processes_with(directory / LOCK) and time.monotonic() < deadline:
        time.sleep(0.01)
    os.close(take_lock(directory))
    return True


def test_the_lock_file_is_never_removed_and_never_another_one(tmp_path: Path) -> None:
    os.close(take_lock(tmp_path))
    inode = (tmp_path / LOCK).stat().st_ino
    lock = take_lock(tmp_path)
    with pytest.raises(LedgerLockedError):
        take_lock(tmp_path)
    os.close(lock)
    assert (tmp_path / LOCK).stat().st_ino == inode


def test_the_text_is_the_present_owners_whatever_was_there(tmp_path: Path) -> None:
    (tmp_path / LOCK).write_text("somebody with a very long name indeed " * 9)
    os.close(take_lock(tmp_path))
    text = (tmp_path / LOCK).read_text()
    assert text.startswith(f"host {os.uname().nodename}, pid {os.getpid()}, since 20")
    assert "somebody" not in text


def test_a_holder_that_left_no_name_is_unknown(tmp_path: Path) -> None:
    lock = take_lock(tmp_path)
    os.truncate(tmp_path / LOCK, 0)
    with pytest.raises(LedgerLockedError, match=r"\(unknown\)"):
        take_lock(tmp_path)
    os.close(lock)


def test_a_lock_behind_a_symbolic_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / LOCK).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match="symbolic links"):
        take_lock(tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_a_lock_is_not_inherited_by_a_program_that_is_started(tmp_path: Path) -> None:
    lock = take_lock(tmp_path)
    assert not os.get_inheritable(lock)
    os.close(lock)


def test_who_has_a_file_open_is_known_as_far_as_may_be_looked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, nobody = tmp_path / "here", 2**22 + 1  # more than a pid can be
    with here.open("w"):
        assert has_open(os.getpid(), here) is True
    assert has_open(os.getpid(), here) is False
    assert has_open(nobody, here) is False

    def forbidden(_: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(Path, "iterdir", forbidden)
    assert has_open(os.getpid(), here) is None
