"""What attempts left in a run's directory: untrusted.

Files are opened from the run's directory step by step, never through a link, and read from their
end up to a bound. What is not a plain file, or not as expected, counts as absent.
"""

import math
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any

import orjson

from budgets.state import RunState
from orchestrator.execution.api import METRICS, STARTED

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

HEARTBEAT_BYTES, CURVE_BYTES = 4096, 16 << 20  # of a file's end
MOST_NAME = 80  # characters of a device's name
CURVE_POINTS = 200
Curve = tuple[tuple[float, ...], tuple[float, ...]]  # steps, and a loss at each
UNITS = {"nanochat": "held-out bits per byte"}  # of an objective's score


def read_end(directory: Path, place: str, most_bytes: int) -> bytes:
    """Return the last bytes of a file, from the start of a line; empty where it cannot be read."""
    step = -1
    try:
        step = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        for part in PurePosixPath(place).parts:
            inner = os.open(part, _FLAGS, dir_fd=step)
            os.close(step)
            step = inner
        found = os.fstat(step)
        if not stat.S_ISREG(found.st_mode):
            return b""
        data = os.pread(step, most_bytes, max(0, found.st_size - most_bytes))
    except OSError:
        return b""
    finally:
        if step >= 0:
            os.close(step)
    return data if found.st_size <= most_bytes else data.partition(b"\n")[2]


def _objects(directory: Path, place: str, most_bytes: int) -> Iterator[dict[str, Any]]:
    """Yield the JSON objects of a file's last lines; other lines are skipped."""
    for line in read_end(directory, place, most_bytes).splitlines():
        try:
            found = orjson.loads(line)
        except ValueError:
            continue
        if isinstance(found, dict):
            yield found


def _number(said: dict[str, Any], name: str) -> float | None:
    """Return the finite number under that name."""
    value = said.get(name)
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def heartbeat(directory: Path, place: str) -> dict[str, Any]:
    """Return what a running attempt reports, as fields of `Slot`."""
    started = list(_objects(directory, f"{place}/{STARTED}", HEARTBEAT_BYTES))
    if not started:
        return {"doing": "starting"}
    found: dict[str, Any] = {"doing": "running"}
    for beat in _objects(directory, f"{place}/{METRICS}", HEARTBEAT_BYTES):
        numbers = {name: _number(beat, name) for name in ("step", "loss", "progress")}
        found |= {name: number for name, number in numbers.items() if number is not None}
    if not 0 <= found.get("progress", 0.0) <= 1:
        del found["progress"]
    device = started[-1].get("device")
    return found | ({"device": device[:MOST_NAME]} if isinstance(device, str) else {})


def scored_by(state: RunState) -> str:
    """Return the key under which a program prints its score; empty where there is none."""
    score = state.plan.objective.settings.get("score")
    return score if isinstance(score, str) else ""


def measured_in(state: RunState) -> str:
    """Return the unit or the name of the score."""
    return UNITS.get(state.plan.objective.name) or scored_by(state) or "score"


def curve(directory: Path, state: RunState, place: str) -> Curve | None:
    """Return a loss over the steps of an attempt, if it left one."""
    beats = list(_objects(directory, f"{place}/{METRICS}", CURVE_BYTES))
    for loss in ("loss", scored_by(state)):
        last, points = -math.inf, list[tuple[float, float]]()
        for said in beats:
            step, value = _number(said, "step"), _number(said, loss)
            if step is not None and value is not None and step > last:
                last = step
                points.append((step, value))
        if len(points) > 1:
            shown = points[:: -math.ceil(len(points) / CURVE_POINTS)][::-1]  # with the last one
            steps, losses = zip(*shown, strict=True)
            return steps, losses
    return None
