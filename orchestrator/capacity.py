"""How many evaluations run at once: fixed, controlled, or shared with other runs of the host.

A `Pace` decides only when an evaluation may start. Points and scores do not depend on it.
"""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from budgets.events import Event, Key, Reserved, Settled, Status
from budgets.state import RunState
from orchestrator.execution.api import EngineError
from orchestrator.scalability import Controller, Observation

SIGNALS = "backpressure.jsonl"


@dataclass(frozen=True)
class Pacing:
    """What limits a session's evaluations besides its devices."""

    max_concurrent: int | None = None  # of all runs that share the slots
    slots_dir: Path | None = None  # None: this user's on this host
    backpressure: bool = False  # run fewer evaluations at once while more would do less


class Pace:
    """Decides when an evaluation may start on a free device: always."""

    def admits(self, state: RunState) -> bool:  # noqa: ARG002 - for subclasses
        """Whether one more may be reserved now; asked again at the next look."""
        return True

    def look(self, state: RunState) -> None:
        """Take back what is no longer in flight, after settlements.

        May sleep a moment if nothing is in flight because nothing was admitted.
        """


class AtMost(Pace):
    """At most `limit` evaluations in flight."""

    def __init__(self, limit: int) -> None:
        self._limit = limit

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._limit


class Together(Pace):
    """Admits what all of several paces admit, asked in their order."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self._paces = tuple(paces)

    def admits(self, state: RunState) -> bool:
        return all(pace.admits(state) for pace in self._paces)

    def look(self, state: RunState) -> None:
        for pace in self._paces:
            pace.look(state)


class Controlled(Pace):
    """Admits as many evaluations as the controller allows at the moment.

    `follow` every record of the session: each settlement adds a line to `backpressure.jsonl`, and
    `say` gets every change.
    """

    def __init__(self, controller: Controller, directory: Path, say: Callable[[str], None]) -> None:
        self._controller = controller
        self._path, self._say = directory / SIGNALS, say
        self._now_ms = self._flown_ms = 0.0  # time of the run; total of its evaluations in flight
        self._begun: dict[Key, tuple[float, float]] = {}  # both, when each in flight began
        say(f"Back-pressure: {controller.decision.bp_allowed} at once to begin with.")

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._controller.decision.bp_allowed

    def follow(self, state: RunState, event: Event) -> None:
        """Take in a record that was just written."""
        passed_ms = state.accounts.wall_ms - self._now_ms
        self._flown_ms += len(self._begun) * passed_ms
        self._now_ms += passed_ms
        if isinstance(event, Reserved):
            self._begun[event.key] = self._now_ms, self._flown_ms
        elif isinstance(event, Settled) and event.key in self._begun:  # began in this session
            self._settle(event)

    def _settle(self, event: Settled) -> None:
        began_ms, flown_ms = self._begun.pop(event.key)
        lasted_ms = self._now_ms - began_ms
        workers = (self._flown_ms - flown_ms) / lasted_ms if lasted_ms else 0.0
        if lasted_ms and event.status is Status.OK:
            decision = self._controller.observe(Observation(began_ms, self._now_ms, workers))
        else:
            decision = self._controller.hold()
        row = {
            "evaluation": event.key,
            "attempt": event.attempt,
            "status": event.status,
            "seconds": lasted_ms / 1000,
            "workers": workers,
            **asdict(decision),
        }
        with suppress(OSError), self._path.open("ab") as file:  # no run depends on it
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if decision.bp_action != "hold":
            self._say(
                f"Back-pressure: {decision.bp_action} to {decision.bp_allowed} at once "
                f"({decision.bp_regime}, {decision.bp_throughput:.3g} evaluations an hour before)."
            )


# Slots that the runs of a host share

LOOK_SECONDS = 0.5  # between two looks for a slot with nothing in flight
WAITING = "waiting"


class HostSlots(Pace):
    """At most `limit` evaluations in flight, of all runs that share the directory.

    A slot is a locked file, taken before the evaluation is reserved and released when it is
    settled; the kernel releases it when the process dies. A run with nothing in flight that finds
    no slot holds a shared lock on `waiting`: meanwhile no other run takes another slot.
    """

    def __init__(
        self,
        limit: int,
        say: Callable[[str], None],
        directory: Path | None = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._directory = _usable(directory)
        self._names = [f"slot-{number:04d}" for number in range(limit)]
        self._say, self._sleep, self._has_said = say, sleep, False
        self._held: dict[str, int] = {}  # descriptors of locked files, by name
        self._waiting: int | None = None  # that of the shared lock

    def admits(self, state: RunState) -> bool:
        """Whether there is a slot for one more evaluation; takes it."""
        in_flight = len(state.accounts.holds)
        if len(self._held) > in_flight or self._takes_one():
            self._stop_waiting()
            return True
        if in_flight == 0 and self._waiting is None:
            self._waiting = self._locked(WAITING, fcntl.LOCK_SH)
            if not self._has_said:
                self._say(
                    f"Waiting for a slot: all {len(self._names)} of {self._directory} are in use "
                    "by other runs of this host. Waiting is not charged."
                )
                self._has_said = True
        return False

    def look(self, state: RunState) -> None:
        """Release the slots of settled evaluations; sleep a moment while waiting for one."""
        in_flight = len(state.accounts.holds)
        while len(self._held) > in_flight:
            _release(self._held.popitem()[1])
        if self._waiting is not None and in_flight == 0:
            self._sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Release all slots."""
        self._stop_waiting()
        while self._held:
            _release(self._held.popitem()[1])

    def _takes_one(self) -> bool:
        if self._waiting is None:
            none_waits = self._locked(WAITING, fcntl.LOCK_EX)
            if none_waits is None:
                return False
            _release(none_waits)
        for name in self._names:
            if name not in self._held and (slot := self._locked(name, fcntl.LOCK_EX)) is not None:
                self._held[name] = slot
                return True
        return False

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            _release(self._waiting)
            self._waiting = None

    def _locked(self, name: str, kind: int) -> int | None:
        """Return a descriptor of the locked file; None if another process holds the lock."""
        path = self._directory / name
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise EngineError(
                f"cannot use the slots in {self._directory}: {error.strerror}. Repeat the command, "
                "or name another directory with backend.slots_dir"
            ) from error
        try:
            fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return None
        return descriptor


def _release(descriptor: int) -> None:
    """Unlock, also where a forked child shares the open file."""
    fcntl.flock(descriptor, fcntl.LOCK_UN)
    os.close(descriptor)


def _usable(directory: Path | None) -> Path:
    """Return the directory for slots, created if missing. Raises ValueError if it cannot be used.

    The default is the same for every process of the user and survives a logout.
    """
    path = directory or Path(f"/tmp/cmaes-orchestrator-{os.getuid()}-slots")  # noqa: S108
    path = path.absolute()
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
        found = path.lstat()
    except OSError as error:
        raise ValueError(
            f"backend.slots_dir: cannot use {path}: {error.strerror}. Name another one"
        ) from error
    is_own = directory is not None or found.st_uid == os.getuid()  # anybody may write to /tmp
    if not stat.S_ISDIR(found.st_mode) or not is_own:
        raise ValueError(f"backend.slots_dir: expected a directory of your own, got {path}")
    return path
