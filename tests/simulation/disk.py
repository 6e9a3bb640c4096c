"""A `budgets.storage.Storage` that fails or loses power at the call a test names.

It writes through to real files, so that readers see what a running system would show, and keeps
beside them what is durable: bytes that were synced, names whose directory was synced. `power_cut`
turns the real files into one of the states that a dead machine may leave.

Not modelled: directories that are made (they last at once), and changes that bypass it (the
evaluations' own files), which last as they are.
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

from budgets.storage import DISK

SECTOR = 512
PAGE_SECTORS = 8  # what is dirty is known by the page of 4096 bytes, as operating systems do

Call = Literal["open", "write", "sync", "truncate", "rename", "remove", "sync_directory"]
"""The calls that change something; an `open` counts when it creates the file."""

CALLS: tuple[Call, ...] = get_args(Call)


class PowerCut(BaseException):
    """The machine stopped in the middle of a storage call: nothing after it is done."""


@dataclass(frozen=True)
class Fault:
    """What happens at the `at`-th call (from 1) of a kind, or of any."""

    at: int
    call: Call | None = None
    error: int | None = None  # errno of the OSError; None cuts the power
    moment: Literal["before", "torn", "after"] = "before"  # torn: in the middle of a write
    kept: float = 0.5  # the share of a torn write that got through
    lasting: bool = False  # every later call of the kind fails too


class Pages:
    """One file: its bytes (`now`), and what a power cut may leave of it.

    A sector is written whole or not at all. What was not synced may be there in any version it had
    since, sector by sector, and so may the size: where the size reached the disk before the data,
    the data reads as zeros (ext4 with data=writeback).
    """

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self._sizes = [len(data)]
        self._versions: dict[int, list[bytes]] = {}  # of sectors that no sync has written
        self._dirty: set[int] = set()  # pages that the next sync writes

    def write(self, data: bytes) -> None:
        """Append."""
        self._change(len(self.now), len(self.now) + len(data), data)

    def truncate(self, size: int) -> None:
        """Cut after `size` bytes, or fill up to there with zeros."""
        if size > len(self.now):
            self.write(bytes(size - len(self.now)))
        elif size < len(self.now):
            self._change(size, len(self.now), b"")

    def _change(self, start: int, end: int, data: bytes) -> None:
        """From `start` on the file holds `data`; sectors up to `end` are touched."""
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
        """All of it is on the disk, except what an earlier sync failed to write."""
        kept = (n for n in self._versions if n // PAGE_SECTORS not in self._dirty)
        self._versions = {number: self._versions[number] for number in kept}
        self._dirty.clear()
        self._sizes = [len(self.now)]

    def fail_to_sync(self) -> None:
        """The system takes the pages for clean now: no later sync writes them (fsyncgate, 2018)."""
        self._dirty.clear()

    def after_power_cut(self, rng: np.random.Generator) -> bytes:
        """One of the possible states of the disk when the power is back."""
        case = int(rng.integers(4))  # all old, all new, the new size without the data, any mix
        size = self._sizes[(0, -1, -1, int(rng.integers(len(self._sizes))))[case]]
        image = bytearray(bytes(self.now[:size]).ljust(size, b"\0"))
        for number, versions in sorted(self._versions.items()):
            place = slice(number * SECTOR, min((number + 1) * SECTOR, size))
            if place.start < size:
                pick = int(rng.integers(len(versions))) if case == 3 else (0, -1, 0)[case]
                image[place] = versions[pick][: place.stop - place.start]
        return bytes(image)


class FaultyDisk:
    """Real files, with the faults it was told to have and a memory of what is durable.

    `capacity` bounds the bytes of all its files together; it may be changed at any time.
    """

    def __init__(self, *faults: Fault, capacity: int | None = None) -> None:
        self.capacity = capacity
        self.calls: Counter[Call] = Counter()
        self.is_off = False
        self._faults: tuple[Fault, ...] = ()
        self._handles: dict[int, Pages] = {}
        self._names: dict[Path, Pages | None] = {}
        self._durable: dict[Path, Pages | None] = {}
        self._unsynced: list[dict[Path, Pages | None]] = []
        self._full: set[int] = set()  # handles that took a short write: the next one fails
        self.schedule(*faults)

    def schedule(self, *faults: Fault) -> None:
        """These faults from now on, counting calls from the next one."""
        self._faults = faults
        self.calls.clear()

    def open(self, path: Path) -> int:
        path = path.absolute()
        self._meet(path)
        if self._names[path] is None:
            with self._call("open"):
                handle = DISK.open(path)
                self._rename({path: Pages()})
        else:
            self._need_power()
            handle = DISK.open(path)
        pages = self._names[path]
        assert pages is not None
        self._handles[handle] = pages
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
        """A part gets through; then the power goes, or the next write meets the error."""
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

    def rename(self, path: Path, to: Path) -> None:
        path, to = path.absolute(), to.absolute()
        self._meet(path)
        self._meet(to)
        with self._call("rename"):
            path.rename(to)
            self._rename({to: self._names[path], path: None})

    def remove(self, path: Path) -> None:
        path = path.absolute()
        self._meet(path)
        with self._call("remove"):
            path.unlink(missing_ok=True)
            self._rename({path: None})

    def sync_directory(self, directory: Path) -> None:
        directory = directory.absolute()
        with self._call("sync_directory"):
            kept = []
            for change in self._unsynced:
                if all(path.parent == directory for path in change):
                    self._durable.update(change)
                else:
                    kept.append(change)
            self._unsynced = kept

    def free_bytes(self, directory: Path) -> int:
        room = self._room()
        return DISK.free_bytes(directory) if room is None else max(room, 0)

    def restart(self) -> None:
        """The process died, the machine did not: handles are gone, all that was written stays."""
        self.is_off = False
        self._handles.clear()
        self._full.clear()

    def power_cut(self, rng: np.random.Generator) -> None:
        """Leave a possible state of the dead machine's disk; the power is on again afterwards.

        What was synced is there. Of the rest any part may be, sector by sector and name by name.
        Its owners must have closed the handles by now: they mean nothing any more.
        """
        mood, names = rng.integers(3), dict(self._durable)
        for change in self._unsynced:
            if mood == 1 or (mood == 2 and rng.random() < 0.5):
                names.update(change)
        found: dict[int, Pages] = {}
        for path, pages in names.items():
            path.unlink(missing_ok=True)
            if pages is not None:
                if id(pages) not in found:
                    found[id(pages)] = Pages(pages.after_power_cut(rng))
                path.write_bytes(found[id(pages)].now)
                names[path] = found[id(pages)]
        self._names, self._durable, self._unsynced = dict(names), dict(names), []
        self.restart()

    def _meet(self, path: Path) -> None:
        """Take note of a file that is there already: it is durable, and so is its absence.

        So is one that has another size than it should have: somebody else has changed it.
        """
        size = path.stat().st_size if path.is_file() and not path.is_symlink() else None
        if path in self._names:
            known = self._names[path]
            if size == (None if known is None else len(known.now)):
                return
        self._names[path] = None if size is None else Pages(path.read_bytes())
        self._durable[path] = self._names[path]
        self._unsynced = [change for change in self._unsynced if path not in change]

    def _rename(self, change: dict[Path, Pages | None]) -> None:
        self._names.update(change)
        self._unsynced.append(change)

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
        """Of all files that have a name."""
        files = {id(pages): len(pages.now) for pages in self._names.values() if pages is not None}
        return sum(files.values())

    def _room(self) -> int | None:
        return None if self.capacity is None else self.capacity - self.used_bytes

    @contextmanager
    def _call(self, call: Call) -> Iterator[Fault | None]:
        """Count the call and let the fault that is due strike before or after it."""
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
    """Only a write can be torn: another call is not done then."""
    return fault.moment == "torn" and call != "write"


def _put(handle: int, data: bytes) -> None:
    while data:
        data = data[os.write(handle, data) :]


def _error(number: int) -> OSError:
    return OSError(number, os.strerror(number))
