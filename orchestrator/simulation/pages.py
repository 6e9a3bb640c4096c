"""One file as a machine holds it: its bytes now, and what of them a power cut may leave.

A sector of 512 bytes is written whole or not at all. What was not synced may be there in any of
the states it had since, each sector for itself, and so may the size: where the size reached the
disk before the data did, the data reads as zeros (ext4 with data=writeback).
"""

import numpy as np

SECTOR = 512
PAGE = 4096
"""What is dirty is remembered by the page, as operating systems do."""


class Pages:
    """A file's bytes (`now`), every state of its sectors that may be on the disk beside them."""

    def __init__(self, data: bytes = b"") -> None:
        self.now = bytearray(data)
        self._states: dict[int, list[bytes]] = {}  # of a sector, oldest first; none: as it is now
        self._sizes = [len(data)]
        self._dirty: set[int] = set()

    def write(self, data: bytes) -> None:
        """Append."""
        self._change(len(self.now), len(self.now) + len(data), data)

    def truncate(self, size: int) -> None:
        """Cut after `size` bytes, or fill up to there with zeros."""
        if size > len(self.now):
            self.write(bytes(size - len(self.now)))
        elif size < len(self.now):
            self._change(size, len(self.now), None)

    def _change(self, start: int, end: int, data: bytes | None) -> None:
        """Append `data` at `start`, or cut there when there is none."""
        touched = range(start // SECTOR, -(-end // SECTOR))
        for number in touched:
            self._states.setdefault(number, [self._sector(number)])
        if data is None:
            del self.now[start:]
        else:
            self.now += data
        for number in touched:
            self._states[number].append(self._sector(number))
            self._dirty.add(number * SECTOR // PAGE)
        self._sizes.append(len(self.now))

    def _sector(self, number: int) -> bytes:
        return bytes(self.now[number * SECTOR : (number + 1) * SECTOR]).ljust(SECTOR, b"\0")

    def sync(self) -> None:
        """All of it is on the disk, but for what an earlier sync failed to bring there."""
        for page in self._dirty:
            for number in range(page * PAGE // SECTOR, (page + 1) * PAGE // SECTOR):
                self._states.pop(number, None)
        self._dirty.clear()
        self._sizes = [len(self.now)]

    def fail_to_sync(self) -> None:
        """The system believes the pages clean now: no later sync writes them (PostgreSQL, 2018)."""
        self._dirty.clear()

    def after_power_cut(self, rng: np.random.Generator) -> bytes:
        """What is found when the power is back: one of the possible states of the disk."""
        mood = rng.integers(4)  # all old, all new, the new size without the data, anything
        size = self._sizes[(0, -1, -1, int(rng.integers(len(self._sizes))))[mood]]
        image = bytearray(bytes(self.now[:size]).ljust(size, b"\0"))
        for number, states in sorted(self._states.items()):
            place = slice(number * SECTOR, min((number + 1) * SECTOR, size))
            if place.start < size:
                chosen = states[(0, -1, 0, int(rng.integers(len(states))))[mood]]
                image[place] = chosen[: place.stop - place.start]
        return bytes(image)
