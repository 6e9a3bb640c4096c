"""What a calibration run measured of the baseline, and what noise alone would show."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from budgets.events import Status
from budgets.plan import Calibration, Sample
from budgets.state import RunState
from budgets.stats import sd_interval


def measure(state: RunState) -> Calibration:
    """The calibration that a finished calibration run measured.

    Raises ValueError with the last cause when no evaluation of the baseline was healthy.
    """
    results = [result for generation in state.generations for result in generation.results()]
    samples = tuple(
        Sample(**{name: getattr(result, name) for name in Sample.model_fields})
        for result in results
        if result.status is Status.OK
    )
    if not samples:
        cause = results[-1].cause if results else "nothing was evaluated"
        raise ValueError(f"the baseline itself cannot be evaluated: {cause}")
    return Calibration(samples=samples, failed=len(results) - len(samples), ledger=state.head)


ROUNDING = 1e-12
"""A score no larger than this is 0 with a rounding error."""

BAND_SDS = 2.0
"""How far the noise band reaches either side of the baseline's mean, in standard deviations."""


@dataclass(frozen=True, slots=True)
class Noise:
    """How the baseline's scores differ from seed to seed, in the score's unit."""

    mean: float
    sd: float | None  # None below two healthy seeds
    seeds: int  # healthy ones
    failed: int

    @property
    def sd_limits(self) -> tuple[float, float] | None:
        """The 95 % confidence interval of `sd`, if scores are normal."""
        return None if self.sd is None else sd_interval(self.sd, self.seeds)

    @property
    def is_about_zero(self) -> bool:
        """Whether the mean is within 3 standard errors of 0: then no gain is a share of it."""
        error = (self.sd or 0.0) / sqrt(self.seeds)
        return abs(self.mean) <= max(3 * error, ROUNDING)

    def band(self, seeds: int) -> tuple[float, float] | None:
        """The range of the mean score, over so many seeds, of a candidate like the baseline."""
        if self.sd is None:
            return None
        reach = BAND_SDS * self.sd / sqrt(seeds)
        return self.mean - reach, self.mean + reach

    def best_by_chance(
        self, count: int, seeds: int, share: float | None = None, sign: int = 1
    ) -> float | None:
        """The best score to expect of so many baselines, each the mean over so many own seeds.

        With a `share`, the score that the best exceeds with that probability; `sign` -1 where
        higher is better. None without any, and where the noise was not measured.
        """
        if self.sd is None or not count:
            return None
        return self.mean - sign * self.sd / sqrt(seeds) * best_of_noise(count, share)


def noise(calibration: Calibration | None) -> Noise | None:
    """The noise of a calibration; None without one, or where only a time was assumed."""
    if calibration is None or calibration.mean_score is None:
        return None
    count = len(calibration.samples)
    return Noise(calibration.mean_score, calibration.sd_score, count, calibration.failed)


def best_of_noise(evaluations: int, share: float | None = None) -> float:
    """By how many standard deviations the best of so many pure-noise scores beats their mean.

    On average, by Blom's approximation of the expected largest order statistic of standard normals:
    1.8 of 16, 2.6 of 120, 3.0 of 480 evaluations. With a `share`, what the best exceeds with that
    probability.
    """
    if share is not None:
        return NormalDist().inv_cdf((1 - share) ** (1 / evaluations))
    if evaluations < 2:
        return 0.0
    return NormalDist().inv_cdf((evaluations - 0.375) / (evaluations + 0.25))
