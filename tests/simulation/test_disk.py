"""The double itself: what was synced lasts, what was not may or may not, and faults strike."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from budgets.storage import write_aside
from tests.simulation.disk import CALLS, SECTOR, Call, Fault, FaultyDisk, PowerCut

Story = Callable[[FaultyDisk, Path], None]
OLD, NEW = b"o" * SECTOR, b"n" * SECTOR


@contextmanager
def opened(disk: FaultyDisk, path: Path) -> Iterator[int]:
    handle = disk.open(path)
    try:
        yield handle
    finally:
        os.close(handle)


def append(disk: FaultyDisk, path: Path, data: bytes, *, sync: bool = True) -> None:
    with opened(disk, path) as handle:
        disk.write(handle, data)
        if sync:
            disk.sync(handle)


def durable(disk: FaultyDisk, path: Path, data: bytes = OLD) -> None:
    append(disk, path, data)
    disk.sync_directory(path.parent)


def survivors(place: Path, story: Story) -> set[bytes | None]:
    """What is found in `file` after the story and a power cut, in 60 draws."""
    found = set()
    for draw in range(60):
        directory = place / str(draw)
        directory.mkdir()
        disk, path = FaultyDisk(), directory / "file"
        story(disk, path)
        disk.power_cut(np.random.default_rng(draw))
        found.add(path.read_bytes() if path.exists() else None)
    return found


def renamed(disk: FaultyDisk, path: Path) -> None:
    durable(disk, path)
    durable(disk, path.with_name("other"), NEW)
    disk.rename(path.with_name("other"), path)


def removed(disk: FaultyDisk, path: Path) -> None:
    durable(disk, path)
    disk.remove(path)


def removed_for_good(disk: FaultyDisk, path: Path) -> None:
    removed(disk, path)
    disk.sync_directory(path.parent)


def truncated(disk: FaultyDisk, path: Path) -> None:
    durable(disk, path, OLD + NEW)
    with opened(disk, path) as handle:
        disk.truncate(handle, SECTOR)
        disk.sync(handle)


def synced_again_after_it_failed(disk: FaultyDisk, path: Path) -> None:
    durable(disk, path)
    disk.schedule(Fault(1, "sync", errno.EIO))
    with opened(disk, path) as handle:
        disk.write(handle, NEW)
        with pytest.raises(OSError, match="Input/output"):
            disk.sync(handle)
        disk.sync(handle)


@pytest.mark.parametrize(
    ("story", "expected"),
    [
        (durable, {OLD}),
        (lambda disk, path: append(disk, path, OLD), {OLD, None}),
        (renamed, {OLD, NEW}),
        (removed, {OLD, None}),
        (removed_for_good, {None}),
        (truncated, {OLD}),
        (synced_again_after_it_failed, {OLD + NEW, OLD + bytes(SECTOR)}),
    ],
)
def test_only_what_was_synced_is_sure_to_survive(
    place: Path, story: Story, expected: set[bytes | None]
) -> None:
    assert survivors(place, story) == expected


def test_what_was_not_synced_survives_whole_in_part_as_zeros_or_not_at_all(place: Path) -> None:
    def story(disk: FaultyDisk, path: Path) -> None:
        durable(disk, path, b"o" * 100)
        append(disk, path, 2 * NEW, sync=False)

    found = survivors(place, story)
    assert {b"o" * 100, b"o" * 100 + 2 * NEW, b"o" * 100 + bytes(2 * SECTOR)} < found
    assert len(found) > 4


def test_a_file_written_aside_is_the_old_or_the_new_wherever_the_power_goes(place: Path) -> None:
    found = set()
    for at in range(1, 6):
        for moment in ("before", "torn", "after"):
            for draw in range(12):
                path, disk = place / f"{at}-{moment}-{draw}", FaultyDisk()
                durable(disk, path)
                disk.schedule(Fault(at, moment=moment))
                with pytest.raises(PowerCut):
                    write_aside(path, 3 * NEW, storage=disk)
                disk.power_cut(np.random.default_rng(draw))
                found.add(path.read_bytes())
    assert found == {OLD, 3 * NEW}


@pytest.mark.parametrize("call", CALLS)
def test_the_named_call_fails_and_only_that_one(place: Path, call: Call) -> None:
    path, disk, failed = place / "file", FaultyDisk(Fault(2, call, errno.EROFS)), []
    for number in range(3):
        try:
            with opened(disk, path) as handle:
                disk.write(handle, b"x")
                disk.sync(handle)
                disk.truncate(handle, 0)
            disk.rename(path, place / "other")
            disk.remove(place / "other")
            disk.sync_directory(place)
        except OSError as error:
            failed.append((number, error.errno))
            path.unlink(missing_ok=True)
            (place / "other").unlink(missing_ok=True)
    assert failed == [(1, errno.EROFS)]


def test_a_full_disk_takes_a_part_and_then_nothing_until_there_is_room(place: Path) -> None:
    disk = FaultyDisk(capacity=10)
    append(disk, place / "other", bytes(6))
    with opened(disk, place / "file") as handle:
        assert disk.write(handle, b"12345") == 4
        with pytest.raises(OSError, match="No space left"):
            disk.write(handle, b"5")
        disk.remove(place / "other")
        assert disk.write(handle, b"5") == 1
    assert (place / "file").read_bytes() == b"12345"


def test_the_death_of_the_process_alone_loses_nothing_that_was_written(place: Path) -> None:
    disk = FaultyDisk(Fault(1, "sync"))
    with pytest.raises(PowerCut):
        append(disk, place / "file", b"new")
    disk.restart()
    append(disk, place / "file", b"er")
    assert (place / "file").read_bytes() == b"newer"
