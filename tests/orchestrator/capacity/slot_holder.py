"""A process that takes slots: `python slot_holder.py DIR LIMIT ROUNDS MODE`.

With mode `rounds` it prints a line for each round, `BEGAN ENDED` in nanoseconds of the clock that
all processes share. With `hold` it takes one slot, says so and stays; with `fork` it forks a child
first, which stays as well.
"""

import os
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from orchestrator.capacity.slots import HostSlots


def flying(count: int) -> Any:
    """A state with so many evaluations in flight."""
    return SimpleNamespace(accounts=SimpleNamespace(holds=dict.fromkeys(range(count))))


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def say_aside(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> None:
    directory, limit, rounds = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
    mode = sys.argv[4]
    slots = HostSlots(limit, say_aside, directory)
    for _ in range(rounds):
        while not slots.admits(flying(0)):
            slots.look(flying(0))
        began = time.monotonic_ns()
        if mode != "rounds" and (mode == "hold" or os.fork() == 0):
            say("held")  # of the two after a fork the child, so that it is on its way
        if mode != "rounds":
            time.sleep(60)
            os._exit(0)
        time.sleep(0.02)
        say(f"{began} {time.monotonic_ns()}")
        slots.look(flying(0))
    slots.close()


main()
