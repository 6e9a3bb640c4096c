"""What attempts in flight have written into their directories: on which device, how far they are.

Read without a lock, a few KiB of each at most, and believed as little as anything an evaluation
writes: a link, a pipe, or nonsense is no sign.
"""

import math
import os
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from heapq import nlargest
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from budgets.ledger.storage import plain_file
from orchestrator.execution.attempts import METRICS, STARTED
from orchestrator.watch.snapshot import DeviceRow, Snapshot

READ_BYTES = 4096
"""Of a file, from its end: some heartbeats, and more than one of a screenful of metrics."""

HEARTBEATS = 12
"""Attempts whose files are read for a terminal: those that run for the longest time."""

MOST_NAME = 80
"""Characters of a device's name."""


class Beat(NamedTuple):
    """How far an evaluation is, as far as it says."""

    step: float | None
    loss: float | None
    progress: float | None  # 0 to 1


NO_BEAT = Beat(None, None, None)


Try = tuple[str, int]
"""An attempt: the place of its evaluation, and which one it is there."""


@dataclass
class Signs:
    """Of what is in flight of the run in `directory`, read anew each time."""

    directory: Path
    _devices: dict[Try, str] = field(default_factory=dict)  # once they are known

    def seen(self, found: Snapshot, most: int | None = None) -> Snapshot:
        """The snapshot with what is in flight as it says itself.

        Only of the `most` that are nearest to their end, or beyond it. Nothing changes of a run
        whose attempts lie elsewhere.
        """
        if not (self.directory / "eval").is_dir():
            return found
        flying = [row for row in found.devices if row.doing != "idle"]
        if most is not None and len(flying) > most:
            flying = nlargest(most, flying, key=lambda row: row.share)
        known = {(row.place, row.attempt) for row in flying}
        self._devices = {one: name for one, name in self._devices.items() if one in known}
        said = {row.slot: self._said(row) for row in flying}
        rows = tuple(said.get(row.slot, row) for row in found.devices)
        return found.model_copy(update={"devices": rows})

    def _said(self, row: DeviceRow) -> DeviceRow:
        device = self._device((row.place, row.attempt))
        if device is None:
            return replace(row, doing="starting")
        beat = with_progress(heartbeat(self.directory / "eval" / row.place), row)
        return replace(row, device=device or row.device, **beat._asdict())

    def _device(self, attempt: Try) -> str | None:
        """None: nobody has taken the attempt on."""
        if attempt not in self._devices:
            said = _end_of(self.directory / "eval" / attempt[0] / STARTED)
            started = next(objects(reversed(said.split(b"\n"))), None)
            if started is None:
                return None
            named = started.get("device")
            self._devices[attempt] = named[:MOST_NAME] if isinstance(named, str) else ""
        return self._devices[attempt]


def with_progress(beat: Beat, row: DeviceRow) -> Beat:
    """The same; where it says no share but a step, that of the steps that others took."""
    if beat.progress is None and beat.step is not None and row.expected_steps:
        return beat._replace(progress=min(1.0, max(0.0, beat.step / row.expected_steps)))
    return beat


def heartbeat(place: Path) -> Beat:
    """What the heartbeats of the attempt in that directory have told of last."""
    found: dict[str, float] = {}
    whole = _end_of(place / METRICS).split(b"\n")[:-1]
    for said in objects(reversed(whole)):
        for name in Beat._fields:
            if name not in found and (number := finite(said.get(name))) is not None:
                found[name] = number
    beat = NO_BEAT._replace(**found)
    return beat if 0 <= (beat.progress or 0) <= 1 else beat._replace(progress=None)


def finite(value: object) -> float | None:
    """The number, if it is one."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value) if math.isfinite(value) else None


def objects(lines: Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """JSON objects, one a line; a line that is torn, or anything else, is passed over."""
    for line in lines:
        try:
            found = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _end_of(path: Path) -> bytes:
    """The last bytes of a plain file; none of anything else."""
    try:
        with plain_file(path) as handle:
            size = os.fstat(handle).st_size
            return os.pread(handle, READ_BYTES, max(0, size - READ_BYTES))
    except (OSError, ValueError):
        return b""
