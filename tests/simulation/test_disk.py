"""The double itself: what was synced lasts, what was not may or may not, and faults strike."""

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from budgets.storage import write_aside
from tests.simulation.disk import SECTOR, Fault, FaultyDisk, PowerCut

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
