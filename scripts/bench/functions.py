"""Functions in the unit box whose best value is 0, at a point that is known.

Most are the published ones of N. Hansen, S. Finck, R. Ros and A. Auger, "Real-parameter black-box
optimization benchmarking 2009: noiseless functions definitions", INRIA RR-6829, moved and scaled
to the box; the others imitate what tuning a training meets: divergence, knobs that do nothing,
bounds that bind. A function gives NaN where an evaluation fails.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Function = Callable[[Array], float]

SCALE = 0.2
"""How far in the box is one unit of a function's own coordinates."""

CLIFF = 0.08
"""How far behind the optimum evaluations begin to fail."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where an instance lies in its box, and the draws that make it."""

    default: Array
    optimum: Array
    rng: np.random.Generator

    @property
    def dimension(self) -> int:
        return len(self.optimum)

    def straight(self, x: Array) -> Array:
        """The function's own coordinates, the optimum at 0."""
        return (x - self.optimum) / SCALE

    def rotation(self) -> Array:
        """A rotation, uniformly drawn (F. Mezzadri, "How to generate random matrices", 2007)."""
        q, r = np.linalg.qr(self.rng.standard_normal((self.dimension, self.dimension)))
        rotation: Array = q * np.sign(np.diag(r))
        return rotation

    def shares(self) -> Array:
        """0 to 1 in equal steps, one for each coordinate, in a drawn order."""
        return self.rng.permutation(np.linspace(0, 1, self.dimension))

    def signs(self) -> Array:
        return self.rng.choice([-1.0, 1.0], self.dimension)


def sphere(at: Setting) -> Function:
    return lambda x: float(np.sum(at.straight(x) ** 2))


def ellipsoid(at: Setting) -> Function:
    """Separable, axes weighted 1 to 1e2."""
    weights = 1e2 ** at.shares()
    return lambda x: float(weights @ at.straight(x) ** 2)


def _rotated_ellipsoid(at: Setting, condition: float) -> Function:
    rotation, weights = at.rotation(), condition ** at.shares()
    return lambda x: float(weights @ (rotation @ at.straight(x)) ** 2)


def rotated(at: Setting) -> Function:
    """The ellipsoid of condition 1e2, its axes anywhere."""
    return _rotated_ellipsoid(at, 1e2)


def steep(at: Setting) -> Function:
    """The ellipsoid of condition 1e4, its axes anywhere."""
    return _rotated_ellipsoid(at, 1e4)


def rosenbrock(at: Setting) -> Function:
    """A curved valley through most coordinates, rotated (BBOB f9, wider)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = 1 + rotation @ at.straight(x)
        return float(np.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2))

    return value


def valley(at: Setting) -> Function:
    """One long direction that bends, the others a hundred times as narrow (after BBOB f12)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        across = y[1:].copy()
        across[0] -= 0.5 * y[0] ** 2
        return float(y[0] ** 2 + 1e2 * (across @ across))

    return value


def few(at: Setting) -> Function:
    """Three knobs matter, and lean on each other; the others do nothing."""
    some = at.rng.permutation(at.dimension)[:3]
    mixing = at.rng.standard_normal((3, 3))
    form = mixing @ mixing.T + np.eye(3)

    def value(x: Array) -> float:
        z = at.straight(x)[some]
        return float(z @ form @ z)

    return value


def plateau(at: Setting) -> Function:
    """A basin of Gaussian shape in a plain: far away there is hardly a slope."""
    return lambda x: float(1 - np.exp(-np.sum((x - at.optimum) ** 2) / (2 * 0.3**2)))


def edge(at: Setting) -> Function:
    """A separable bowl whose bottom lies outside the box in three coordinates."""
    bottom, weights = at.optimum.copy(), 10 ** at.shares()
    for knob in at.rng.permutation(at.dimension)[:3]:
        bottom[knob] = 1.1 if at.default[knob] > 0.5 else -0.1
    best = float(weights @ (np.clip(bottom, 0, 1) - bottom) ** 2)
    return lambda x: float(weights @ (x - bottom) ** 2) - best


def ripple(at: Setting) -> Function:
    """A bowl with waves on it, rotated: many optima, the deepest in the middle (BBOB f15)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(y @ y + 0.2 * np.sum(1 - np.cos(3 * np.pi * y)))

    return value


def cliff(at: Setting) -> Function:
    """Knobs that lean on each other, and two that fail a little beyond their best value."""
    rotation, weights = at.rotation(), 30 ** at.shares()
    some = at.rng.permutation(at.dimension)[:2]
    onward = np.where(at.optimum[some] < at.default[some], -1.0, 1.0)

    def value(x: Array) -> float:
        if np.any(onward * (x - at.optimum)[some] > CLIFF):
            return np.nan
        return float(weights @ (rotation @ at.straight(x)) ** 2)

    return value


def powers(at: Setting) -> Function:
    """Flatter around the optimum in some directions than in others (BBOB f14)."""
    rotation, exponents = at.rotation(), 2 + 4 * at.shares()
    return lambda x: float(np.sqrt(np.sum(np.abs(rotation @ at.straight(x)) ** exponents)))


def kinks(at: Setting) -> Function:
    """A crease along every axis, steeper on one side of it than on the other."""
    rotation, weights = at.rotation(), 10 ** at.shares()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(weights @ (np.abs(y) * np.where(y > 0, 3, 1)))

    return value


def bowl(at: Setting) -> Function:
    """As the logarithm of a learning rate: slow on one side, ever steeper on the other."""
    turn, weights = 2 * at.signs(), 10 ** at.shares()

    def value(x: Array) -> float:
        z = at.straight(x)
        t = np.clip(turn * (z + 0.3 * np.roll(z, 1)), -30, 30)
        return float(weights @ (np.expm1(t) - t))

    return value


def steps(at: Setting) -> Function:
    """Terraces: most small moves change nothing (BBOB f7)."""
    rotation, weights = at.rotation(), 1e1 ** at.shares()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        rounded = np.where(np.abs(y) > 0.5, np.round(2 * y) / 2, np.round(10 * y) / 10)
        return float(weights @ rounded**2)

    return value


def sector(at: Setting) -> Function:
    """Good only within a narrow sector of all directions (BBOB f6)."""
    rotation, signs = at.rotation(), at.signs()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(np.sum(np.where(y * signs > 0, 10 * y, y) ** 2) ** 0.9)

    return value


def decoy(at: Setting) -> Function:
    """Two basins, the default between them; the wrong one keeps 0.4 of the regret (after f24)."""
    wrong = np.clip(2 * at.default - at.optimum, 0, 1)
    start = float(np.sum((at.default - at.optimum) ** 2))

    def value(x: Array) -> float:
        right = float(np.sum((x - at.optimum) ** 2))
        return min(right, 0.4 * start + 0.6 * float(np.sum((x - wrong) ** 2)))

    return value


KNOWN: dict[str, Callable[[Setting], Function]] = {
    f.__name__: f
    for f in (
        sphere,
        ellipsoid,
        rotated,
        steep,
        rosenbrock,
        valley,
        few,
        plateau,
        edge,
        ripple,
        cliff,
    )
}
"""The kinds of function on which the search's defaults were chosen."""

HELD_OUT: dict[str, Callable[[Setting], Function]] = {
    f.__name__: f for f in (powers, kinks, bowl, steps, sector, decoy)
}
"""Those that nothing was chosen on."""

FUNCTIONS = KNOWN | HELD_OUT
