"""How many evaluations run at once: measured, controlled, and shared on a host.

A `Pace` decides only when an evaluation may start. Points and scores do not depend on it.
"""

import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from budgets.events import Event, Key, Reserved, Settled, Status
from budgets.ledger import Record
from budgets.state import RunState, apply, begin
from budgets.storage import write_aside
from orchestrator.execution.api import EngineError
from orchestrator.scalability import Controller, Observation

SIGNALS = "backpressure.jsonl"


@dataclass(frozen=True)
class Pacing:
    """How many evaluations run at once, where it is not simply one a device."""

    max_concurrent: int | None = None  # of all orchestrators that share the slots
    slots_dir: Path | None = None  # None: this user's, on this host
    backpressure: tuple[int, float] | None = None  # window and tolerance of the controller


class Pace:
    """When an evaluation may start although a device is free: always, of a run by itself."""

    def admits(self, state: RunState) -> bool:  # noqa: ARG002 - others need it
        """Whether one more may be reserved now. If not, the next look asks again."""
        return True

    def look(self, state: RunState) -> None:
        """After settlements: take back what was admitted and is not in flight.

        May wait a moment where nothing is in flight because nothing was admitted.
        """


class AtMost(Pace):
    """So many evaluations in flight, and no more. Raises ValueError below one."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"expected at least one evaluation at a time, got {limit}")
        self._limit = limit

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._limit


class Together(Pace):
    """What every one of several paces admits, asked in their order until one does not."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self._paces = tuple(paces)

    def admits(self, state: RunState) -> bool:
        return all(pace.admits(state) for pace in self._paces)

    def look(self, state: RunState) -> None:
        for pace in self._paces:
            pace.look(state)


class Controlled(Pace):
    """A pace that admits as many evaluations as the controller allows at the moment.

    `replay` the records there are, then `follow` every one that is written: it knows nothing else,
    so a resumed run goes on with the number that it had. Each settlement is a line in
    `backpressure.jsonl`; `say` hears of changes.
    """

    def __init__(self, controller: Controller, directory: Path, say: Callable[[str], None]) -> None:
        self._controller = controller
        self._path, self._say = directory / SIGNALS, say
        self._now_ms = self._flown_ms = 0.0  # open so far; by all evaluations of this session
        self._begun: dict[Key, tuple[float, float]] = {}  # both, when each in flight began

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._controller.decision.bp_allowed

    def replay(self, records: Iterable[Record]) -> None:
        """Take in a ledger from its first record on, and write its signals again."""
        first, *others = records
        state, lines = begin(first), list[bytes]()
        for record in others:
            apply(state, record)
            lines.append(self._line(state, record.event))
        write_aside(self._path, b"".join(lines), durable=False)
        allowed = self._controller.decision.bp_allowed
        self._say(f"Back-pressure: {allowed} at once to begin with.")

    def follow(self, state: RunState, event: Event) -> None:
        """Take in a record that was just written."""
        if not (line := self._line(state, event)):
            return
        with suppress(OSError), self._path.open("ab") as file:  # the next session mends it
            file.write(line)
        decision = self._controller.decision
        if decision.bp_action != "hold":
            self._say(
                f"Back-pressure: {decision.bp_action} to {decision.bp_allowed} at once "
                f"({decision.bp_regime}, {decision.bp_throughput:.3g} evaluations an hour before)."
            )

    def _line(self, state: RunState, event: Event) -> bytes:
        """What a settlement and the decision after it are in the file; nothing of other events."""
        passed_ms = state.accounts.wall_ms - self._now_ms
        self._flown_ms += len(self._begun) * passed_ms
        self._now_ms += passed_ms
        if isinstance(event, Reserved):
            self._begun[event.key] = self._now_ms, self._flown_ms
        if not isinstance(event, Settled):
            return b""
        began_ms, flown_ms = self._begun.pop(event.key, (self._now_ms, 0.0))
        lasted_ms = self._now_ms - began_ms  # 0 of one that another session began
        workers = (self._flown_ms - flown_ms) / lasted_ms if lasted_ms else None
        if workers is not None and event.status is Status.OK and not event.recovered:
            self._controller.observe(Observation(began_ms, self._now_ms, workers))
        else:
            self._controller.hold()
        row = {
            "evaluation": event.key,
            "attempt": event.attempt,
            "status": event.status,
            "seconds": lasted_ms / 1000,
            "workers": workers,
            **asdict(self._controller.decision),
        }
        return orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE)


# Slots that the orchestrators of a host share

LOOK_SECONDS = 0.5  # between two looks for a slot of one that has nothing in flight
WAITING = "waiting"


def default_directory() -> Path:
    """Where the slots of this user are, the same for every process of the host.

    Not the session's runtime directory: that one goes at logout, when runs go on.
    """
    return Path(f"/tmp/cmaes-orchestrator-{os.getuid()}-slots")  # noqa: S108 - checked below


class HostSlots(Pace):
    """At most `limit` evaluations in flight, of all orchestrators that share the directory.

    A slot is a locked file, taken before the evaluation is reserved and given back when it is
    settled; the kernel frees it when its orchestrator dies. Who has nothing in flight and finds no
    slot shares a lock on `waiting`: until all of those have one, nobody takes one more. `say` hears
    once that this orchestrator waits.
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
        """Whether a slot is there for one more than is in flight, taken if need be."""
        in_flight = len(state.accounts.holds)
        if len(self._held) > in_flight or self._takes_one():
            self._stop_waiting()
            return True
        if in_flight == 0 and self._waiting is None:
            self._waiting = self._locked(WAITING, fcntl.LOCK_SH)
            if not self._has_said:
                self._say(
                    f"Waiting for a slot: all {len(self._names)} of {self._directory} are in use "
                    "by other orchestrators of this host. Waiting is not charged."
                )
                self._has_said = True
        return False

    def look(self, state: RunState) -> None:
        """Give back what nothing in flight needs; sleep a moment where nothing is."""
        in_flight = len(state.accounts.holds)
        while len(self._held) > in_flight:
            _release(self._held.popitem()[1])
        if self._waiting is not None and in_flight == 0:
            self._sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Give back everything."""
        self._stop_waiting()
        while self._held:
            _release(self._held.popitem()[1])

    def _takes_one(self) -> bool:
        if self._waiting is None:
            nobody_waits = self._locked(WAITING, fcntl.LOCK_EX)
            if nobody_waits is None:
                return False
            _release(nobody_waits)
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
        """A descriptor of the file with that lock, closed on exec; None if it is refused."""
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
    """The directory for slots, made if it is not there. Raises ValueError with a way out."""
    path = default_directory() if directory is None else directory.absolute()
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
