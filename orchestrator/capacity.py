"""How many evaluations run at once: all devices, fewer by back-pressure, or shared by runs.

A `Pace` decides only when an evaluation may start. Points and scores do not depend on it.
"""

import fcntl
import os
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from math import inf, sqrt
from pathlib import Path
from statistics import fmean
from typing import IO, Literal, NamedTuple

import orjson

from budgets.events import Event, Reserved, Settled, Status
from budgets.state import RunState

SLOTS = Path(f"/tmp/cmaes-orchestrator-{os.getuid()}-slots")  # noqa: S108 - of every session
LOOK_SECONDS = 0.5  # between two looks for a slot with nothing in flight


class Pace:
    """Decides when an evaluation may start on a free device: always."""

    def admits(self, state: RunState) -> bool:  # noqa: ARG002 - for subclasses
        """Whether one more may be reserved now; asked again at the next look."""
        return True

    def look(self, state: RunState) -> None:
        """Take back what is no longer in flight, after settlements."""


class HostSlots(Pace):
    """At most `limit` evaluations in flight, of all runs of this user on this host.

    A slot is a locked file, taken before the evaluation is reserved and released when it is
    settled; the kernel releases it when the process dies. A run with nothing in flight that finds
    no slot keeps `turn` locked, without which no run takes another slot.
    """

    def __init__(self, limit: int, say: Callable[[str], None]) -> None:
        SLOTS.mkdir(mode=0o700, exist_ok=True)
        if SLOTS.lstat().st_uid != os.getuid():
            raise ValueError(f"backend.max_concurrent: {SLOTS} is another user's")
        self._slots = [(SLOTS / f"slot-{number:04d}").open("ab") for number in range(limit)]
        self._turn, self._say = (SLOTS / "turn").open("ab"), say
        self._held: list[IO[bytes]] = []  # of the slots
        self._waits = False

    def admits(self, state: RunState) -> bool:
        """Whether there is a slot for one more evaluation; takes it."""
        in_flight = len(state.accounts.holds)
        if len(self._held) <= in_flight and _locks(self._turn):
            others = (slot for slot in self._slots if slot not in self._held)
            self._held += islice(filter(_locks, others), 1)
        waited, self._waits = self._waits, in_flight == 0 and not self._held
        if not self._waits:
            fcntl.flock(self._turn, fcntl.LOCK_UN)
        elif not waited:
            self._say(
                f"Waiting for one of {len(self._slots)} slots of {SLOTS}, which other runs use."
            )
        return len(self._held) > in_flight

    def look(self, state: RunState) -> None:
        """Release the slots of settled evaluations; sleep a moment while waiting for one."""
        while len(self._held) > len(state.accounts.holds):
            fcntl.flock(self._held.pop(), fcntl.LOCK_UN)
        if self._waits:
            time.sleep(LOOK_SECONDS)

    def close(self) -> None:
        """Release all slots."""
        for file in (self._turn, *self._slots) if not self._turn.closed else ():
            fcntl.flock(file, fcntl.LOCK_UN)  # also where a forked child shares the open file
            file.close()


def _locks(file: IO[bytes]) -> bool:
    """Lock the file; return False if another run has locked it."""
    with suppress(BlockingIOError):
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return True
    return False


# The law of scalability, and its fit

Regime = Literal["linear", "contended", "optimal", "retrograde"]
NEAR_MOST, NEAR_LINEAR = 0.95, 0.90


def throughput(seconds: Sequence[float], workers: int) -> float:
    """Return evaluations an hour, X = N / R with R the mean time of one (Little's law)."""
    return 3600 * workers / fmean(seconds)


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
        own = self.throughput(workers)
        most = self.throughput(min(self.optimum, 1e12))
        if own >= NEAR_MOST * most:
            return "optimal"
        if workers > self.optimum:
            return "retrograde"
        return "linear" if own >= NEAR_LINEAR * workers * self.one else "contended"

    def recommended(self, most: int) -> int:
        """Return the fewest workers, at most so many, within 5 % of the highest throughput."""
        by_law = [self.throughput(n + 1) for n in range(most)]
        return 1 + next(n for n, own in enumerate(by_law) if own >= NEAR_MOST * max(by_law))


def fit(levels: Mapping[int, float]) -> Law:
    """Return the law fitted to throughputs by their workers: least squares of relative residuals.

    N / X is linear in the coefficients of 1, N - 1 and N (N - 1); sigma, kappa >= 0.
    """
    import numpy as np
    from scipy.optimize import nnls

    workers, measured = np.array(sorted(levels.items()), dtype=float).T
    columns = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)])[: len(levels)]
    found, _ = nnls((columns * measured / workers).T, np.ones_like(workers))
    one, sigma, kappa = (*map(float, found), 0.0, 0.0)[:3]
    one = max(one, float(min(workers / measured)) / 1e4)  # lambda stays finite
    return Law(1 / one, round(sigma / one, 9), round(kappa / one, 9))


# Back-pressure

SIGNALS = "backpressure.jsonl"
FIRST_WORKERS = 2
LEAST_WINDOW = 4  # evaluations before each decision, and at least one a worker
MEMORY = 32  # decisions after which a level is forgotten: the machine may have changed
STABLE = 1.15  # the later half of a window may take longer by this factor


class BackPressure(Pace):
    """Finds the number of evaluations in flight with the highest throughput while a run goes on.

    After each window of evaluations it takes what the fitted law recommends: more than before only
    if evaluations take stably long, and at most twice the most that was measured. While only all
    devices at once are measured, it measures half of them. Each decision adds a line to
    `backpressure.jsonl`; `say` gets every change.
    """

    def __init__(self, devices: int, directory: Path, say: Callable[[str], None]) -> None:
        self.limit = min(FIRST_WORKERS, devices)  # evaluations in flight
        self.devices, self._path, self._say = devices, directory / SIGNALS, say
        self._window: list[float] = []  # seconds of evaluations at the present limit
        self._skipped = 0  # next evaluations that began under the limit before
        self._in_flight = 0  # after the last start
        self._recent: deque[tuple[int, float]] = deque(maxlen=MEMORY)

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self.limit

    def follow(self, state: RunState, event: Event) -> None:
        """Take in a record that was just written."""
        if isinstance(event, Reserved):
            self._in_flight = len(state.accounts.holds)
        elif isinstance(event, Settled) and event.status is Status.OK and not event.recovered:
            self.observe(event.seconds, self._in_flight)

    def observe(self, seconds: float, workers: int) -> None:
        """Take in an evaluation, with so many in flight after the last start; decide by window."""
        if self._skipped:
            self._skipped -= 1
        elif workers == self.limit:
            self._window.append(seconds)
        if len(self._window) >= max(LEAST_WINDOW, self.limit):
            self._decide()

    def _decide(self) -> None:
        window, before = self._window, self.limit
        self._recent.append((before, throughput(window, before)))
        levels, half = dict(self._recent), len(window) // 2
        law = fit(levels)
        is_stable = fmean(window[half:]) <= STABLE * fmean(window[:half])
        most = 2 * max(levels) if is_stable else before
        self.limit = law.recommended(min(most, self.devices))
        if levels.keys() == {self.devices} and self.devices > 1:
            self.limit = self.devices // 2  # fewer may do more
        change = self.limit - before
        self._window, self._skipped = [], before if change else 0
        row = {
            "bp_action": "increase" if change > 0 else "throttle" if change else "hold",
            "bp_regime": law.regime(before),
            "bp_p_star": law.optimum if len(levels) > 2 and law.optimum < inf else None,
            "bp_throughput": levels[before],
            "workers": before,
            "bp_allowed": self.limit,
        }
        with suppress(OSError), self._path.open("ab") as file:  # no run depends on it
            file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        if change:
            self._say(f"Back-pressure: {row['bp_action']} to {self.limit} at once.")
