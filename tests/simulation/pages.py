"""One file as a machine holds it: its bytes now, and what of them a power cut may leave.

A sector of 512 bytes is written whole or not at all. What was not synced may be there in any of
the states it had since, each sector for itself, and so may the size: where the size reached the
disk before the data did, the data reads as zeros (ext4 with data=writeback).
"""

from dataclasses import dataclass, field

import numpy as np

SECTOR = 512
PAGE_SECTORS = 8
"""What is dirty is remembered by the page of 4096 bytes, as operating systems do."""


@dataclass
class Change:
    """Some whole sectors, from number `first` on, before and after a call; padded with zeros."""

    first: int
    before: bytes
    after: bytes
    is_dirty: bool = True  # a sync will write it; else one has failed to
    written: set[int] = field(default_factory=set)  # pages of it that were written since

    @property
    def sectors(self) -> range:
        return range(self.first, self.first + len(self.after) // SECTOR)

    @property
    def pages(self) -> set[int]:
        return set(range(self.first // PAGE_SECTORS, -(-self.sectors.stop // PAGE_SECTORS)))

    def states(self, number: int) -> tuple[bytes, bytes]:
        """Of one sector: before, after."""
        place = slice((number - self.first) * SECTOR, (number - self.first + 1) * SECTOR)
        return self.before[place], self.after[place]


class Pages:
    """A file's bytes (`now`), and the changes to them that may or may not be on the disk."""

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self._changes: list[Change] = []
        self._sizes = [len(data)]

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
        first, last = start // SECTOR, -(-end // SECTOR)
        before = self._padded(first, last)
        self.now[start:] = data
        self._changes.append(Change(first, before, self._padded(first, last)))
        self._sizes.append(len(self.now))

    def _padded(self, first: int, last: int) -> bytes:
        found = bytes(self.now[first * SECTOR : last * SECTOR])
        return found.ljust((last - first) * SECTOR, b"\0")

    def sync(self) -> None:
        """All of it is on the disk, but for what an earlier sync failed to bring there."""
        dirty = set().union(*(change.pages for change in self._changes if change.is_dirty))
        self._changes = [change for change in self._changes if not change.is_dirty]
        for change in self._changes:
            change.written |= dirty
        self._sizes = [len(self.now)]

    def fail_to_sync(self) -> None:
        """The system believes the pages clean now: no later sync writes them (PostgreSQL, 2018)."""
        for change in self._changes:
            change.is_dirty = False

    def after_power_cut(self, rng: np.random.Generator) -> bytes:
        """What is found when the power is back: one of the possible states of the disk."""
        mood = int(rng.integers(4))  # all old, all new, the new size without the data, anything
        size = self._sizes[(0, -1, -1, int(rng.integers(len(self._sizes))))[mood]]
        image = bytearray(bytes(self.now[:size]).ljust(size, b"\0"))
        for number, states in sorted(self._states().items()):
            place = slice(number * SECTOR, min((number + 1) * SECTOR, size))
            if place.start < size:
                pick = int(rng.integers(len(states))) if mood == 3 else (0, -1, 0)[mood]
                image[place] = states[pick][: place.stop - place.start]
        return bytes(image)

    def _states(self) -> dict[int, list[bytes]]:
        """Of each sector that may be in several, oldest first."""
        found: dict[int, list[bytes]] = {}
        for change in self._changes:
            for number in change.sectors:
                if number // PAGE_SECTORS not in change.written:
                    before, after = change.states(number)
                    found.setdefault(number, [before]).append(after)
        return found
