"""A process that takes a slot, says so and stays: `python slot_holder.py DIR LIMIT`."""

import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator import capacity


def flying(count: int) -> Any:
    """A state with so many evaluations in flight."""
    return SimpleNamespace(accounts=SimpleNamespace(holds=range(count)))


if __name__ == "__main__":
    capacity.SLOTS = Path(sys.argv[1])
    slots = capacity.HostSlots(int(sys.argv[2]), lambda _: None)
    assert slots.admits(flying(0))
    sys.stdout.write("held\n")
    sys.stdout.flush()
    sys.stdin.read()
