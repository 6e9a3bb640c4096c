"""What a plan takes, and how much must be free so that no rule ends it early."""

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil

from budgets.accounts import MS_PER_HOUR
from budgets.course import expected
from budgets.proxy.certificate import outlook
from budgets.terms import Plan
from orchestrator.planning.calibrations import CALIBRATION_SEEDS
from orchestrator.planning.times import NO_DELAYS, Delays, Times

Spread = Callable[[Plan], float]
"""Hours beyond the forecast of a plan within which nine in ten runs stay; 0: not simulated."""


@dataclass(frozen=True)
class Hours:
    """Of a plan, on its devices, with the barrier between generations."""

    search: float
    verdict: float  # the comparison on fresh seeds, without the rung
    rung: float  # set aside, and used after a Go only
    limits: float  # that must be free beyond these: last attempts' whole limits
    calibrating: float  # before all this, where nothing is calibrated yet
    delays: float = 0.0  # beside evaluations, as earlier runs did

    @property
    def likely(self) -> float:
        """What the run is expected to take."""
        return self.calibrating + self.search + self.verdict + self.delays

    @property
    def needed(self) -> float:
        """With so much free the last generation may begin, and all of the verdict after it."""
        return self.likely + self.rung + self.limits


def hours_of(plan: Plan, *, to_calibrate: bool, beside: Delays = NO_DELAYS) -> Hours | None:
    """By the forecast with barriers, and what delays it; None where no time is known."""
    calibration, devices = plan.calibration, plan.devices.count
    if calibration is None:
        return None
    count, shape = plan.resolved.per_generation, plan.resolved
    search = shape.generations * expected(count, count, calibration, devices).hours
    if plan.proxy is not None:
        paired, _ = outlook(plan.proxy, shape.generations)
        short = count * plan.proxy.varied.length
        search += paired * expected(count, short, calibration, devices).hours
    sizes = {} if plan.confirmation is None else plan.confirmation.sizes()
    parts = {
        name: expected(*size, calibration, devices).hours for name, size in sizes.items() if size[0]
    }
    rung = parts.pop("rung", 0.0)
    whole, typical = plan.limits.reserve_ms / MS_PER_HOUR, calibration.median_seconds / 3600
    rounds = ceil(CALIBRATION_SEEDS / devices) if to_calibrate else 0
    verdict = sum(parts.values())
    return Hours(
        search=search,
        verdict=verdict,
        rung=rung,
        limits=max(0.0, whole - typical) + (whole if parts else 0.0),
        calibrating=rounds * typical,
        delays=beside.startup_hours + (beside.slowdown - 1) * (search + verdict),
    )


def hours_that_must_be_free(
    plan: Plan, times: Times, spread: Spread, *, is_scaled: bool = False
) -> float | None:
    """What a window or a cap on hours must leave; None where no time is known.

    The one answer of `plan`, `plan --fit` and the rules of a run. `is_scaled`: the plan's time is
    not the measured one of `times`.
    """
    to_calibrate = times.to_calibrate or is_scaled
    hours = hours_of(plan, to_calibrate=to_calibrate, beside=times.delays)
    return None if hours is None else hours.needed + spread(plan)


def device_hours_that_must_be_free(plan: Plan, device_hours: float) -> float:
    """What a cap on device time must leave a run whose search and verdict take `device_hours`.

    The rung, and the last attempts' whole limits, must be free too, as the rules of a run ask.
    """
    calibration, confirmation = plan.calibration, plan.confirmation
    assert calibration is not None, "whoever knows the device time knows the time of an evaluation"
    typical, whole = calibration.median_seconds / 3600, plan.limits.reserve_ms / MS_PER_HOUR
    last = max(0.0, whole - typical)
    if confirmation is None:
        return device_hours + last
    return device_hours + confirmation.sizes().get("rung", (0, 0.0))[1] * typical + last + whole
