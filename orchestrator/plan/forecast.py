"""The one forecast: how long a plan takes, and how much a cap must leave free for it.

`plan`, `plan --fit`, campaigns and the SLURM export read it. It simulates the run evaluation by
evaluation, with the barrier after each generation. Each simulated run draws log-normal times fitted
to a resample of the calibration, so that few samples give wide forecasts (B. Efron, "Bootstrap
methods: another look at the jackknife", Annals of Statistics 7 (1979) 1-26).
"""

from collections import deque
from collections.abc import Iterable
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
        queue, reference = _Queue(calibration, random, devices, stagger), deque(work.reference)
        filled = queue.now
        for generation in work.generations:
            end = queue.begin(generation)
            while reference and queue.next_start < end:
                filled = max(filled, queue.begin([reference.popleft()]))
            queue.now = end
        over = max(filled, queue.begin(reference))
        for comparison in work.comparisons:
            queue.now = over = max(over, queue.begin(comparison))
        busy = queue.busy
        yield over, queue.begin(work.long_run) - over, busy


class _Queue:
    """One simulated run: the device that becomes free first takes the next evaluation.

    A failed evaluation is repeated once; the failure rate is drawn from its posterior given the
    calibration (Jeffreys' prior).
    """

    def __init__(
        self, calibration: Calibration, random: Random, devices: int, stagger: float
    ) -> None:
        self.now = STARTUP_SECONDS  # nothing begins earlier
        self.busy = 0.0
        self._free = [self.now + place * stagger for place in range(devices)]  # a heap
        self._random, self._seconds = random, calibration.median_seconds
        self._mean = self._spread = self._rate = 0.0
        if (count := len(calibration.samples)) > 1:
            logs = random.choices([log(sample.seconds) for sample in calibration.samples], k=count)
            self._mean, self._spread = fmean(logs), pstdev(logs) * sqrt(count / (count - 1))
            self._rate = random.betavariate(calibration.failed + 0.5, count + 0.5)

    @property
    def next_start(self) -> float:
        return max(self._free[0], self.now)

    def begin(self, lengths: Iterable[float]) -> float:
        """Begin these evaluations; return when the last of them ends."""
        ends = [self.now]
        for length in lengths:
            seconds = length * self._one()
            self.busy += seconds
            ends.append(self.next_start + seconds + GAP_SECONDS)
            heapreplace(self._free, ends[-1])
        return max(ends)

    def _one(self) -> float:
        if not self._rate:
            return self._seconds
        attempts = 1 + (self._random.random() < self._rate)
        return sum(self._random.lognormvariate(self._mean, self._spread) for _ in range(attempts))


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
