"""The one forecast: how long a plan takes, and how much a cap must leave free for it.

`plan`, `plan --fit`, campaigns and the SLURM export read it. It simulates the run evaluation by
evaluation, with the barrier after each generation. Each simulated run draws log-normal times fitted
to a resample of the calibration, so that few samples give wide forecasts (B. Efron, "Bootstrap
methods: another look at the jackknife", Annals of Statistics 7 (1979) 1-26).
"""

from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from heapq import heapreplace
from math import ceil, log, sqrt
from random import Random
from statistics import fmean, pstdev, quantiles
from typing import NamedTuple

from budgets.accounts import MS_PER_HOUR
from budgets.checks import noise
from budgets.plan import Calibration, Plan
from budgets.schedule import expected
from budgets.stats import detectable
from orchestrator.plan.times import CALIBRATION_SEEDS, Times

SEED = 20_247
"""Fixed, so that equal plans have equal figures."""

LEAST_RUNS, MOST_RUNS, MOST_EVALUATIONS = 50, 400, 20_000
"""Number of simulated runs: fewer if each has more evaluations."""

STARTUP_SECONDS = 10.0
"""Assumed: from the command to the first evaluation, as seen with Ray on two cores."""

GAP_SECONDS = 0.03
"""Assumed: of a device, before and after each evaluation."""

Lengths = tuple[float, ...]
"""Costs of evaluations, relative to one of the search."""

Take = Callable[[float], float]
"""Draws the seconds of an evaluation of that length."""


@dataclass(frozen=True)
class Forecast:
    """Wall-clock hours from the command's start, and device-hours.

    They include a calibration that comes first and the verdict, not the long run after a Go.
    """

    hours_p50: float
    hours_p90: float
    device_hours_p50: float
    long_run_hours_p50: float  # in addition, after a Go
    hours_free: float  # what a window or a cap on hours must leave free
    device_hours_free: float  # what a cap on device-hours must leave free


class Work(NamedTuple):
    """A plan's evaluations in the order of the run."""

    generations: tuple[Lengths, ...]
    reference: Lengths = ()  # on devices that a generation leaves idle
    comparisons: tuple[Lengths, ...] = ()  # one after the other
    long_run: Lengths = ()


def forecast_of(plan: Plan, times: Times, at_once: int | None = None) -> Forecast | None:
    """Return the forecast of a plan by its calibration; None without one.

    `times` says whether the run calibrates first; `at_once` limits the devices.
    """
    calibration, devices, work = plan.calibration, at_once or plan.devices.count, work_of(plan)
    if calibration is None:
        return None
    stagger = 0.0 if plan.campaign is None else plan.campaign.stagger_seconds
    over, longer, busy = zip(*simulate(work, calibration, devices, stagger), strict=True)
    typical, whole = calibration.median_seconds / 3600, plan.limits.reserve_ms / MS_PER_HOUR
    repeats = CALIBRATION_SEEDS if times.is_to_measure(calibration) else 0
    calibrating, first = ceil(repeats / devices) * typical, repeats * typical
    longest = max(length for generation in work.generations for length in generation)
    # The last attempt of the search, and of the verdict, must find its whole reservation free.
    last = max(0.0, plan.limits.stretched(longest).reserve_ms / MS_PER_HOUR - typical * longest)
    last += 0.0 if plan.confirmation is None else whole
    batches = (*work.generations, work.reference, *work.comparisons)
    by_the_rules = STARTUP_SECONDS / 3600 + sum(
        expected(len(batch), sum(batch), calibration, devices).hours for batch in batches if batch
    )
    p90 = _hours(over, 9)
    return Forecast(
        hours_p50=calibrating + _hours(over, 5),
        hours_p90=calibrating + p90,
        device_hours_p50=first + _hours(busy, 5),
        long_run_hours_p50=_hours(longer, 5),
        hours_free=calibrating + max(p90, by_the_rules) + _hours(longer, 9) + last,
        device_hours_free=first + _hours(busy, 9) + sum(work.long_run) * typical + last,
    )


def _hours(seconds: tuple[float, ...], tenth: int) -> float:
    """Return a quantile, in tenths, as hours."""
    both = (*seconds, *seconds)[: max(2, len(seconds))]  # of one, itself
    return quantiles(both, n=10, method="inclusive")[tenth - 1] / 3600


def work_of(plan: Plan) -> Work:
    """Return the evaluations of a plan."""
    generation: Lengths = (1.0,) * plan.resolved.per_generation
    if plan.campaign is not None:  # all conditions on a seed, then the next seed
        lengths = tuple(condition.cost_factor for condition in plan.campaign.conditions)
        generation = lengths * plan.resolved.seeds_per_candidate
    generations = (generation,) * plan.resolved.generations
    if plan.confirmation is None:
        return Work(generations)
    sizes = plan.confirmation.sizes()
    batches = {name: (cost / count,) * count for name, (count, cost) in sizes.items() if count}
    comparisons = (batches["finalists"], batches["winner"])
    return Work(generations, batches["reference"], comparisons, batches.get("long_run", ()))


def simulate(
    work: Work, calibration: Calibration, devices: int, stagger: float = 0.0
) -> Iterable[tuple[float, float, float]]:
    """Yield, for each simulated run, the seconds from the command's start until the verdict, those
    of the long run, and those of all devices together without the long run.

    Devices begin `stagger` seconds apart.
    """
    count = sum(map(len, (*work.generations, work.reference, *work.comparisons)))
    runs = min(MOST_RUNS, max(LEAST_RUNS, MOST_EVALUATIONS // count))
    random = Random(SEED)  # noqa: S311 - no secret
    for _ in range(runs if len(calibration.samples) > 1 else 1):
        queue = _Queue(_evaluations(calibration, random), devices, stagger)
        filling = deque(work.reference)
        for generation in work.generations:
            queue.wait()
            queue.work(generation)
            queue.fill(filling)
        queue.wait()
        queue.end = max(queue.end, queue.filled)
        queue.work(filling)
        for comparison in work.comparisons:
            queue.work(comparison)
            queue.wait()
        over, busy = queue.now, queue.busy
        queue.work(work.long_run)
        yield over, queue.end - over, busy


def _evaluations(calibration: Calibration, random: Random) -> Take:
    """Return the times of one simulated run.

    A failed evaluation is repeated once; the failure rate is drawn from its posterior given the
    calibration (Jeffreys' prior).
    """
    count, seconds = len(calibration.samples), calibration.median_seconds
    if count < 2:
        return lambda length: seconds * length
    logs = random.choices([log(sample.seconds) for sample in calibration.samples], k=count)
    mean, spread = fmean(logs), pstdev(logs) * sqrt(count / (count - 1))
    rate = random.betavariate(calibration.failed + 0.5, count + 0.5)

    def take(length: float) -> float:
        attempts = 1 + (random.random() < rate)
        return length * sum(random.lognormvariate(mean, spread) for _ in range(attempts))

    return take


class _Queue:
    """One simulated run: the device that becomes free first takes the next evaluation."""

    def __init__(self, take: Take, devices: int, stagger: float) -> None:
        self.now = self.end = STARTUP_SECONDS  # earliest start; end of all so far
        self.busy = self.filled = 0.0
        self._take = take
        self._free = [self.now + place * stagger for place in range(devices)]  # a heap

    def work(self, lengths: Iterable[float]) -> None:
        """Begin evaluations that the run waits for."""
        for length in lengths:
            self.end = max(self.end, self._begin(length))

    def fill(self, waiting: deque[float]) -> None:
        """Begin waiting evaluations on idle devices, until the run's wait is over."""
        while waiting and max(self._free[0], self.now) < self.end:
            self.filled = max(self.filled, self._begin(waiting.popleft()))

    def wait(self) -> None:
        """Wait until all have ended."""
        self.now = self.end

    def _begin(self, length: float) -> float:
        seconds = self._take(length)
        end = max(self._free[0], self.now) + seconds + GAP_SECONDS
        self.busy += seconds
        heapreplace(self._free, end)
        return end


def detectable_gain(plan: Plan) -> float | None:
    """Return the true gain, relative to the baseline, that the verdict shows with 80 % power.

    It assumes that scores on the same seed are independent, the worst case. None without a
    comparison or without a known noise.
    """
    confirmation, calibration = plan.confirmation, plan.calibration
    measured = noise(calibration)
    if confirmation is None or measured is None or measured.sd is None or measured.is_about_zero:
        return None
    paired = sqrt(2) * measured.sd / abs(measured.mean)
    return detectable(paired, confirmation.seeds, plan.thresholds.go_level) if paired else 0.0
