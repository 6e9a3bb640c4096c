"""Back-pressure's signals as figures: from `backpressure.jsonl`, for the ledger does not hold them.

A line an attempt that was settled, in the ledger's order. It is written after the record, so the
last may be missing for a moment.
"""

import os
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import orjson

from budgets.events import Settled

SIGNALS = "backpressure.jsonl"  # `orchestrator.capacity.backpressure` writes it, with numpy

ACTIONS = {"throttle": -1.0, "hold": 0.0, "increase": 1.0}
REGIMES = {"linear": 0.0, "contended": 1.0, "optimal": 2.0, "retrograde": 3.0}
"""Trackers draw numbers: docs/trackers.md says which is which."""

_PLACE = ("panel", "generation", "candidate", "seed", "attempt")


@dataclass
class Signals:
    """Follows the file as it grows; there may be none."""

    path: Path
    _inode: int = 0
    _read_bytes: int = 0
    _lines: list[bytes] = field(default_factory=list)

    def of(self, number: int, event: Settled) -> dict[str, float]:
        """What was decided when that attempt, the ledger's `number`-th to be settled, was."""
        if number >= len(self._lines):
            self._read_on()
        if number >= len(self._lines):
            return {}
        try:
            said = orjson.loads(self._lines[number])
        except orjson.JSONDecodeError:
            return {}
        is_its = isinstance(said, dict) and all(
            said.get(name) == getattr(event, name) for name in _PLACE
        )
        return _figures(said) if is_its else {}

    def _read_on(self) -> None:
        with suppress(OSError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(self.path, flags), "rb") as file:
                found = os.fstat(file.fileno())
                if found.st_ino != self._inode or found.st_size < self._read_bytes:
                    self._inode, self._read_bytes, self._lines = found.st_ino, 0, []
                file.seek(self._read_bytes)
                whole = file.read().rpartition(b"\n")[0]
            if whole:
                self._lines += whole.split(b"\n")
                self._read_bytes += len(whole) + 1


def _figures(said: dict[str, Any]) -> dict[str, float]:
    numbers = {
        "bp_action": ACTIONS.get(str(said.get("bp_action"))),
        "bp_regime": REGIMES.get(str(said.get("bp_regime"))),
        **{name: said.get(name) for name in ("bp_p_star", "bp_throughput", "bp_allowed")},
    }
    return {name: float(value) for name, value in numbers.items() if isinstance(value, int | float)}
