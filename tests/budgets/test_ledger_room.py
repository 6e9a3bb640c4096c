"""A disk that fills up: the last records get in, nothing new starts, and it is said."""

import errno
import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.events import Event
from budgets.ledger import storage
from budgets.ledger.chain import LEDGER, read
from budgets.ledger.head import HEAD
from budgets.ledger.storage import write_aside
from budgets.ledger.writer import (
    BALLAST,
    BALLAST_BYTES,
    LEAST_FREE_BYTES,
    Ledger,
    LedgerStorageError,
)

if TYPE_CHECKING:
    from tests.budgets.conftest import Disk

PLENTY = 1 << 40


@dataclass
class Filling(storage.Disk):
    """A real disk with `left` bytes of room, some of which a removed ballast gives back.

    Like a real one it takes what fits of a write, and refuses the next.
    """

    left: int = PLENTY
    error: int = errno.ENOSPC
    calls: list[str] = field(default_factory=list)

    def write(self, handle: int, data: bytes) -> int:
        self.calls.append("write")
        if self.left <= 0:
            raise OSError(self.error, os.strerror(self.error))
        taken = super().write(handle, data[: self.left])
        self.left -= taken
        return taken

    def truncate(self, handle: int, size: int) -> None:
        self.left += os.fstat(handle).st_size - size
        super().truncate(handle, size)

    def remove(self, path: Path) -> None:
        self.calls.append(f"remove {path.name}")
        self.left += path.stat().st_size if path.exists() else 0
        super().remove(path)

    def free_bytes(self, directory: Path) -> int:
        return self.left


def opened(disk: "Disk", filling: storage.Disk, events: list[Event] | None = None) -> Ledger:
    ledger = Ledger(disk.directory(), disk.time.clock, filling)
    try:
        list(ledger.replay())
    except LedgerStorageError:
        ledger.close()
        raise
    for event in events or ():
        ledger.append(ledger.seal(event))
    return ledger


def test_opening_sets_ballast_aside_that_compresses_to_nothing_less(disk: "Disk") -> None:
    with opened(disk, storage.DISK) as ledger:
        ballast = ledger.path.with_name(BALLAST)
        data = ballast.read_bytes()
        assert len(data) == BALLAST_BYTES
        assert len(set(data)) == 256  # not zeros, which some file systems do not store
        assert ledger.room() == ""
    inode = ballast.stat().st_ino
    with opened(disk, storage.DISK):
        assert ballast.stat().st_ino == inode  # made once


def test_ballast_that_is_too_small_is_made_again(disk: "Disk") -> None:
    disk.directory().joinpath(BALLAST).write_bytes(b"a part")
    with opened(disk, storage.DISK) as ledger:
        assert ledger.path.with_name(BALLAST).stat().st_size == BALLAST_BYTES


@pytest.mark.parametrize("partial", [0, 1, 50])
@pytest.mark.parametrize("error", storage.FULL)
def test_on_a_full_disk_the_ballast_goes_and_the_record_gets_in(
    disk: "Disk", whole: list[Event], partial: int, error: int
) -> None:
    filling = Filling(error=error)
    with opened(disk, filling, whole[:3]) as ledger:
        filling.left = partial
        ledger.append(ledger.seal(whole[3]))
        assert not ledger.path.with_name(BALLAST).exists()
        filling.left = PLENTY
        for event in whole[4:6]:  # the session goes on as long as there is room
            ledger.append(ledger.seal(event))
    assert [r.event for r in read(ledger.path).records] == whole[:6]


def test_after_the_ballast_is_gone_nothing_more_may_start_however_much_is_free(
    disk: "Disk", whole: list[Event]
) -> None:
    filling = Filling()
    with opened(disk, filling, whole[:3]) as ledger:
        filling.left = 0
        ledger.append(ledger.seal(whole[3]))
        filling.left = PLENTY
        assert "make room and repeat the command" in ledger.room()
    with opened(disk, filling) as ledger:  # a new session makes new ballast
        assert ledger.room() == ""


@pytest.mark.parametrize(
    ("free", "room"), [(LEAST_FREE_BYTES, True), (LEAST_FREE_BYTES - 1, False)]
)
def test_nothing_starts_without_room_for_its_result(disk: "Disk", free: int, room: bool) -> None:
    filling = Filling()
    with opened(disk, filling) as ledger:
        filling.left = free
        assert (ledger.room() == "") == room
        if not room:
            assert "the run's disk is full" in ledger.room()
            assert "8 MiB needed" in ledger.room()


@pytest.mark.parametrize("short_by", [0, 1])
def test_a_run_does_not_begin_on_a_disk_with_too_little_room(disk: "Disk", short_by: int) -> None:
    filling = Filling(left=BALLAST_BYTES + LEAST_FREE_BYTES - short_by)
    if short_by:
        with pytest.raises(LedgerStorageError, match="9 MiB are needed to begin") as refusal:
            opened(disk, filling)
        assert "repeat the command; nothing paid is lost" in str(refusal.value)
        assert (disk.directory() / LEDGER).read_bytes() == b""
        filling.left = PLENTY
    with opened(disk, filling) as ledger:
        assert ledger.path.with_name(BALLAST).exists()


def test_a_second_full_disk_in_one_session_is_fatal_and_leaves_what_was_acknowledged(
    disk: "Disk", whole: list[Event]
) -> None:
    filling = Filling()
    with opened(disk, filling, whole[:3]) as ledger:
        filling.left = 0
        ledger.append(ledger.seal(whole[3]))
        filling.left = 10
        with pytest.raises(LedgerStorageError, match="What was acknowledged before is safe"):
            ledger.append(ledger.seal(whole[4]))
        filling.left = PLENTY
        with pytest.raises(LedgerStorageError, match="open it anew"):
            ledger.seal(whole[4])
    with opened(disk, filling) as ledger:  # the part that was taken is set aside
        assert ledger.count == 4
        assert "an unfinished line of 10 bytes" in ledger.repairs[0]


@dataclass
class Failing(Filling):
    """Its disk breaks: `sync` raises EIO from now on."""

    broken: bool = False

    def sync(self, handle: int) -> None:
        self.calls.append("sync")
        if self.broken:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().sync(handle)


def test_a_failed_fsync_is_never_tried_again_and_gives_no_ballast_up(
    disk: "Disk", whole: list[Event]
) -> None:
    failing = Failing()
    with opened(disk, failing, whole[:3]) as ledger:
        failing.broken = True
        failing.calls.clear()
        with pytest.raises(LedgerStorageError, match="Input/output error"):
            ledger.append(ledger.seal(whole[3]))
        assert failing.calls == ["write", "sync"]
        failing.broken = False
        with pytest.raises(LedgerStorageError, match="open it anew"):
            ledger.seal(whole[3])
        assert failing.calls == ["write", "sync"]
        assert ledger.path.with_name(BALLAST).exists()
    with opened(disk, failing) as ledger:  # what was not acknowledged was cut off again
        assert ledger.count == 3


def test_a_write_that_fails_for_another_reason_gives_no_ballast_up(
    disk: "Disk", whole: list[Event]
) -> None:
    filling = Filling(error=errno.EIO)
    with opened(disk, filling, whole[:3]) as ledger:
        filling.left = 0
        with pytest.raises(LedgerStorageError, match="Input/output error"):
            ledger.append(ledger.seal(whole[3]))
        assert ledger.path.with_name(BALLAST).exists()


def test_a_full_disk_leaves_the_old_head_and_nothing_half_written(
    disk: "Disk", whole: list[Event]
) -> None:
    filling = Filling()
    with opened(disk, filling, whole[:3]) as ledger:
        head = ledger.path.with_name(HEAD).read_bytes()
        record = ledger.seal(whole[3])
        filling.left = len(record.line) + 1
        ledger.append(record)
        assert ledger.path.with_name(HEAD).read_bytes() == head
    assert not list(ledger.path.parent.glob(".*"))
    with opened(disk, Filling()) as ledger:
        assert ledger.count == 4


def test_ballast_is_given_up_on_request_and_twice_is_harmless(disk: "Disk") -> None:
    with opened(disk, storage.DISK) as ledger:
        ledger.give_up_ballast()
        ledger.give_up_ballast()
        assert not ledger.path.with_name(BALLAST).exists()


# Files that are written aside


@pytest.mark.parametrize("left", [0, 3])
def test_a_file_written_aside_on_a_full_disk_is_the_old_one(tmp_path: Path, left: int) -> None:
    path = tmp_path / "file"
    write_aside(path, b"the old one")
    with pytest.raises(OSError, match="No space left"):
        write_aside(path, b"the new one", storage=Filling(left=left))
    assert path.read_bytes() == b"the old one"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_that_takes_nothing_and_says_nothing_is_full(tmp_path: Path) -> None:
    class Silent(storage.Disk):
        def write(self, handle: int, data: bytes) -> int:
            return 0

    with pytest.raises(OSError, match="No space left"):
        write_aside(tmp_path / "file", b"new", storage=Silent())


def test_what_a_dead_process_left_of_the_same_number_does_not_get_in(tmp_path: Path) -> None:
    (tmp_path / f".file.{os.getpid()}.tmp").write_bytes(b"left behind ")
    write_aside(tmp_path / "file", b"new")
    assert (tmp_path / "file").read_bytes() == b"new"
