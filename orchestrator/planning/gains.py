"""What a plan's verdict can see, by the calibrated noise."""

from dataclasses import dataclass
from math import sqrt

from budgets.calibration import noise
from budgets.stats import detectable
from budgets.terms import Plan


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
