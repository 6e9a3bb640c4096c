"""The law of least squares through measured throughputs. The only module here that needs numpy."""

from collections.abc import Iterator, Sequence
from itertools import product
from math import fsum, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from orchestrator.capacity.fitted import Fit, Level
from orchestrator.capacity.usl import Law

STEPS, HALVINGS = 30, 8  # of the refinement, at most
ROUNDING = 1e-9  # relative: no less is a difference
EXACT = 1e-18  # sum of squared relative residuals: no more than rounding
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
    scale = max(level.throughput for level in merged)
    data = _data([level.workers for level in merged], [x.throughput / scale for x in merged])
    found = min(_candidates(data), key=lambda candidate: candidate[0])
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


class _Data(NamedTuple):
    workers: Vector
    measured: Vector  # throughput, of the highest
    columns: Vector  # of 1, sigma and kappa in the law's denominator


def _data(workers: Sequence[float], measured: Sequence[float]) -> _Data:
    n = np.array(workers, dtype=float)
    return _Data(n, np.array(measured), np.stack([np.ones_like(n), n - 1, n * (n - 1)], axis=1))


def _candidates(data: _Data) -> Iterator[tuple[float, Vector]]:
    """The best laws with sigma, kappa, both or none held at 0.

    The least squares under sigma, kappa >= 0 are among them: where a bound holds, that one is 0.
    Of two levels only one can be free: kappa where throughput falls, which sigma <= 1 cannot do.
    """
    choices = list(product((False, True), repeat=2))
    if len(data.workers) == 2:
        falls = bool(data.measured[1] < data.measured[0])
        choices = [(False, False), (not falls, falls)]
    for contended, coherent in choices:
        free = np.array([True, contended, coherent])
        start = _linear(data, free)
        if start is not None:
            yield _refined(data, start, free)


def _linear(data: _Data, free: NDArray[np.bool_]) -> Vector | None:
    """(lambda, sigma, kappa) from N / X = (1 + sigma (N-1) + kappa N (N-1)) / lambda.

    That is linear in 1, sigma and kappa over lambda. Each is weighted by X / N, so that residuals
    are relative. None where one would be negative.
    """
    columns = data.columns[:, free] * (data.measured / data.workers)[:, None]
    solved, *_ = np.linalg.lstsq(columns, data.columns[:, 0], rcond=None)
    parts = np.zeros(3)
    parts[free] = solved
    if parts[0] <= 0:
        return None
    law: Vector = np.array([1.0, *np.maximum(parts[1:], 0.0)]) / parts[0]
    return law


def _refined(data: _Data, start: Vector, free: NDArray[np.bool_]) -> tuple[float, Vector]:
    """Sum of squared relative residuals, and the law: Gauss-Newton from `start`, halving steps."""
    law, least = start, _squares(data, start)
    for _ in range(STEPS):
        if least < EXACT:
            break
        step = np.zeros(3)
        residuals, slopes = _residuals(data, law), _slopes(data, law)[:, free]
        step[free], *_ = np.linalg.lstsq(slopes, -residuals, rcond=None)
        for halving in range(HALVINGS):
            tried = np.maximum(law + step / 2**halving, 0.0)
            squares = _squares(data, tried)
            if squares < least:
                break
        else:
            break
        has_settled = squares > (1 - ROUNDING) * least
        law, least = tried, squares
        if has_settled:
            break
    return least, law


def _squares(data: _Data, law: Vector) -> float:
    residuals = _residuals(data, law)
    return float(residuals @ residuals)


def _residuals(data: _Data, law: Vector) -> Vector:
    """X(N) / measured - 1."""
    residuals: Vector = law[0] * _each(data, law) / data.measured - 1
    return residuals


def _slopes(data: _Data, law: Vector) -> Vector:
    """The residuals' derivatives by lambda, sigma and kappa."""
    each = _each(data, law) / data.measured
    slopes: Vector = -(law[0] * each**2 * data.measured / data.workers)[:, None] * data.columns
    slopes[:, 0] = each
    return slopes


def _each(data: _Data, law: Vector) -> Vector:
    """X(N) / lambda."""
    each: Vector = data.workers / (data.columns @ np.array([1.0, law[1], law[2]]))
    return each
