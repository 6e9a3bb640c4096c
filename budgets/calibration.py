"""From the measured baseline to what a budget buys: times, device-hours and money."""

from dataclasses import dataclass
from math import ceil
from statistics import NormalDist

from budgets.events import Settled, Status
from budgets.state import RunState
from budgets.terms import Calibration, Envelope, Sample


def measure(state: RunState) -> Calibration:
    """The calibration that a finished calibration run amounts to.

    Raises ValueError when no evaluation of the baseline was healthy, with the last cause.
    """
    results = [result for generation in state.generations for result in generation.results()]
    samples = tuple(_sample(r) for r in results if r.status is Status.OK)
    if not samples:
        cause = results[-1].cause if results else "nothing was evaluated"
        raise ValueError(f"the baseline itself cannot be evaluated: {cause}")
    return Calibration(samples=samples, failed=len(results) - len(samples), ledger=state.head)


def _sample(result: Settled) -> Sample:
    return Sample(**{name: getattr(result, name) for name in Sample.model_fields})


@dataclass(frozen=True, slots=True)
class Forecast:
    """What an envelope costs at a given time per evaluation on W devices."""

    evaluations: int
    eval_seconds: float
    evals_per_hour: float  # of one device
    device_hours: float
    ideal_hours: float  # wall clock with no device ever idle
    barrier_hours: float  # wall clock with every generation waiting for its last evaluation
    cost: float


def forecast(envelope: Envelope, eval_seconds: float, devices: int, price: float = 0.0) -> Forecast:
    """ideal = E * t / (3600 W); with the barrier G * ceil(P S / W) * t / 3600."""
    device_hours = envelope.evaluations * eval_seconds / 3600
    rounds = envelope.generations * ceil(envelope.per_generation / devices)
    return Forecast(
        evaluations=envelope.evaluations,
        eval_seconds=eval_seconds,
        evals_per_hour=3600 / eval_seconds,
        device_hours=device_hours,
        ideal_hours=device_hours / devices,
        barrier_hours=rounds * eval_seconds / 3600,
        cost=device_hours * price,
    )


def best_of_noise(evaluations: int) -> float:
    """By how many standard deviations the best of so many pure-noise scores beats their mean.

    Blom's approximation of the expected largest order statistic of standard normals: 1.8 of 16,
    2.6 of 120, 3.0 of 480 evaluations.
    """
    if evaluations < 2:
        return 0.0
    return NormalDist().inv_cdf((evaluations - 0.375) / (evaluations + 0.25))
