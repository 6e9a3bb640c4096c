"""Problems in the unit box with a known optimum, and the noise of their evaluations.

Most functions are those of N. Hansen, S. Finck, R. Ros and A. Auger, "Real-parameter black-box
optimization benchmarking 2009: noiseless functions definitions", INRIA RR-6829 (BBOB), moved and
scaled to the box. The others imitate the tuning of a training: divergence, knobs without effect,
active bounds. A function returns NaN where an evaluation fails. As in real trainings, the noise has
three parts: one common to all candidates on a seed, one smooth in the knobs (a fixed seed bends the
landscape), and one independent in each evaluation.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from hashlib import blake2b
from math import cos, log, pi, sqrt
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt

Point = tuple[float, ...]

VERSION = 1
"""Version of problems and race: raise it with any change that moves a result."""

FAILED = 2.0
"""Regret of a recommendation that fails; the default has 1."""


class Problem(Protocol):
    """An objective in the unit box, with its true values, which contenders do not see."""

    @property
    def default(self) -> Point:
        """The point where every search begins."""

    @property
    def group(self) -> str:
        """Name of the group it is reported in: its noise."""

    def score(self, point: Point, seed: int) -> float | None:
        """Return the score of one evaluation, lower is better; None if it fails."""

    def regret(self, point: Point) -> float:
        """Return the share of the possible gain that is missed: 0 at the optimum, 1 at x0."""


def _digest(parts: tuple[object, ...]) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def keyed(*parts: object) -> np.random.Generator:
    """Return a generator seeded by the key."""
    entropy = int.from_bytes(_digest(parts), "little")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def seed_of(*parts: object) -> int:
    """Return a seed from 1 to 2^31 - 1, which any library accepts."""
    return 1 + int.from_bytes(_digest(parts)[:8], "little") % (2**31 - 1)


def normal(*parts: object) -> float:
    """Return a standard normal number that follows from the key (Box and Muller, 1958)."""
    digest = _digest(parts)
    first, second = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    return sqrt(-2 * log((first + 1) / 2**64)) * cos(2 * pi * second / 2**64)


Array = npt.NDArray[np.float64]
Function = Callable[[Array], float]

SCALE = 0.2
"""Length in the box of one unit of a function's coordinates."""

CLIFF = 0.08
"""Distance from the optimum at which evaluations begin to fail."""


@dataclass(frozen=True, slots=True)
class Setting:
    """An instance's default and optimum in the box, and the generator of its other draws."""

    default: Array
    optimum: Array
    rng: np.random.Generator

    @property
    def dimension(self) -> int:
        return len(self.optimum)

    def straight(self, x: Array) -> Array:
        """Return the function's coordinates, with the optimum at 0."""
        return (x - self.optimum) / SCALE

    def rotation(self) -> Array:
        """Return a uniformly drawn rotation (F. Mezzadri, "How to generate random matrices")."""
        q, r = np.linalg.qr(self.rng.standard_normal((self.dimension, self.dimension)))
        rotation: Array = q * np.sign(np.diag(r))
        return rotation

    def shares(self) -> Array:
        """Return 0 to 1 in equal steps, one per coordinate, in random order."""
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
    """The rotated ellipsoid of condition 1e2."""
    return _rotated_ellipsoid(at, 1e2)


def steep(at: Setting) -> Function:
    """The rotated ellipsoid of condition 1e4."""
    return _rotated_ellipsoid(at, 1e4)


def rosenbrock(at: Setting) -> Function:
    """A curved valley, rotated (BBOB f9, wider)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = 1 + rotation @ at.straight(x)
        return float(np.sum(100 * (y[1:] - y[:-1] ** 2) ** 2 + (1 - y[:-1]) ** 2))

    return value


def valley(at: Setting) -> Function:
    """One long curved direction; the others are 100 times steeper (after BBOB f12)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        across = y[1:].copy()
        across[0] -= 0.5 * y[0] ** 2
        return float(y[0] ** 2 + 1e2 * (across @ across))

    return value


def few(at: Setting) -> Function:
    """Three knobs interact; the others have no effect."""
    some = at.rng.permutation(at.dimension)[:3]
    mixing = at.rng.standard_normal((3, 3))
    form = mixing @ mixing.T + np.eye(3)

    def value(x: Array) -> float:
        z = at.straight(x)[some]
        return float(z @ form @ z)

    return value


def plateau(at: Setting) -> Function:
    """A Gaussian basin in a plain: far away the slope is almost 0."""
    return lambda x: float(1 - np.exp(-np.sum((x - at.optimum) ** 2) / (2 * 0.3**2)))


def edge(at: Setting) -> Function:
    """A separable bowl whose minimum lies outside the box in three coordinates."""
    bottom, weights = at.optimum.copy(), 10 ** at.shares()
    for knob in at.rng.permutation(at.dimension)[:3]:
        bottom[knob] = 1.1 if at.default[knob] > 0.5 else -0.1
    best = float(weights @ (np.clip(bottom, 0, 1) - bottom) ** 2)
    return lambda x: float(weights @ (x - bottom) ** 2) - best


def ripple(at: Setting) -> Function:
    """A rotated bowl with waves: many optima, the best in the middle (BBOB f15)."""
    rotation = at.rotation()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(y @ y + 0.2 * np.sum(1 - np.cos(3 * np.pi * y)))

    return value


def cliff(at: Setting) -> Function:
    """Interacting knobs, two of which fail slightly beyond their best value."""
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
    """A kink along every axis, steeper on one side."""
    rotation, weights = at.rotation(), 10 ** at.shares()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(weights @ (np.abs(y) * np.where(y > 0, 3, 1)))

    return value


def bowl(at: Setting) -> Function:
    """Like the logarithm of a learning rate: flat on one side, exponential on the other."""
    turn, weights = 2 * at.signs(), 10 ** at.shares()

    def value(x: Array) -> float:
        z = at.straight(x)
        t = np.clip(turn * (z + 0.3 * np.roll(z, 1)), -30, 30)
        return float(weights @ (np.expm1(t) - t))

    return value


def steps(at: Setting) -> Function:
    """Terraces: most small steps change nothing (BBOB f7)."""
    rotation, weights = at.rotation(), 1e1 ** at.shares()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        rounded = np.where(np.abs(y) > 0.5, np.round(2 * y) / 2, np.round(10 * y) / 10)
        return float(weights @ rounded**2)

    return value


def sector(at: Setting) -> Function:
    """Good only within a narrow sector of directions (BBOB f6)."""
    rotation, signs = at.rotation(), at.signs()

    def value(x: Array) -> float:
        y = rotation @ at.straight(x)
        return float(np.sum(np.where(y * signs > 0, 10 * y, y) ** 2) ** 0.9)

    return value


def decoy(at: Setting) -> Function:
    """Two basins around the default; the wrong one keeps 0.4 of the regret (after f24)."""
    wrong = np.clip(2 * at.default - at.optimum, 0, 1)
    start = float(np.sum((at.default - at.optimum) ** 2))

    def value(x: Array) -> float:
        right = float(np.sum((x - at.optimum) ** 2))
        return min(right, 0.4 * start + 0.6 * float(np.sum((x - wrong) ** 2)))

    return value


_KNOWN = (sphere, ellipsoid, rotated, steep, rosenbrock, valley, few, plateau, edge, ripple, cliff)
KNOWN: dict[str, Callable[[Setting], Function]] = {f.__name__: f for f in _KNOWN}
"""The functions on which the search's defaults were chosen."""

HELD_OUT: dict[str, Callable[[Setting], Function]] = {
    f.__name__: f for f in (powers, kinks, bowl, steps, sector, decoy)
}
"""Functions that no default was chosen on."""

FUNCTIONS = KNOWN | HELD_OUT


Kind = Literal["white", "shared"]

SHARES: dict[Kind, tuple[float, float, float]] = {
    "white": (0.0, 0.0, 1.0),
    "shared": (0.5, 0.3, 0.2),
}
"""Shares of the variance: common to a seed, smooth in the point, independent."""

WAVES = 64
LENGTH = 0.18
"""Length scale of the smooth part: correlation 0.2 at 0.1 per knob, as measured on trainings."""


def noise(key: str, kind: Kind, point: Point, seed: int) -> float:
    """Return the noise of an evaluation, with standard deviation 1."""
    common, smooth, own = SHARES[kind]
    total: float = own**0.5 * normal(key, "own", seed, point)
    if common:
        total += common**0.5 * normal(key, "common", seed)
    if smooth:
        total += smooth**0.5 * _smooth(key, point, seed)
    return total


def _smooth(key: str, point: Point, seed: int) -> float:
    waves, phases = _field(key, len(point), seed)
    return float(np.sqrt(2 / WAVES) * np.sum(np.cos(waves @ np.array(point) + phases)))


@lru_cache(maxsize=32)
def _field(key: str, dimension: int, seed: int) -> tuple[Array, Array]:
    """Return random Fourier features of a Gaussian process (A. Rahimi and B. Recht, 2007)."""
    rng = keyed(key, "smooth", seed)
    waves = rng.standard_normal((WAVES, dimension)) / LENGTH
    return waves, rng.uniform(0, 2 * np.pi, WAVES)


DIMENSION = 10
DISTANCES = (0.1, 0.2, 0.3)
"""Scale of the distance from default to optimum per coordinate, by the instance's seed."""

LEVELS = {"0": 0.0, "0.1": 0.1, "1/3": 1 / 3, "1": 1.0}
"""Standard deviation of the noise, as a share of the possible gain."""


class OwnProblem:
    """An instance of a function with noise. A score is the regret plus noise."""

    def __init__(self, function: str, seed: int, level: str = "0", kind: Kind = "white") -> None:
        self._name, self._seed = f"{function} {seed}", seed
        self._kind: Kind = kind
        self._level, self._sd = level, LEVELS[level]
        self._function = function

    @property
    def group(self) -> str:
        return self._level if self._kind == "white" or not self._sd else f"{self._level} shared"

    @cached_property
    def setting(self) -> Setting:
        """x0 ~ U(0.25, 0.75); the optimum is normal around it, reflected into the box."""
        rng = keyed("instance", self._name, DIMENSION)
        default = rng.uniform(0.25, 0.75, DIMENSION)
        distance = DISTANCES[self._seed % len(DISTANCES)]
        optimum = reflected(default + distance * rng.standard_normal(DIMENSION))
        return Setting(default, optimum, rng)

    @property
    def default(self) -> Point:
        return tuple(self.setting.default.tolist())

    @cached_property
    def _value(self) -> tuple[Function, float]:
        """The function and its value at the default."""
        function = FUNCTIONS[self._function](self.setting)
        return function, function(self.setting.default)

    def _relative(self, point: Sequence[float]) -> float:
        function, start = self._value
        return function(np.clip(np.array(point), 0, 1)) / start

    def score(self, point: Point, seed: int) -> float | None:
        value = self._relative(point)
        if np.isnan(value):
            return None
        return value + self._sd * noise(self._name, self._kind, point, seed) if self._sd else value

    def regret(self, point: Point) -> float:
        value = self._relative(point)
        return FAILED if np.isnan(value) else value


def reflected(x: Array) -> Array:
    """Return the point reflected at the faces of the unit box until it is inside."""
    folded: Array = 1 - np.abs(x % 2 - 1)
    return folded
