"""How long a search takes with its generations' barriers: simulated, evaluation by evaluation.

Each simulated run believes another resample of the calibration's evaluations, and draws its own
from that one's smoothed distribution: what is spread between runs has the calibration's own
uncertainty in it. (B. Efron, "Bootstrap methods: another look at the jackknife", Annals of
Statistics 7 (1979) 1-26; the smoothing keeps the variance: B. W. Silverman, G. A. Young, "The
bootstrap: to smooth or not to smooth?", Biometrika 74 (1987) 469-479.)
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from budgets.plan import Calibration
from orchestrator.planning.forecast import Stages
from orchestrator.planning.overheads import Overheads

Array = NDArray[np.float64]

RUNS = 400

SEED = 20_247
"""Of the simulated runs: the same plan has the same figures."""


@dataclass(frozen=True)
class Simulated:
    """What each of so many simulated runs of one plan took, in seconds: arrays of (runs,)."""

    over: Array  # until the verdict, from the command's start on
    searched: Array  # ... the last generation's end
    longer: Array  # the long run after it
    busy: Array  # of all devices together, without the long run
    devices: int

    @property
    def runs(self) -> int:
        return len(self.over)

    def hours(self, share: float) -> float:
        return _hours(self.over, share)

    def search_hours(self, share: float) -> float:
        return _hours(self.searched, share)

    def long_run_hours(self, share: float) -> float:
        return _hours(self.longer, share)

    def device_hours(self, share: float) -> float:
        return _hours(self.busy, share)

    def idle_share(self) -> float:
        return float(1 - self.busy.sum() / (self.devices * self.over.sum()))


def _hours(seconds: Array, share: float) -> float:
    return float(np.quantile(seconds, share)) / 3600


def simulate(  # noqa: PLR0913, PLR0917 - the last two for tests of it
    todo: Stages,
    calibration: Calibration,
    overheads: Overheads,
    count: int,
    rng: np.random.Generator | None = None,
    runs: int = RUNS,
) -> Simulated:
    """So many runs of these stages on `count` devices, drawn from the calibration's evaluations.

    A failed one is evaluated once more, as often as the calibration's failures make it: that is,
    each run draws from what the calibration leaves possible (Jeffreys' prior).
    """
    rng = np.random.default_rng(SEED) if rng is None else rng
    evaluations = _Evaluations(calibration, rng, runs)
    devices = _Devices(runs, count, overheads)
    reference = _Filling(evaluations.draw(todo.reference))
    for number, generation in enumerate(todo.generations):
        devices.wait(overheads.generation_seconds if number else 0.0)
        devices.work(evaluations.draw(generation))
        devices.fill(reference)
    devices.wait()
    searched = devices.now.copy()
    devices.fill(reference, to_the_end=True)
    for panel in (todo.finalists, todo.winner):
        devices.work(evaluations.draw(panel))
        devices.wait()
    over, busy = devices.now.copy(), devices.busy.copy()
    devices.work(evaluations.draw(todo.long_run))
    devices.wait()
    return Simulated(over, searched, devices.now - over, busy, count)


class _Evaluations:
    """Draws what evaluations take, in seconds: (runs, evaluations)."""

    def __init__(self, calibration: Calibration, rng: np.random.Generator, runs: int) -> None:
        self._rng, self._runs = rng, runs
        seconds = [s.seconds for s in calibration.samples] or [calibration.median_seconds]
        logs, count = np.log(np.array(seconds)), len(seconds)
        middle = logs.mean()
        apart = (logs - middle) * np.sqrt(count / max(1, count - 1))  # a sample spreads too little
        self._logs = (middle + apart)[rng.integers(count, size=(runs, count))]
        self._middle = self._logs.mean(axis=1, keepdims=True)
        self._width = (4 / 3 / count) ** 0.2  # Silverman's rule, in standard deviations
        self._sd = self._logs.std(axis=1, keepdims=True)
        healthy, failed = len(calibration.samples), calibration.failed
        self._rate = (
            rng.beta(failed + 0.5, healthy + 0.5, size=(runs, 1))
            if healthy
            else np.zeros((runs, 1))
        )

    def draw(self, lengths: tuple[float, ...]) -> Array:
        shape = (self._runs, len(lengths))
        if not lengths:
            return np.zeros(shape)
        picked = self._rng.integers(self._logs.shape[1], size=shape)
        logs = np.take_along_axis(self._logs, picked, axis=1)
        noise = self._width * self._sd * self._rng.standard_normal(shape)
        kept = (logs - self._middle + noise) / np.sqrt(1 + self._width**2)
        seconds: Array = np.exp(self._middle + kept) * np.array(lengths)
        again = self._rng.random(shape) < self._rate
        return seconds + again * np.roll(seconds, 1, axis=1)  # as long as another one


class _Filling:
    """Evaluations for slots that would be idle, and how many each run has begun."""

    def __init__(self, seconds: Array) -> None:
        self.seconds = seconds
        self.begun = np.zeros(len(seconds), dtype=np.intp)
        self.end = np.zeros(len(seconds))


class _Devices:
    """W devices in each of so many runs; the earliest free one takes what comes next."""

    def __init__(self, runs: int, count: int, overheads: Overheads) -> None:
        self.now = np.full(runs, overheads.startup_seconds)  # nothing begins earlier
        self.busy = np.zeros(runs)
        self._free = np.full((runs, count), overheads.startup_seconds)
        self._gap = overheads.gap_seconds
        self._rows = np.arange(runs)
        self._end = self.now.copy()  # of what is waited for

    def work(self, seconds: Array) -> None:
        """Evaluations that the run waits for."""
        for own in seconds.T:
            self._end = np.maximum(self._end, self._start(own, np.ones(len(own), dtype=bool)))

    def _start(self, seconds: Array, which: NDArray[np.bool_]) -> Array:
        device = self._free.argmin(axis=1)
        start = np.maximum(self._free[self._rows, device], self.now)
        end: Array = start + seconds + self._gap
        self._free[self._rows, device] = np.where(which, end, self._free[self._rows, device])
        self.busy += np.where(which, seconds, 0.0)
        return end

    def fill(self, filling: _Filling, *, to_the_end: bool = False) -> None:
        """Begin what fits in before the run's wait is over; `to_the_end` all of it, awaited."""
        most = filling.seconds.shape[1]
        while True:
            start = np.maximum(self._free.min(axis=1), self.now)
            which = (filling.begun < most) & (to_the_end | (start < self._end))
            if not which.any():
                break
            place = np.minimum(filling.begun, most - 1)
            end = self._start(filling.seconds[self._rows, place], which)
            filling.end = np.where(which, np.maximum(filling.end, end), filling.end)
            filling.begun += which
        if to_the_end:
            self._end = np.maximum(self._end, filling.end)

    def wait(self, seconds: float = 0.0) -> None:
        """Until all that is awaited has ended, and so much longer."""
        self.now = self._end + seconds
        self._end = self.now.copy()
