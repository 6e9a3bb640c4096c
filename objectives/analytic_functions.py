"""Functions of z, one coordinate per knob, whose optimum is at z = 1 in every coordinate."""

import math
from collections.abc import Callable
from itertools import pairwise


def _sphere(z: tuple[float, ...]) -> float:
    return math.fsum((1.0 - v) ** 2 for v in z)


def _ellipsoid(z: tuple[float, ...]) -> float:
    """Axes weighted 1 to 1e6 (Hansen et al., BBOB 2009, f2, not rotated)."""
    last = len(z) - 1
    return math.fsum(1e6 ** (i / last) * (1.0 - v) ** 2 for i, v in enumerate(z))


def _rosenbrock(z: tuple[float, ...]) -> float:
    return math.fsum(
        100.0 * (right - left**2) ** 2 + (1.0 - left) ** 2 for left, right in pairwise(z)
    )


def _idle(z: tuple[float, ...]) -> float:
    """The sphere of all knobs but the last, which changes nothing, not even the noise."""
    return _sphere(z[:-1])


def _flat(z: tuple[float, ...]) -> float:  # noqa: ARG001  # flat: that is its point
    return 1.0


FUNCTIONS: dict[str, Callable[[tuple[float, ...]], float]] = {
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "rosenbrock": _rosenbrock,
    "cliff": _sphere,
    "idle": _idle,
    "noise": _flat,
}
