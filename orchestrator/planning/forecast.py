"""What a plan takes, and how much must be free so that no rule ends it early: the one forecast.

`plan`, `plan --fit`, the SLURM export and campaigns of searches all read it.
"""

from dataclasses import asdict, dataclass
from math import ceil, sqrt
from typing import Any

from budgets.accounts import MS_PER_HOUR
from budgets.calibration import noise
from budgets.plan import Calibration, Plan
from budgets.schedule import expected
from budgets.stats import detectable
from orchestrator.planning.calibrations import CALIBRATION_SEEDS
from orchestrator.planning.times import Times


@dataclass(frozen=True)
class Forecast:
    """Hours are wall clock from the command's start on; device-hours are paid.

    P50 and P90: half and nine in ten of the simulated runs took no more. A calibration that comes
    first and the verdict are included, the long run after a Go is not.
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
    """What the plan takes by its calibration; None without one. Imports numpy.

    `times` say what comes beside evaluations. Equal plans have equal figures.
    """
    from orchestrator.planning.simulation import simulate

    calibration, devices, todo = plan.calibration, plan.devices.count, stages(plan)
    if calibration is None:
        return None
    took = simulate(todo, calibration, times.overheads, devices)
    typical = calibration.median_seconds / 3600
    repeats = CALIBRATION_SEEDS if times.is_to_measure(calibration) else 0
    calibrating, first = ceil(repeats / devices) * typical, repeats * typical
    long_run = sum(todo.long_run) * typical
    last = _last_limits(plan, typical)
    expected_hours = times.overheads.startup_seconds / 3600 + hours_by_the_rules(plan, calibration)
    return Forecast(
        hours_p50=calibrating + took.hours(0.5),
        hours_p90=calibrating + took.hours(0.9),
        device_hours_p50=first + took.device_hours(0.5),
        device_hours_p90=first + took.device_hours(0.9),
        search_hours_p50=took.search_hours(0.5),
        calibrating_hours=calibrating,
        long_run_hours_p50=took.long_run_hours(0.5),
        long_run_hours_p90=took.long_run_hours(0.9),
        long_run_device_hours=long_run,
        idle_share=took.idle_share(),
        hours_free=calibrating
        + max(took.hours(0.9), expected_hours)
        + took.long_run_hours(0.9)
        + last,
        device_hours_free=first + took.device_hours(0.9) + long_run + last,
        runs=took.runs,
    )


def hours_by_the_rules(plan: Plan, calibration: Calibration) -> float:
    """Search and verdict as the rules of a run reckon: in rounds, batch after batch."""
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
    """The evaluations that a plan expects, in the order in which the run comes to them."""
    generation, confirmation = (1.0,) * plan.resolved.per_generation, plan.confirmation
    generations = (generation,) * plan.resolved.generations
    if confirmation is None:
        return Stages(generations)
    sizes, long_run = confirmation.sizes(), confirmation.rung
    own = confirmation.seeds + confirmation.picking_seeds
    incumbent = confirmation.seeds if confirmation.incumbent is not None else 0
    controls = (c.length for c in confirmation.controls for _ in range(confirmation.control_seeds))
    return Stages(
        generations,
        reference=(*(1.0,) * (own + incumbent), *controls),
        finalists=(1.0,) * sizes["finalists"][0],
        winner=(1.0,) * sizes["winner"][0],
        long_run=() if long_run is None else (long_run.varied.length,) * (2 * long_run.seeds),
    )


@dataclass(frozen=True)
class Smallest:
    """The smallest true gain that a verdict shows 8 times of 10, and what the calibration leaves
    possible: relative to the baseline's score."""

    gain: float
    low: float
    high: float


def smallest_gain(plan: Plan) -> Smallest | None:
    """What the plan's comparison can see; None without one, and where no noise is known.

    As if two points on one seed shared none of their noise, which is the worst.
    """
    confirmation, calibration = plan.confirmation, plan.calibration
    measured = None if calibration is None else noise(calibration)
    if confirmation is None or measured is None or measured.sd is None or measured.is_about_zero:
        return None
    sds = (measured.sd, measured.sd_low or 0.0, measured.sd_high or 0.0)
    paired = (sqrt(2) * sd / abs(measured.mean) for sd in sds)
    level = plan.thresholds.go_level
    return Smallest(*(detectable(sd, confirmation.seeds, level) if sd else 0.0 for sd in paired))
