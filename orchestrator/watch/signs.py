"""What attempts in flight have written into their directories: on which device, how far they are.

Read without a lock, a few KiB of each at most, and believed as little as anything an evaluation
writes: a link, a pipe, or nonsense is no sign.
"""

import math
import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from budgets.accounts import Key
from budgets.state import RunState
from orchestrator.execution.attempts import METRICS, STARTED
from orchestrator.settle import attempt_place
from orchestrator.watch.noted import key_of

READ_BYTES = 4096
"""Of a file, from its end: some heartbeats, and more than one of a screenful of metrics."""

MOST_NAME = 80
"""Characters of a device's name."""


class Beat(NamedTuple):
    """How far an evaluation is, as far as it says."""

    step: float | None
    loss: float | None
    progress: float | None  # 0 to 1


NO_BEAT = Beat(None, None, None)


class Sign(NamedTuple):
    """What one attempt says of itself."""

    has_begun: bool = False  # somebody supervises it
    device: str = ""  # as outcomes name it
    step: float | None = None
    loss: float | None = None
    progress: float | None = None  # 0 to 1


@dataclass
class Signs:
    """Of the attempts in flight of the run in `directory`, read anew at each look."""

    directory: Path
    _devices: dict[tuple[Key, int], str] = field(default_factory=dict)  # once they are known

    def look(self, state: RunState, most: int | None = None) -> dict[Key, Sign]:
        """Those of all attempts in flight; heartbeats only of the `most` that began first.

        Nothing of a run whose attempts lie elsewhere.
        """
        places = self.directory / "eval"
        flying = [attempt.reserved for attempt in state.open_tries()] if places.is_dir() else []
        known = {(key_of(one), one.attempt) for one in flying}
        self._devices = {key: name for key, name in self._devices.items() if key in known}
        found = {}
        for number, reserved in enumerate(flying):
            key, place = key_of(reserved), places / attempt_place(reserved)
            device = self._device((key, reserved.attempt), place)
            is_read = device is not None and (most is None or number < most)
            beat = heartbeat(place) if is_read else NO_BEAT
            found[key] = Sign(device is not None, device or "", *beat)
        return found

    def _device(self, attempt: tuple[Key, int], place: Path) -> str | None:
        """None: nobody has taken the attempt on."""
        if attempt not in self._devices:
            started = next(_objects(_end_of(place / STARTED) + b"\n"), None)
            if started is None:
                return None
            named = started.get("device")
            self._devices[attempt] = named[:MOST_NAME] if isinstance(named, str) else ""
        return self._devices[attempt]


def heartbeat(place: Path) -> Beat:
    """What the heartbeats of the attempt in that directory have told of last."""
    found: dict[str, float] = {}
    for said in _objects(_end_of(place / METRICS)):
        for name in Beat._fields:
            value = said.get(name)
            if name not in found and isinstance(value, float | int) and math.isfinite(value):
                found[name] = float(value)
    beat = NO_BEAT._replace(**found)
    return beat if 0 <= (beat.progress or 0) <= 1 else beat._replace(progress=None)


def _objects(data: bytes) -> Iterator[dict[str, Any]]:
    """JSON objects on whole lines, the last one first; what is none is passed over."""
    for line in reversed(data.split(b"\n")[:-1]):
        try:
            found = orjson.loads(line)
        except orjson.JSONDecodeError:
            continue
        if isinstance(found, dict):
            yield found


def _end_of(path: Path) -> bytes:
    """The last bytes of a plain file; none of anything else."""
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            return b""
        return os.pread(handle, READ_BYTES, max(0, found.st_size - READ_BYTES))
    except OSError:
        return b""
    finally:
        os.close(handle)
