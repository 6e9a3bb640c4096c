"""How many evaluations run at once: fixed, found by back-pressure, or shared by runs of the host.

A `Pace` decides only when an evaluation may start. Points and scores do not depend on it.
"""

import fcntl
import os
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from math import inf, sqrt
from pathlib import Path
from statistics import fmean, stdev
from typing import IO, Literal, NamedTuple

import orjson

from budgets.events import Event, Key, Reserved, Settled, Status
from budgets.state import RunState


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


@dataclass
class AtMost(Pace):
    """At most `limit` evaluations in flight."""

    limit: int

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self.limit


@dataclass
class Together(Pace):
    """Admits what all of several paces admit, asked in their order."""

    paces: Sequence[Pace]

    def admits(self, state: RunState) -> bool:
        return all(pace.admits(state) for pace in self.paces)

    def look(self, state: RunState) -> None:
        for pace in self.paces:
            pace.look(state)


# Slots that the runs of a host share

LOOK_SECONDS = 0.5  # between two looks for a slot with nothing in flight


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
        """Raises ValueError where the directory cannot be used."""
        own = Path(f"/tmp/cmaes-orchestrator-{os.getuid()}-slots")  # noqa: S108 - of every session
        self._directory = directory or own
        try:
            self._directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ValueError(
                f"backend.slots_dir: cannot use {self._directory}: {error.strerror}"
            ) from error
        if directory is None and own.lstat().st_uid != os.getuid():
            raise ValueError(f"backend.slots_dir: {own} is another user's: name another directory")
        self._limit, self._say, self._sleep = limit, say, sleep
        self._held: dict[int, IO[bytes]] = {}  # locked files by the slot's number
        self._waiting: IO[bytes] | None = None

    def admits(self, state: RunState) -> bool:
        """Whether there is a slot for one more evaluation; takes it."""
        in_flight = len(state.accounts.holds)
        if len(self._held) > in_flight or self._takes_one():
            _release(self._waiting)
            self._waiting = None
            return True
        if in_flight == 0 and self._waiting is None:
            self._waiting = self._locked("waiting", fcntl.LOCK_SH)
            self._say(f"Waiting: other runs use all {self._limit} slots of {self._directory}.")
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
        for file in (self._waiting, *self._held.values()):
            _release(file)
        self._waiting, self._held = None, {}

    def _takes_one(self) -> bool:
        if self._waiting is None:
            if (none_waits := self._locked("waiting")) is None:
                return False
            _release(none_waits)
        for number in set(range(self._limit)) - self._held.keys():
            if (slot := self._locked(f"slot-{number:04d}")) is not None:
                self._held[number] = slot
                return True
        return False

    def _locked(self, name: str, kind: int = fcntl.LOCK_EX) -> IO[bytes] | None:
        """Return the locked file; None if another process holds the lock."""
        file = (self._directory / name).open("ab")
        try:
            fcntl.flock(file, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            file.close()
            return None
        return file


def _release(file: IO[bytes] | None) -> None:
    """Unlock, also where a forked child shares the open file."""
    if file is not None:
        fcntl.flock(file, fcntl.LOCK_UN)
        file.close()


# The law of scalability, and its fit

Regime = Literal["linear", "contended", "optimal", "retrograde"]
NEAR_MOST, NEAR_LINEAR = 0.95, 0.90
LEAST_NOISE = 0.02  # relative; a smaller difference in throughput counts as noise


class Law(NamedTuple):
    """X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), evaluations an hour on N workers.

    [Gunther, A General Theory of Computational Scalability Based on Rational Functions, 2008]
    """

    one: float  # lambda > 0: the throughput of one worker alone
    contention: float  # sigma >= 0: the share of the work that waits for a shared resource
    coherency: float  # kappa >= 0: the cost of each pair of workers

    def throughput(self, workers: float) -> float:
        """Return X(N) for N >= 1 workers."""
        others = workers - 1
        load = 1 + self.contention * others + self.coherency * workers * others
        return self.one * workers / load

    @property
    def optimum(self) -> float:
        """N* = sqrt((1 - sigma) / kappa), at least 1; infinite without a maximum."""
        if self.contention >= 1:
            return 1.0
        return max(1.0, sqrt((1 - self.contention) / self.coherency)) if self.coherency else inf

    def regime(self, workers: float) -> Regime:
        """Return the first of optimal, retrograde and linear that holds; otherwise contended."""
        limit = self.one / self.contention if self.contention else inf
        most = self.throughput(self.optimum) if self.optimum < inf else limit
        own = self.throughput(workers)
        if own >= NEAR_MOST * most:
            return "optimal"
        if workers > self.optimum:
            return "retrograde"
        return "linear" if own >= NEAR_LINEAR * workers * self.one else "contended"


class Level(NamedTuple):
    """The measured throughput of a number of workers."""

    workers: int
    throughput: float  # evaluations an hour
    noise: float = 0.0  # its relative standard error


@dataclass(frozen=True, slots=True)
class Fit:
    """The law fitted to measured levels, which are in the order of their workers."""

    levels: tuple[Level, ...]
    law: Law
    residual: float  # root mean square, relative

    @property
    def optimum(self) -> float | None:
        """N*; None without a maximum, or with fewer than three levels."""
        return self.law.optimum if len(self.levels) > 2 and self.law.optimum < inf else None

    @property
    def noise(self) -> float:
        """The relative difference below which two throughputs count as equal."""
        measured = sqrt(2 * fmean(level.noise**2 for level in self.levels))
        return min(0.5, max(LEAST_NOISE, measured, self.residual))

    def recommended(self, most: int) -> int:
        """Return the fewest workers with the highest throughput, within the noise.

        Never more than `most`, or than were measured.
        """
        by_law = [self.law.throughput(n + 1) for n in range(min(most, self.levels[-1].workers))]
        enough = (1 - self.noise) * max(by_law)
        return 1 + next(n for n, throughput in enumerate(by_law) if throughput >= enough)


def fit(levels: Iterable[Level]) -> Fit:
    """Return the law fitted by least squares of relative residuals, with sigma, kappa >= 0.

    N / X is linear in the coefficients of 1, N - 1 and N (N - 1).
    """
    import numpy as np
    from scipy.optimize import nnls

    found = tuple(sorted(levels))
    workers, measured, _ = np.array(found).T
    columns = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    columns *= (measured / workers)[:, None]
    known = min(3, len(found))  # one coefficient a level
    coefficients = np.zeros(3)
    coefficients[0] = min(workers / measured) / 1e4  # lambda stays finite
    coefficients[:known] += nnls(columns[:, :known], 1 - columns[:, 0] * coefficients[0])[0]
    sigma, kappa = (float(own) for own in coefficients[1:] / coefficients[0])
    law = Law(1 / float(coefficients[0]), sigma, kappa if kappa > 1e-9 else 0.0)  # rounding
    residuals = [law.throughput(level.workers) / level.throughput - 1 for level in found]
    return Fit(found, law, sqrt(fmean(residual**2 for residual in residuals)))


# Back-pressure

SIGNALS = "backpressure.jsonl"
FIRST_WORKERS = 2
LEAST_WINDOW = 4  # evaluations before each decision, and at least one a worker
MOST_WINDOWS = 8  # of the present number of workers, that its throughput is measured on
MEMORY = 32  # decisions after which a level is forgotten: the machine may have changed
STABLE = 0.1  # relative: evaluations that become slower by more are not stable


def throughput_of(seconds: Sequence[float], workers: int) -> Level:
    """Return X = N / R, with R the mean time of an evaluation (Little's law)."""
    mean = fmean(seconds)
    return Level(workers, 3600 * workers / mean, stdev(seconds) / sqrt(len(seconds)) / mean)


@dataclass(frozen=True, slots=True)
class Decision:
    """How many evaluations may be in flight from now on, and the figures behind it."""

    bp_action: Literal["increase", "hold", "throttle"]
    bp_regime: Regime | None  # None: nothing is measured yet
    bp_p_star: float | None  # the optimum; None if unknown or infinite
    bp_throughput: float | None  # evaluations an hour, as last measured
    bp_allowed: int


class Controller:
    """Finds the number of workers with the highest throughput while a run goes on.

    After each window of evaluations it takes what the fitted law recommends. Where that is the most
    that was measured, and evaluations take stably long, twice as many follow.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self.decision = Decision("hold", None, None, None, min(FIRST_WORKERS, devices))
        self._window: list[float] = []  # seconds of evaluations at the present number of workers
        self._new = 0
        self._recent: deque[Level] = deque(maxlen=MEMORY)

    def observe(self, seconds: float, workers: float) -> Decision:
        """Return the decision after one more evaluation, with so many in flight in the mean."""
        allowed = self.decision.bp_allowed
        self.decision = replace(self.decision, bp_action="hold")
        if abs(workers - allowed) < 0.5:
            self._window.append(seconds)
            self._new += 1
        enough = max(LEAST_WINDOW, allowed)
        if self._new >= enough:
            self._window, self._new = self._window[-MOST_WINDOWS * enough :], 0
            self.decision = self._decide(allowed)
            if self.decision.bp_allowed != allowed:
                self._window = []
        return self.decision

    def _decide(self, allowed: int) -> Decision:
        here = throughput_of(self._window, allowed)
        self._recent.append(here)
        fitted = fit({level.workers: level for level in self._recent}.values())
        wanted, most = fitted.recommended(self._devices), fitted.levels[-1].workers
        if wanted == most and most < self._devices:
            wanted = min(self._devices, 2 * most) if self._is_stable() else allowed
        elif len(fitted.levels) == 1 and allowed > 1:  # on all devices: fewer may do more
            wanted = allowed // 2
        return Decision(
            "increase" if wanted > allowed else "throttle" if wanted < allowed else "hold",
            bp_regime=fitted.law.regime(allowed),
            bp_p_star=fitted.optimum,
            bp_throughput=here.throughput,
            bp_allowed=wanted,
        )

    def _is_stable(self) -> bool:
        """Whether the later half of the window was as fast as the earlier, within the noise."""
        middle = len(self._window) // 2
        earlier, later = (
            throughput_of(part, 1) for part in (self._window[:middle], self._window[middle:])
        )
        margin = max(STABLE, 2 * sqrt(earlier.noise**2 + later.noise**2))
        return earlier.throughput <= later.throughput * (1 + margin)


class Controlled(AtMost):
    """Admits the number of evaluations that the controller allows at the moment.

    `follow` every record of the session: each evaluation with a score adds a line to
    `backpressure.jsonl`, and `say` gets every change.
    """

    def __init__(self, devices: int, directory: Path, say: Callable[[str], None]) -> None:
        self._controller = Controller(devices)
        super().__init__(self._controller.decision.bp_allowed)
        self._path, self._say = directory / SIGNALS, say
        self._now_ms = self._flown_ms = 0.0  # time of the run; total of its evaluations in flight
        self._begun: dict[Key, tuple[float, float]] = {}  # both, when each in flight began

    def follow(self, state: RunState, event: Event) -> None:
        """Take in a record that was just written."""
        passed_ms = state.accounts.wall_ms - self._now_ms
        self._flown_ms += len(self._begun) * passed_ms
        self._now_ms += passed_ms
        if isinstance(event, Reserved):
            self._begun[event.key] = self._now_ms, self._flown_ms
        elif isinstance(event, Settled) and event.key in self._begun:  # began in this session
            began_ms, flown_ms = self._begun.pop(event.key)
            lasted_ms = self._now_ms - began_ms
            if lasted_ms and event.status is Status.OK:
                self._decide(lasted_ms / 1000, (self._flown_ms - flown_ms) / lasted_ms)

    def _decide(self, seconds: float, workers: float) -> None:
        decision = self._controller.observe(seconds, workers)
        self.limit = decision.bp_allowed
        row = {"seconds": seconds, "workers": workers, **asdict(decision)}
        with suppress(OSError), self._path.open("ab") as file:  # no run depends on it
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if decision.bp_action != "hold":
            self._say(
                f"Back-pressure: {decision.bp_action} to {decision.bp_allowed} at once "
                f"({decision.bp_regime}, {decision.bp_throughput:.3g} evaluations an hour before)."
            )
