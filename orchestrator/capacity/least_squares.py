"""The law of least squares through measured throughputs. The only module here that needs numpy."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum, sqrt

import numpy as np
from numpy.typing import NDArray

from orchestrator.capacity.fitted import Fit, Level
from orchestrator.capacity.usl import Law

STEPS = 60  # of the refinement, at most
Vector = NDArray[np.float64]


def fit(levels: Sequence[Level]) -> Fit:
    """The law of least squares, with sigma, kappa >= 0, through measured levels.

    What is least is the sum of squared relative residuals of the throughput. A number of workers
    that was measured twice counts with its mean. Raises ValueError on no level, and on a level
    below one worker or without throughput.
    """
    merged = _merged(levels)
    if len(merged) == 1:
        alone = f"{merged[0].workers:g} workers alone were measured: nothing is known of others"
        return Fit(merged, None, untold=(alone,))
    workers = np.array([level.workers for level in merged])
    scale = max(level.throughput for level in merged)
    measured = np.array([level.throughput for level in merged]) / scale
    found = min(_candidates(workers, measured), key=lambda candidate: candidate[0])
    one, contention, coherency = (float(value) for value in found[1])
    law = Law(one * scale, contention, coherency)
    return Fit(merged, law, sqrt(max(0.0, found[0]) / len(merged)), _untold(merged))


def _untold(levels: Sequence[Level]) -> tuple[str, ...]:
    if len(levels) > 3:
        return ()
    if len(levels) == 3:
        return ("three levels fit any law: how well this one holds, a fourth would show",)
    return ("two levels cannot tell contention from coherency, so no optimum: measure a third",)


def _merged(levels: Sequence[Level]) -> tuple[Level, ...]:
    by_workers: dict[float, list[Level]] = {}
    for level in levels:
        if level.workers < 1 or not 0 < level.throughput < np.inf:
            raise ValueError(
                f"expected a throughput above 0 of at least one worker, got {level.throughput} "
                f"of {level.workers}"
            )
        by_workers.setdefault(level.workers, []).append(level)
    if not by_workers:
        raise ValueError("no throughput was measured: nothing can be said of any workers")
    return tuple(_mean(same) for _, same in sorted(by_workers.items()))


def _mean(same: Sequence[Level]) -> Level:
    count = len(same)
    throughput = fsum(level.throughput for level in same) / count
    return Level(same[0].workers, throughput, sqrt(fsum(x.noise**2 for x in same)) / count)


def _candidates(workers: Vector, measured: Vector) -> Iterator[tuple[float, Vector]]:
    """The best laws with sigma, kappa, both or none held at 0.

    The least squares under sigma, kappa >= 0 are among them: where a bound holds, that one is 0.
    Of two levels only one can be free: kappa where throughput falls, which sigma <= 1 cannot do.
    """
    choices = list(product((False, True), repeat=2))
    if len(workers) == 2:
        falls = bool(measured[1] < measured[0])
        choices = [(False, False), (not falls, falls)]
    for contended, coherent in choices:
        free = np.array([True, contended, coherent])
        start = _linear(workers, measured, free)
        if start is not None:
            yield _refined(workers, measured, start, free)


def _columns(workers: Vector) -> Vector:
    others = workers - 1
    return np.stack([np.ones_like(workers), others, workers * others], axis=1)


def _linear(workers: Vector, measured: Vector, free: NDArray[np.bool_]) -> Vector | None:
    """(lambda, sigma, kappa) from N / X = (1 + sigma (N-1) + kappa N (N-1)) / lambda.

    That is linear in 1, sigma and kappa over lambda. Each is weighted by X / N, so that residuals
    are relative. None where one would be negative.
    """
    weights = measured / workers
    columns = _columns(workers)[:, free] * weights[:, None]
    solved, *_ = np.linalg.lstsq(columns, np.ones_like(workers), rcond=None)
    parts = np.zeros(3)
    parts[free] = solved
    if parts[0] <= 0 or (parts < -1e-12).any():
        return None
    return np.array([1.0, *np.maximum(parts[1:], 0.0)]) / parts[0] if parts[0] else None


def _refined(
    workers: Vector, measured: Vector, start: Vector, free: NDArray[np.bool_]
) -> tuple[float, Vector]:
    """Sum of squared relative residuals, and the law: Gauss-Newton from `start`, halving steps."""
    law, least = start, _squares(workers, measured, start)
    for _ in range(STEPS):
        residuals, slopes = _residuals(workers, measured, law)
        step = np.zeros(3)
        step[free], *_ = np.linalg.lstsq(slopes[:, free], -residuals, rcond=None)
        for halving in range(20):
            tried = np.maximum(law + step / 2**halving, 0.0)
            squares = _squares(workers, measured, tried)
            if squares < least:
                break
        else:
            break
        law, least = tried, squares
    return least, law


def _squares(workers: Vector, measured: Vector, law: Vector) -> float:
    residuals, _ = _residuals(workers, measured, law)
    return float(residuals @ residuals)


def _residuals(workers: Vector, measured: Vector, law: Vector) -> tuple[Vector, Vector]:
    """X(N) / measured - 1, and its derivatives by lambda, sigma and kappa."""
    columns = _columns(workers)
    load = columns @ np.array([1.0, law[1], law[2]])
    ratio = law[0] * workers / load / measured
    slopes = -(ratio / load)[:, None] * columns
    slopes[:, 0] = workers / load / measured
    return ratio - 1, slopes
