"""A `budgets.storage.Storage` that fails or loses power at a chosen call.

It writes to real files, so that readers see what a running system would show, and remembers what is
durable: synced bytes, and names in synced directories. `power_cut` turns the real files into one of
the states that a power cut may leave.

Not simulated: new directories and files that are written past it (of the evaluations) are durable
at once.
"""

import errno
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from budgets.storage import DISK, Storage

SECTOR = 512
PAGE_SECTORS = 8  # dirty data is tracked by pages of 4096 bytes, as in operating systems

Call = Literal["open", "write", "sync", "truncate", "sync_directory"]
"""The calls that change the disk; an `open` counts if it creates the file."""

CALLS: tuple[Call, ...] = get_args(Call)


class PowerCut(BaseException):
    """The machine stops in the middle of a storage call."""


@dataclass(frozen=True)
class Fault:
    """A fault at the `at`-th call (from 1) of a kind, or of any kind."""

    at: int
    call: Call | None = None
    error: int | None = None  # errno of the OSError; None cuts the power
    moment: Literal["before", "torn", "after"] = "before"  # torn: in the middle of a write
    kept: float = 0.5  # the share of a torn write that is written
    lasting: bool = False  # every later call of the kind fails too


class Pages:
    """One file: its bytes (`now`), and what a power cut may leave of it.

    A sector is written completely or not at all. Each unsynced sector may have any version since
    the last sync, and so may the size: if the size is on disk before the data, the data reads as
    zeros (ext4 with data=writeback).
    """

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self._sizes = [len(data)]
        self._versions: dict[int, list[bytes]] = {}  # of unsynced sectors
        self._dirty: set[int] = set()  # pages that the next sync writes

    def write(self, data: bytes) -> None:
        """Append."""
        self._change(len(self.now), len(self.now) + len(data), data)

    def truncate(self, size: int) -> None:
        """Cut the file to `size` bytes."""
        if size < len(self.now):
            self._change(size, len(self.now), b"")

    def _change(self, start: int, end: int, data: bytes) -> None:
        """Replace everything from `start` by `data`; sectors up to `end` become dirty."""
        sectors = range(start // SECTOR, -(-end // SECTOR))
        for sector in sectors:
            self._versions.setdefault(sector, [self._sector(sector)])
            self._dirty.add(sector // PAGE_SECTORS)
        self.now[start:] = data
        for sector in sectors:
            self._versions[sector].append(self._sector(sector))
        self._sizes.append(len(self.now))

    def _sector(self, number: int) -> bytes:
        return bytes(self.now[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def sync(self) -> None:
        """Make everything durable, except what an earlier sync failed to write."""
        kept = (n for n in self._versions if n // PAGE_SECTORS not in self._dirty)
        self._versions = {number: self._versions[number] for number in kept}
        self._dirty.clear()
        self._sizes = [len(self.now)]

    def fail_to_sync(self) -> None:
        """Mark the pages clean: no later sync writes them (as Linux does; fsyncgate, 2018)."""
        self._dirty.clear()

    def after_power_cut(self, rng: np.random.Generator) -> bytes:
        """Return one of the possible contents after a power cut."""
        case = int(rng.integers(4))  # all old, all new, the new size without the data, any mix
        size = self._sizes[(0, -1, -1, int(rng.integers(len(self._sizes))))[case]]
        image = bytearray(bytes(self.now[:size]).ljust(size, b"\0"))
        for number, versions in sorted(self._versions.items()):
            place = slice(number * SECTOR, min((number + 1) * SECTOR, size))
            if place.start < size:
                pick = int(rng.integers(len(versions))) if case == 3 else (0, -1, 0)[case]
                image[place] = versions[pick][: place.stop - place.start]
        return bytes(image)


class FaultyDisk(Storage):
    """Real files with scheduled faults, and a record of what is durable.

    `capacity` limits the bytes of all its files together; it may be changed at any time.
    """

    def __init__(self, *faults: Fault) -> None:
        self.capacity: int | None = None
        self.calls: Counter[Call] = Counter()
        self.is_off = False
        self._faults: tuple[Fault, ...] = ()
        self._handles: dict[int, Pages] = {}
        self._files: dict[Path, Pages] = {}
        self._unsynced: list[Path] = []  # new files, until their directory is synced
        self._full: set[int] = set()  # handles that took a short write: the next one fails
        self.schedule(*faults)

    def schedule(self, *faults: Fault) -> None:
        """Replace the faults; calls are counted from the next one."""
        self._faults = faults
        self.calls.clear()

    def open(self, path: Path) -> int:
        path = path.absolute()
        self._meet(path)
        if path in self._files:
            self._need_power()
            handle = DISK.open(path)
        else:
            with self._call("open"):
                handle = DISK.open(path)
                self._files[path] = Pages()
                self._unsynced.append(path)
        self._handles[handle] = self._files[path]
        return handle

    def write(self, handle: int, data: bytes) -> int:
        pages = self._pages(handle)
        if handle in self._full:
            self._full.discard(handle)
            raise _error(errno.ENOSPC)
        with self._call("write") as fault:
            if fault is not None and fault.moment == "torn":
                return self._tear(handle, data, fault)
            fits = data if (room := self._room()) is None else data[: max(room, 0)]
            if data and not fits:
                raise _error(errno.ENOSPC)
            _put(handle, fits)
            pages.write(fits)
            return len(fits)

    def _tear(self, handle: int, data: bytes, fault: Fault) -> int:
        """Write a part; then the power fails, or the next write raises the error."""
        part = data[: round(fault.kept * len(data))]
        _put(handle, part)
        self._handles[handle].write(part)
        if fault.error is None or not part or fault.error != errno.ENOSPC:
            self._strike(fault)
        self._full.add(handle)
        return len(part)

    def sync(self, handle: int) -> None:
        pages = self._pages(handle)
        try:
            with self._call("sync"):
                pages.sync()
        except OSError:
            pages.fail_to_sync()
            raise

    def truncate(self, handle: int, size: int) -> None:
        pages = self._pages(handle)
        with self._call("truncate"):
            os.ftruncate(handle, size)
            pages.truncate(size)

    def sync_directory(self, directory: Path) -> None:
        directory = directory.absolute()
        with self._call("sync_directory"):
            self._unsynced = [path for path in self._unsynced if path.parent != directory]

    def free_bytes(self, directory: Path) -> int:
        room = self._room()
        return DISK.free_bytes(directory) if room is None else max(room, 0)

    def restart(self) -> None:
        """After the death of the process alone: forget the handles, keep everything written."""
        self.is_off = False
        self._handles.clear()
        self._full.clear()

    def power_cut(self, rng: np.random.Generator) -> None:
        """Put the files into a possible state after a power cut, and turn the power on.

        Synced data is there; of the rest any sectors and names may be. Open handles are invalid.
        """
        mood = rng.integers(3)  # none of the new names, all, or any of them
        kept = [mood == 1 or (mood == 2 and rng.random() < 0.5) for _ in self._unsynced]
        lost = [path for path, own in zip(self._unsynced, kept, strict=True) if not own]
        for path, pages in list(self._files.items()):
            path.unlink(missing_ok=True)
            if path in lost:
                del self._files[path]
            else:
                self._files[path] = Pages(pages.after_power_cut(rng))
                path.write_bytes(self._files[path].now)
        self._unsynced = []
        self.restart()

    def _meet(self, path: Path) -> None:
        """Register an existing or missing file as durable.

        Also a file whose size has changed, because it was written past this disk.
        """
        size = path.stat().st_size if path.is_file() else None
        known = self._files.get(path)
        if size == (None if known is None else len(known.now)):
            return
        self._files.pop(path, None)
        if size is not None:
            self._files[path] = Pages(path.read_bytes())
        self._unsynced = [one for one in self._unsynced if one != path]

    def _pages(self, handle: int) -> Pages:
        self._need_power()
        if handle not in self._handles:
            raise _error(errno.EBADF)
        pages = self._handles[handle]
        if os.fstat(handle).st_size != len(pages.now):
            raise AssertionError("the file was changed past the storage it was opened with")
        return pages

    @property
    def used_bytes(self) -> int:
        """The bytes of all files that have a name."""
        return sum(len(pages.now) for pages in self._files.values())

    def _room(self) -> int | None:
        return None if self.capacity is None else self.capacity - self.used_bytes

    @contextmanager
    def _call(self, call: Call) -> Iterator[Fault | None]:
        """Count the call, and raise its fault before or after it, if there is one."""
        self._need_power()
        self.calls[call] += 1
        fault = self._due(call)
        if fault is not None and (fault.moment == "before" or _is_whole(fault, call)):
            self._strike(fault)
        yield fault
        if fault is not None and fault.moment == "after":
            self._strike(fault)

    def _due(self, call: Call) -> Fault | None:
        for fault in self._faults:
            if fault.call in (None, call):
                count = self.calls[call] if fault.call else self.calls.total()
                if count == fault.at or (fault.lasting and count > fault.at):
                    return fault
        return None

    def _strike(self, fault: Fault) -> None:
        if fault.error is not None:
            raise _error(fault.error)
        self.is_off = True
        raise PowerCut

    def _need_power(self) -> None:
        if self.is_off:
            raise PowerCut


def _is_whole(fault: Fault, call: Call) -> bool:
    """Whether a torn fault hits a call that is not a write: then the call is not done."""
    return fault.moment == "torn" and call != "write"


def _put(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
