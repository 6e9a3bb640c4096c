"""What a plan takes, and how much must be free so that no rule ends it early: the one forecast.

`plan`, `plan --fit` and the SLURM export read it. It simulates the loop, evaluation by evaluation,
with the barrier after each generation. Each simulated run believes another resample of the
calibration's evaluations and draws its own from that one's smoothed distribution, so the spread
between runs has the calibration's own uncertainty in it. (B. Efron, "Bootstrap methods: another
look at the jackknife", Annals of Statistics 7 (1979) 1-26; the smoothing keeps the variance:
B. W. Silverman, G. A. Young, "The bootstrap: to smooth or not to smooth?", Biometrika 74 (1987)
469-479.)
"""

from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray

from budgets.accounts import MS_PER_HOUR
from budgets.calibration import noise
from budgets.plan import Calibration, Plan
from budgets.schedule import expected
from budgets.stats import detectable
from orchestrator.plan.history import CALIBRATION_SEEDS
from orchestrator.plan.times import Overheads, Times

Array = NDArray[np.float64]

RUNS = 400

SEED = 20_247
"""Of the simulated runs: the same plan has the same figures."""


@dataclass(frozen=True)
class Forecast:
    """Hours are wall clock from the command's start on; device-hours are paid.

    A calibration that comes first and the verdict are included, the long run after a Go is not.
    """

    hours_p50: float
    hours_p90: float
    device_hours_p50: float
    device_hours_p90: float
    search_hours_p50: float  # of these, until the last generation is closed
    calibrating_hours: float  # ... and before the first
    long_run_hours_p50: float  # more, should the search come to it
    long_run_hours_p90: float
    long_run_device_hours: float
    idle_share: float  # of all devices' time, on average
    hours_free: float  # that a window or a cap on hours must leave
    device_hours_free: float  # that a cap on device-hours must leave
    runs: int  # simulated

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


@dataclass(frozen=True)
class Stages:
    """How long each evaluation of a plan is, relative to one of the search, in its order."""

    generations: tuple[tuple[float, ...], ...]
    reference: tuple[float, ...] = ()  # fills what a generation leaves idle
    finalists: tuple[float, ...] = ()
    winner: tuple[float, ...] = ()
    long_run: tuple[float, ...] = ()


def forecast_of(plan: Plan, times: Times) -> Forecast | None:
    """Return what the plan takes by its calibration; None without one.

    `times` say what comes beside evaluations. Equal plans have equal figures.
    """
    calibration, devices, todo = plan.calibration, plan.devices.count, stages(plan)
    if calibration is None:
        return None
    over, searched, longer, busy = simulate(todo, calibration, times.overheads, devices)
    typical = calibration.median_seconds / 3600
    repeats = CALIBRATION_SEEDS if times.is_to_measure(calibration) else 0
    calibrating, first = ceil(repeats / devices) * typical, repeats * typical
    long_run = sum(todo.long_run) * typical
    by_the_rules = times.overheads.startup_seconds / 3600 + _hours_by_the_rules(plan, calibration)
    last = _last_limits(plan, typical)
    return Forecast(
        hours_p50=calibrating + _hours(over, 0.5),
        hours_p90=calibrating + _hours(over, 0.9),
        device_hours_p50=first + _hours(busy, 0.5),
        device_hours_p90=first + _hours(busy, 0.9),
        search_hours_p50=_hours(searched, 0.5),
        calibrating_hours=calibrating,
        long_run_hours_p50=_hours(longer, 0.5),
        long_run_hours_p90=_hours(longer, 0.9),
        long_run_device_hours=long_run,
        idle_share=float(1 - busy.sum() / (devices * over.sum())),
        hours_free=calibrating + max(_hours(over, 0.9), by_the_rules) + _hours(longer, 0.9) + last,
        device_hours_free=first + _hours(busy, 0.9) + long_run + last,
        runs=len(over),
    )


def _hours(seconds: Array, share: float) -> float:
    return float(np.quantile(seconds, share)) / 3600


def _hours_by_the_rules(plan: Plan, calibration: Calibration) -> float:
    """Search and verdict as the admission rule counts them: in rounds, batch after batch."""
    devices, shape, each = plan.devices.count, plan.resolved, plan.resolved.per_generation
    hours = shape.generations * expected(each, each, calibration, devices).hours
    sizes = {} if plan.confirmation is None else plan.confirmation.sizes()
    return hours + sum(
        expected(*size, calibration, devices).hours
        for name, size in sizes.items()
        if size[0] and name != "rung"
    )


def _last_limits(plan: Plan, typical: float) -> float:
    """Hours that must be free beyond what is expected: the last attempts' whole limits.

    One of the search, and one of the verdict.
    """
    whole = plan.limits.reserve_ms / MS_PER_HOUR
    return max(0.0, whole - typical) + (0.0 if plan.confirmation is None else whole)


def stages(plan: Plan) -> Stages:
    """Return the evaluations that a plan expects, in the order in which the run comes to them."""
    generation, confirmation = (1.0,) * plan.resolved.per_generation, plan.confirmation
    generations = (generation,) * plan.resolved.generations
    if confirmation is None:
        return Stages(generations)
    sizes, long_run = confirmation.sizes(), confirmation.rung
    own = confirmation.seeds + confirmation.picking_seeds
    incumbent = confirmation.seeds if confirmation.incumbent is not None else 0
    controls = (
        c.cost_factor for c in confirmation.controls for _ in range(confirmation.control_seeds)
    )
    return Stages(
        generations,
        reference=(*(1.0,) * (own + incumbent), *controls),
        finalists=(1.0,) * sizes["finalists"][0],
        winner=(1.0,) * sizes["winner"][0],
        long_run=() if long_run is None else (long_run.variant.cost_factor,) * (2 * long_run.seeds),
    )


def simulate(
    todo: Stages, calibration: Calibration, overheads: Overheads, count: int, runs: int = RUNS
) -> tuple[Array, Array, Array, Array]:
    """Return what each of so many simulated runs on `count` devices takes, in seconds: (runs,).

    From the command's start until the verdict, and until the last generation's end; the long run
    after it; all devices' time together, without the long run. A failed evaluation is repeated
    once, as often as the calibration leaves possible (Jeffreys' prior).
    """
    evaluations = _Evaluations(calibration, np.random.default_rng(SEED), runs)
    devices = _Devices(runs, count, overheads)
    reference = _Filling(evaluations.draw(todo.reference))
    for number, generation in enumerate(todo.generations):
        devices.wait(overheads.generation_seconds if number else 0.0)
        devices.work(evaluations.draw(generation))
        devices.fill(reference)
    devices.wait()
    searched = devices.now.copy()
    devices.fill(reference, to_the_end=True)
    for comparison in (todo.finalists, todo.winner):
        devices.work(evaluations.draw(comparison))
        devices.wait()
    over, busy = devices.now.copy(), devices.busy.copy()
    devices.work(evaluations.draw(todo.long_run))
    devices.wait()
    return over, searched, devices.now - over, busy


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
        """Run evaluations that the run waits for."""
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
        """Wait until all that is blocking_batches has ended, and so much longer."""
        self.now = self._end + seconds
        self._end = self.now.copy()


@dataclass(frozen=True)
class DetectableGain:
    """The true gain that a verdict shows with 80 % power, relative to the baseline's score."""

    gain: float
    low: float  # ... if the noise is at the low end of what the calibration leaves possible
    high: float


def detectable_gain(plan: Plan) -> DetectableGain | None:
    """Return what the plan's comparison can see; None without one, and where no noise is known.

    As if two points on one seed shared none of their noise, which is the worst.
    """
    confirmation, calibration = plan.confirmation, plan.calibration
    measured = None if calibration is None else noise(calibration)
    if confirmation is None or measured is None or measured.sd is None or measured.is_about_zero:
        return None
    sds = (measured.sd, measured.sd_low or 0.0, measured.sd_high or 0.0)
    paired = (sqrt(2) * sd / abs(measured.mean) for sd in sds)
    level = plan.thresholds.go_level
    return DetectableGain(
        *(detectable(sd, confirmation.seeds, level) if sd else 0.0 for sd in paired)
    )
