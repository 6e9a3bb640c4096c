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
STEPS = ("step", "steps", "global_step", "iteration", "iter")  # as programs name it
LOSSES = ("loss", "train_loss", "training_loss", "train/loss")
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


def _number(said: dict[str, Any], *names: str) -> float | None:
    """Return the first finite number under one of the names."""
    values = (said.get(name) for name in names)
    numbers = (v for v in values if isinstance(v, int | float) and not isinstance(v, bool))
    return next((float(number) for number in numbers if math.isfinite(number)), None)


def heartbeat(directory: Path, place: str) -> dict[str, Any]:
    """Return what a running attempt reports, as fields of `Slot`."""
    started = list(_objects(directory, f"{place}/{STARTED}", HEARTBEAT_BYTES))
    if not started:
        return {"doing": "starting"}
    beats = list(_objects(directory, f"{place}/{METRICS}", HEARTBEAT_BYTES))
    found: dict[str, Any] = {}
    for name in ("step", "loss", "progress"):
        known = [number for beat in beats if (number := _number(beat, name)) is not None]
        found[name] = known[-1] if known else None
    if not 0 <= (found["progress"] or 0.0) <= 1:
        found["progress"] = None
    device = started[-1].get("device")
    if isinstance(device, str) and device:
        found["device"] = device[:MOST_NAME]
    return found


def scored_by(state: RunState) -> str:
    """Return the key under which a program prints its score; empty where there is none."""
    score = state.plan.objective.settings.get("score")
    line = score.get("line") if isinstance(score, dict) else None
    return line if isinstance(line, str) else ""


def measured_in(state: RunState) -> str:
    """Return the unit or the name of the score."""
    return UNITS.get(state.plan.objective.name) or scored_by(state) or "score"


def curve(directory: Path, state: RunState, place: str) -> Curve | None:
    """Return a loss over the steps of an attempt, if it left one."""
    beats = list(_objects(directory, f"{place}/{METRICS}", CURVE_BYTES))
    for loss in (*LOSSES, scored_by(state)):
        last, points = -math.inf, list[tuple[float, float]]()
        for said in beats:
            step, value = _number(said, *STEPS), _number(said, loss)
            if step is not None and value is not None and step > last:
                last = step
                points.append((step, value))
        if len(points) > 1:
            shown = points[:: -math.ceil(len(points) / CURVE_POINTS)][::-1]  # with the last one
            steps, losses = zip(*shown, strict=True)
            return steps, losses
    return None
