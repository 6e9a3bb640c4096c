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

from budgets.proxy.certificate import outlook
from budgets.terms import Calibration, Confirmation, Plan
from orchestrator.planning.needs import hours_of
from orchestrator.planning.overheads import NOTHING, Overheads

Array = NDArray[np.float64]

RUNS = 400

SEED = 20_247
"""Of the simulated runs: the same plan has the same figures."""


@dataclass(frozen=True)
class Simulated:
    """What simulated runs of one plan took. P50 and P90: half and nine in ten took no longer."""

    runs: int
    hours_p50: float  # open, start-up and verdict included, the rung not
    hours_p90: float
    search_hours_p50: float  # until the last generation is closed
    device_hours_p50: float
    device_hours_p90: float
    rung_hours_p50: float  # more, should the search come to it
    rung_hours_p90: float
    idle_share: float  # of all devices' time, on average


@dataclass(frozen=True)
class Stages:
    """How long each evaluation of a plan is, relative to one of the search, in its order."""

    generations: tuple[tuple[float, ...], ...]
    reference: tuple[float, ...] = ()  # fills what a generation leaves idle
    finalists: tuple[float, ...] = ()
    winner: tuple[float, ...] = ()
    rung: tuple[float, ...] = ()


def stages(plan: Plan) -> Stages:
    """The evaluations that a plan expects, as the walk comes to them."""
    generations, confirmation = _generations(plan), plan.confirmation
    if confirmation is None:
        return Stages(generations)
    sizes, rung = confirmation.sizes(), confirmation.rung
    return Stages(
        generations,
        reference=_reference(confirmation),
        finalists=(1.0,) * sizes["finalists"][0],
        winner=(1.0,) * sizes["winner"][0],
        rung=() if rung is None else (rung.varied.length,) * (2 * rung.seeds),
    )


def _generations(plan: Plan) -> tuple[tuple[float, ...], ...]:
    """With a proxy as if it held whenever it is compared: compared first, then short, then full."""
    shape, full = plan.resolved, (1.0,) * plan.resolved.per_generation
    if plan.proxy is None:
        return (full,) * shape.generations
    short = (plan.proxy.varied.length,) * shape.per_generation
    paired, alone = outlook(plan.proxy, shape.generations)
    rest = shape.generations - paired - alone
    return ((*full, *short),) * paired + (short,) * alone + (full,) * rest


def _reference(confirmation: Confirmation) -> tuple[float, ...]:
    own = confirmation.seeds + confirmation.picking_seeds
    incumbent = confirmation.seeds if confirmation.incumbent is not None else 0
    controls = (c.length for c in confirmation.controls for _ in range(confirmation.control_seeds))
    return (*(1.0,) * (own + incumbent), *controls)


def simulate(
    plan: Plan,
    calibration: Calibration,
    overheads: Overheads,
    rng: np.random.Generator,
    runs: int = RUNS,
) -> Simulated:
    """So many runs of the plan on its W devices.

    A failed evaluation is made once more, which is the most that it costs; how often that is, each
    run draws from what the calibration leaves possible (Jeffreys' prior).
    """
    todo, evaluations = stages(plan), _Evaluations(calibration, rng, runs)
    devices = _Devices(runs, plan.devices.count, overheads)
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
    devices.work(evaluations.draw(todo.rung))
    devices.wait()
    return _summed_up(over, searched, devices.now - over, busy, plan.devices.count)


def beyond_the_forecast(plan: Plan, rng: np.random.Generator) -> float:
    """Hours beyond the forecast of search and verdict within which nine in ten runs stay.

    Without a start-up and gaps; 0 where nothing was measured, so nothing is known of a spread.
    """
    calibration = plan.calibration
    forecast = hours_of(plan, to_calibrate=False)
    if calibration is None or not calibration.samples or forecast is None:
        return 0.0
    found = simulate(plan, calibration, NOTHING, rng)
    return max(0.0, found.hours_p90 - forecast.search - forecast.verdict)


def spread(plan: Plan) -> float:
    """The same, equal for equal plans."""
    return beyond_the_forecast(plan, np.random.default_rng(SEED))


def _summed_up(over: Array, searched: Array, rung: Array, busy: Array, count: int) -> Simulated:
    def hours(seconds: Array, share: float) -> float:
        return float(np.quantile(seconds, share)) / 3600

    return Simulated(
        runs=len(over),
        hours_p50=hours(over, 0.5),
        hours_p90=hours(over, 0.9),
        search_hours_p50=hours(searched, 0.5),
        device_hours_p50=hours(busy, 0.5),
        device_hours_p90=hours(busy, 0.9),
        rung_hours_p50=hours(rung, 0.5),
        rung_hours_p90=hours(rung, 0.9),
        idle_share=float(1 - busy.sum() / (count * over.sum())),
    )


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
