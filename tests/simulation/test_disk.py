"""The double itself: what was synced lasts, what was not may or may not, and faults strike."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from budgets.ledger.storage import write_aside
from tests.simulation.disk import FaultyDisk
from tests.simulation.faults import CALLS, Fault, PowerCut
from tests.simulation.pages import SECTOR

DRAWS = range(60)


@contextmanager
def opened(disk: FaultyDisk, path: Path) -> Iterator[int]:
    handle = disk.open(path)
    try:
        yield handle
    finally:
        os.close(handle)


def append(disk: FaultyDisk, path: Path, data: bytes, *, sync: bool) -> None:
    with opened(disk, path) as handle:
        disk.write(handle, data)
        if sync:
            disk.sync(handle)


def survivors(place: Path, story: Callable[[FaultyDisk, Path], None]) -> set[bytes | None]:
    """What is found in `file` after the story and a power cut, in many draws."""
    found = set()
    for draw in DRAWS:
        directory = place / str(draw)
        directory.mkdir()
        disk, path = FaultyDisk(), directory / "file"
        story(disk, path)
        disk.power_cut(np.random.default_rng(draw))
        found.add(path.read_bytes() if path.exists() else None)
    return found


def durable(disk: FaultyDisk, path: Path, data: bytes = b"old") -> None:
    append(disk, path, data, sync=True)
    disk.sync_directory(path.parent)


def test_what_was_synced_survives_every_power_cut(place: Path) -> None:
    assert survivors(place, durable) == {b"old"}


def test_what_was_not_synced_survives_whole_in_part_as_zeros_or_not_at_all(place: Path) -> None:
    old, new = b"o" * 100, b"n" * 2 * SECTOR

    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path, old)
        append(disk, path, new, sync=False)

    found = survivors(place, story)

    assert {old, old + new, old + bytes(len(new))} < found
    assert len(found) > 4
    for image in found:
        assert image is not None
        assert image.startswith(old)
        assert set(image[len(old) :]) <= {0, ord("n")}


def test_a_file_whose_name_was_not_synced_may_be_gone(place: Path) -> None:
    assert survivors(place, lambda disk, path: append(disk, path, b"new", sync=True)) == {
        None,
        b"new",
    }


def test_a_rename_without_its_directory_synced_may_be_undone(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path)
        durable(disk, path.with_name("other"), b"new")
        disk.rename(path.with_name("other"), path)

    assert survivors(place, story) == {b"old", b"new"}


def test_a_removal_without_its_directory_synced_may_be_undone(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path)
        disk.remove(path)

    assert survivors(place, story) == {b"old", None}


def test_a_removal_with_its_directory_synced_lasts(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path)
        disk.remove(path)
        disk.sync_directory(path.parent)

    assert survivors(place, story) == {None}


def test_a_truncation_may_be_undone_until_it_is_synced(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path, b"a" * SECTOR + b"b" * SECTOR)
        with opened(disk, path) as handle:
            disk.truncate(handle, SECTOR)

    assert {b"a" * SECTOR, b"a" * SECTOR + b"b" * SECTOR} <= survivors(place, story)


def test_a_synced_truncation_lasts(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path, b"a" * 100)
        with opened(disk, path) as handle:
            disk.truncate(handle, 10)
            disk.sync(handle)

    assert survivors(place, story) == {b"a" * 10}


def test_after_a_sync_that_failed_a_later_one_brings_nothing_back(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path, b"o" * SECTOR)
        disk.schedule(Fault(1, "sync", errno.EIO))
        with opened(disk, path) as handle:
            disk.write(handle, b"n" * SECTOR)
            with pytest.raises(OSError, match="Input/output"):
                disk.sync(handle)
            disk.sync(handle)

    found = survivors(place, story)

    assert {b"o" * SECTOR + b"n" * SECTOR, b"o" * SECTOR + bytes(SECTOR)} == found


def test_a_file_written_aside_is_the_old_or_the_new_in_every_draw(place: Path) -> None:
    old, new = b"o" * 700, b"n" * 1500
    whole = FaultyDisk()
    durable(whole, place / "file", old)
    before = whole.calls.total()
    write_aside(place / "file", new, storage=whole)
    steps = whole.calls.total() - before
    found = set()
    for at in range(1, steps + 1):
        for moment in ("before", "torn", "after"):
            for draw in range(12):
                path = place / f"{at}-{moment}-{draw}"
                disk = FaultyDisk()
                durable(disk, path, old)
                disk.schedule(Fault(at, moment=moment))
                with pytest.raises(PowerCut):
                    write_aside(path, new, storage=disk)
                disk.power_cut(np.random.default_rng(draw))
                found.add(path.read_bytes())

    assert steps == 5
    assert found == {old, new}


def test_a_file_written_aside_without_syncing_is_sometimes_neither(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path)
        write_aside(path, b"n" * 1500, durable=False, storage=disk)

    assert len(survivors(place, story)) > 2


@pytest.mark.parametrize("call", CALLS)
def test_the_named_call_fails_and_only_that_one(place: Path, call: str) -> None:
    path, other = place / "file", place / "other"
    for at in (1, 2):
        disk = FaultyDisk(Fault(at, call, errno.EROFS))  # type: ignore[arg-type]
        failed = []
        for number in range(3):
            try:
                with opened(disk, path) as handle:
                    disk.write(handle, b"x")
                    disk.sync(handle)
                    disk.truncate(handle, 0)
                disk.rename(path, other)
                disk.remove(other)
                disk.sync_directory(place)
            except OSError as error:
                failed.append((number, error.errno))
                path.unlink(missing_ok=True)
                other.unlink(missing_ok=True)
        assert failed == [(at - 1, errno.EROFS)]


def test_a_lasting_fault_strikes_ever_after(place: Path) -> None:
    disk = FaultyDisk(Fault(2, "write", errno.EIO, lasting=True))
    with opened(disk, place / "file") as handle:
        assert disk.write(handle, b"x") == 1
        for _ in range(3):
            with pytest.raises(OSError, match="Input/output"):
                disk.write(handle, b"x")


def test_a_full_disk_takes_a_part_and_then_nothing_until_there_is_room(place: Path) -> None:
    disk = FaultyDisk(capacity=10)
    append(disk, place / "ballast", bytes(6), sync=True)
    assert disk.free_bytes(place) == 4
    with opened(disk, place / "file") as handle:
        assert disk.write(handle, b"12345") == 4
        with pytest.raises(OSError, match="No space left"):
            disk.write(handle, b"5")
        disk.remove(place / "ballast")
        assert disk.write(handle, b"5") == 1
    assert (place / "file").read_bytes() == b"12345"
    disk.capacity = 3
    assert disk.free_bytes(place) == 0


def test_a_torn_write_that_fails_for_want_of_room_is_short_first(place: Path) -> None:
    disk = FaultyDisk(Fault(1, "write", errno.ENOSPC, "torn", kept=0.5))
    with opened(disk, place / "file") as handle:
        assert disk.write(handle, b"1234") == 2
        with pytest.raises(OSError, match="No space left"):
            disk.write(handle, b"34")
    assert (place / "file").read_bytes() == b"12"


def test_nothing_can_be_done_without_power_nor_with_handles_of_before(place: Path) -> None:
    disk = FaultyDisk(Fault(2, "write", moment="torn", kept=0.5))
    with opened(disk, place / "file") as handle:
        disk.write(handle, b"ab")
        for _ in range(2):
            with pytest.raises(PowerCut):
                disk.write(handle, b"cd")
        with pytest.raises(PowerCut):
            disk.sync_directory(place)
    assert (place / "file").read_bytes() == b"abc"
    disk.power_cut(np.random.default_rng(0))
    with pytest.raises(OSError, match="Bad file descriptor"):
        disk.sync(handle)


def test_the_death_of_the_process_alone_loses_nothing_that_was_written(place: Path) -> None:
    disk = FaultyDisk(Fault(1, "sync"))
    with pytest.raises(PowerCut):
        append(disk, place / "file", b"new", sync=True)
    disk.restart()
    assert (place / "file").read_bytes() == b"new"
    append(disk, place / "file", b"er", sync=True)
    assert (place / "file").read_bytes() == b"newer"


def test_a_change_that_goes_past_the_storage_is_noticed(place: Path) -> None:
    disk = FaultyDisk()
    with opened(disk, place / "file") as handle:
        disk.write(handle, b"a")
        (place / "file").write_bytes(b"somebody else")
        with pytest.raises(AssertionError, match="past the storage"):
            disk.write(handle, b"b")
