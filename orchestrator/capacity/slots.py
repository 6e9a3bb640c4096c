"""Slots that several orchestrators of a host share: a counting semaphore of locked files.

A slot is one evaluation in flight. It is taken before the evaluation is reserved and given back
when it is settled; when its orchestrator dies, the kernel gives it back. Nobody waits in a queue:
whoever finds a free slot takes it. So that nobody goes without, an orchestrator that holds slots
leaves a free one to any that holds none, which costs it a look.
"""

import os
import stat
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from budgets.state import RunState
from orchestrator.capacity.host_files import Held
from orchestrator.capacity.pace import Pace
from orchestrator.capacity.peers import Peer, Peers

LOOK_SECONDS = 0.5
"""Between two looks for a slot, on average: each is drawn from half of it to one and a half."""


def default_directory() -> Path:
    """Where the slots of this user are, the same for every process of the host.

    Not the session's runtime directory: that one goes at logout, when runs go on.
    """
    return Path(f"/tmp/cmaes-orchestrator-{os.getuid()}/slots")  # noqa: S108 - checked below


class HostSlots(Pace):
    """A pace: at most `limit` evaluations in flight, of all that share the directory.

    `say` hears once that this one waits, and once of each other limit that a sharer has.
    """

    def __init__(  # noqa: PLR0913 - what is shared, and how time and chance are had
        self,
        limit: int,
        say: Callable[[str], None],
        directory: Path | None = None,
        *,
        rng: Random | None = None,
        sleep: Callable[[float], None] = time.sleep,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.directory = made(default_directory() if directory is None else directory.absolute())
        self._names = [f"slot-{number:04d}" for number in range(limit)]
        self._say = say
        self._rng = rng or Random()  # noqa: S311 - spreads looks, keeps no secret
        self._sleep, self._monotonic = sleep, monotonic
        self._held = Held()
        self._peers = Peers(self.directory, limit, f"{self._rng.getrandbits(48):012x}")
        self._again_at = 0.0
        self._was_refused = self._has_said = False
        self._limits_said: set[int] = set()

    def admits(self, state: RunState) -> bool:
        """Whether a slot is there for one more than is in flight, taken if need be."""
        in_flight = len(state.accounts.holds)
        self._was_refused = len(self._held) <= in_flight and not self._takes_one(in_flight)
        return not self._was_refused

    def look(self, state: RunState) -> None:
        """Give back what nothing in flight needs; wait a moment where all there was is refused."""
        in_flight = len(state.accounts.holds)
        while len(self._held) > in_flight:
            self._held.give_back()
            self._again_at = 0.0  # that one is free, unless somebody needs it more
        if self._was_refused and not in_flight:
            self._sleep(max(0.0, self._again_at - self._monotonic()))
        self._was_refused = False

    def close(self) -> None:
        """Give back everything."""
        while len(self._held):
            self._held.give_back()
        self._peers.leave()

    def _takes_one(self, in_flight: int) -> bool:
        now = self._monotonic()
        if now < self._again_at:
            return False
        others = self._peers.others()
        self._say_other_limits(others)
        gives_way = not self._peers.starving and any(other.starving for other in others)
        if not gives_way and self._take_any():
            self._peers.starving = False
            return True
        self._peers.starving = in_flight == 0
        self._again_at = now + self._rng.uniform(0.5, 1.5) * LOOK_SECONDS
        if in_flight == 0 and not gives_way:
            self._say_that_it_waits(others)
        return False

    def _take_any(self) -> bool:
        """Any one: were it always the first that is free, all would run after the same file."""
        names = self._rng.sample(self._names, len(self._names))
        return any(
            name not in self._held and self._held.take(self.directory, name) for name in names
        )

    def _say_that_it_waits(self, others: list[Peer]) -> None:
        if self._has_said:
            return
        self._has_said = True
        pids = ", ".join(str(other.pid) for other in others)
        whose = f" by other orchestrators of this host (pid {pids})" if others else ""
        self._say(
            f"Waiting for a slot: all {len(self._names)} of {self.directory} are in use{whose}. "
            "This is not charged, and it goes on by itself."
        )

    def _say_other_limits(self, others: list[Peer]) -> None:
        limit = len(self._names)
        for other in others:
            if other.max_concurrent != limit and other.max_concurrent not in self._limits_said:
                self._limits_said.add(other.max_concurrent)
                self._say(
                    f"Warning: the orchestrator with pid {other.pid} shares {self.directory} with "
                    f"backend.max_concurrent {other.max_concurrent}, this one has {limit}: up to "
                    f"{max(limit, other.max_concurrent)} run at once. Give all of them the same."
                )


def made(directory: Path) -> Path:
    """The directory, for this user alone where it has to be made. Raises ValueError, with a way
    out, where it cannot be used."""
    try:
        directory.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        directory.mkdir(mode=0o700, exist_ok=True)
        for part in (directory.parent, directory) if _is_default(directory) else (directory,):
            found = part.lstat()
            if not stat.S_ISDIR(found.st_mode):
                raise ValueError(f"backend.slots_dir: expected a directory, got {part}")
            if _is_default(directory) and found.st_uid != os.getuid():
                raise ValueError(
                    f"{part} belongs to another user: name a directory of your own with "
                    "backend.slots_dir"
                )
    except OSError as error:
        raise ValueError(
            f"backend.slots_dir: cannot use {directory}: {error.strerror}. Name another one"
        ) from error
    return directory


def _is_default(directory: Path) -> bool:
    return directory == default_directory()
