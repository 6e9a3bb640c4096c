"""A process that takes one slot at a time: `python slot_holder.py DIR LIMIT ROUNDS`.

It prints a line for each round, `BEGAN ENDED` in nanoseconds of the clock that all processes share.
With no rounds it takes a slot, says so and stays.
"""

import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.capacity import HostSlots


def flying(count: int) -> Any:
    """A state with so many evaluations in flight."""
    return SimpleNamespace(accounts=SimpleNamespace(holds=range(count)))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def main() -> None:
    directory, limit, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    slots = HostSlots(limit, lambda _: None, directory, lambda _: time.sleep(0.01))
    for number in range(rounds or 1):
        while not slots.admits(flying(0)):
            slots.look(flying(0))
        began = time.monotonic_ns()
        if not rounds:
            say("held")
            sys.stdin.read()
        time.sleep(0.02)
        say(f"{began} {time.monotonic_ns()} {number}")
        slots.look(flying(0))
    slots.close()


if __name__ == "__main__":
    main()
