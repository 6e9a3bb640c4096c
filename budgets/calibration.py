"""What a calibration run measured of the baseline, and what noise alone would show."""

from dataclasses import dataclass
from math import sqrt
from statistics import NormalDist

from budgets.events import Settled, Status
from budgets.plan import Calibration, Sample
from budgets.state import RunState
from budgets.stats import sd_interval


def measure(state: RunState) -> Calibration:
    """The calibration that a finished calibration run measured.

    Raises ValueError with the last cause when no evaluation of the baseline was healthy.
    """
    results = [result for generation in state.generations for result in generation.results()]
    samples = tuple(_sample(r) for r in results if r.status is Status.OK)
    if not samples:
        cause = results[-1].cause if results else "nothing was evaluated"
        raise ValueError(f"the baseline itself cannot be evaluated: {cause}")
    return Calibration(samples=samples, failed=len(results) - len(samples), ledger=state.head)


def _sample(result: Settled) -> Sample:
    return Sample(**{name: getattr(result, name) for name in Sample.model_fields})


ROUNDING = 1e-12
"""A score no larger than this is 0 with a rounding error."""


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
        error = 0.0 if self.sd is None else self.sd / sqrt(self.seeds)
        return abs(self.mean) <= max(3 * error, ROUNDING)


def noise(calibration: Calibration) -> Noise | None:
    """The noise of a calibration; None where only a time was assumed."""
    mean, sd = calibration.mean_score, calibration.sd_score
    if mean is None:
        return None
    return Noise(mean, sd, len(calibration.samples), calibration.failed)


BAND_SDS = 2.0
"""How far the noise band reaches either side of the baseline's mean, in standard deviations."""


def noise_band(calibration: Calibration | None, seeds: int = 1) -> tuple[float, float] | None:
    """The range of the mean score of a candidate like the baseline, over so many seeds.

    None where the noise was not measured.
    """
    mean = None if calibration is None else calibration.mean_score
    sd = None if calibration is None else calibration.sd_score
    if mean is None or sd is None:
        return None
    reach = BAND_SDS * sd / sqrt(seeds)
    return mean - reach, mean + reach


def best_of_noise(evaluations: int, share: float | None = None) -> float:
    """By how many standard deviations the best of so many pure-noise scores beats their mean.

    On average, by Blom's approximation of the expected largest order statistic of standard normals:
    1.8 of 16, 2.6 of 120, 3.0 of 480 evaluations. With a `share`, what the best exceeds with that
    probability.
    """
    if share is not None:
        return NormalDist().inv_cdf((1 - share) ** (1 / max(1, evaluations)))
    if evaluations < 2:
        return 0.0
    return NormalDist().inv_cdf((evaluations - 0.375) / (evaluations + 0.25))


def luck(
    calibration: Calibration | None,
    tries: int,
    seeds: int = 1,
    share: float | None = None,
    sign: int = 1,
) -> float | None:
    """The best score to expect of so many baselines, each the mean over so many own seeds.

    With a `share`, the score that the best exceeds with that probability; `sign` -1 where higher is
    better. None without any, and
    where the noise was not measured.
    """
    if calibration is None or not tries:
        return None
    mean, sd = calibration.mean_score, calibration.sd_score
    if mean is None or sd is None:
        return None
    return mean - sign * sd / sqrt(seeds) * best_of_noise(tries, share)
