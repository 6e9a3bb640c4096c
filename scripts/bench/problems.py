"""Problems in the unit box whose best point is known, and the noise of their evaluations.

Most functions are the published ones of N. Hansen, S. Finck, R. Ros and A. Auger, "Real-parameter
black-box optimization benchmarking 2009: noiseless functions definitions", INRIA RR-6829, moved and
scaled to the box; the others imitate what tuning a training meets: divergence, knobs that do
nothing, bounds that bind. A function gives NaN where an evaluation fails. Of a real run's noise a
part is common to all candidates on one seed, a part is smooth in the knobs, so that a fixed seed
bends the landscape, and the rest is each evaluation's own.
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
"""Of every problem and of the race: raise it with any change that moves a result."""

FAILED = 2.0
"""The regret of a recommendation that fails: as bad again as the default."""


class Problem(Protocol):
    """An objective in the unit box, and the truth about it that no contender sees."""

    @property
    def default(self) -> Point:
        """Where every search begins."""

    @property
    def group(self) -> str:
        """Which problems it is counted with: its noise."""

    @property
    def is_dear(self) -> bool:
        """Whether the truth takes long: it is looked at twice, not at every spend."""

    def score(self, point: Point, seed: int) -> float | None:
        """What one evaluation finds, lower is better; None where it fails."""

    def regret(self, point: Point) -> float:
        """What is left of the available improvement: 0 at the optimum, 1 at the default."""


def _digest(parts: tuple[object, ...]) -> bytes:
    return blake2b(repr(parts).encode(), digest_size=16).digest()


def keyed(*parts: object) -> np.random.Generator:
    """A generator that is this key's alone."""
    entropy = int.from_bytes(_digest(parts), "little")
    return np.random.Generator(np.random.Philox(np.random.SeedSequence(entropy)))


def seed_of(*parts: object) -> int:
    """A seed that any library takes: from 1 to 2^31 - 1."""
    return 1 + int.from_bytes(_digest(parts)[:8], "little") % (2**31 - 1)


def normal(*parts: object) -> float:
    """One standard normal number that is this key's (G. E. P. Box and M. E. Muller, 1958)."""
    digest = _digest(parts)
    first, second = (int.from_bytes(half, "little") for half in (digest[:8], digest[8:]))
    return sqrt(-2 * log((first + 1) / 2**64)) * cos(2 * pi * second / 2**64)


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


Kind = Literal["white", "shared"]

SHARES: dict[Kind, tuple[float, float, float]] = {
    "white": (0.0, 0.0, 1.0),
    "shared": (0.5, 0.3, 0.2),
}
"""Of the variance: common to the seed, smooth in the point, the evaluation's own."""

WAVES = 64
LENGTH = 0.18
"""Of the smooth part: as measured on trainings, correlation 0.2 at a distance of 0.1 per knob."""


def noise(key: str, kind: Kind, point: Point, seed: int) -> float:
    """Of standard deviation 1."""
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
    """Random Fourier features (A. Rahimi and B. Recht, NIPS 2007) of a Gaussian process."""
    rng = keyed(key, "smooth", seed)
    waves = rng.standard_normal((WAVES, dimension)) / LENGTH
    return waves, rng.uniform(0, 2 * np.pi, WAVES)


DISTANCES = (0.1, 0.2, 0.3)
"""How far the optimum is from the default in each coordinate, by the instance's seed."""

LEVELS = {"0": 0.0, "0.1": 0.1, "1/3": 1 / 3, "1": 1.0}
"""The noise's standard deviation, as a share of the available improvement."""


class OwnProblem:
    """A function, an instance of it, a noise. Scores are regrets with the noise added."""

    is_dear = False

    def __init__(
        self, function: str, seed: int, level: str = "0", kind: Kind = "white", dimension: int = 10
    ) -> None:
        self._name, self._seed = f"{function} {seed}", seed
        self._kind: Kind = kind
        self._level, self._sd = level, LEVELS[level]
        self._function, self._dimension = function, dimension

    @property
    def group(self) -> str:
        return self._level if self._kind == "white" or not self._sd else f"{self._level} shared"

    @cached_property
    def setting(self) -> Setting:
        """x0 ~ U(0.25, 0.75), the optimum normally distributed around it, reflected inside."""
        rng = keyed("instance", self._name, self._dimension)
        default = rng.uniform(0.25, 0.75, self._dimension)
        distance = DISTANCES[self._seed % len(DISTANCES)]
        optimum = reflected(default + distance * rng.standard_normal(self._dimension))
        return Setting(default, optimum, rng)

    @property
    def default(self) -> Point:
        return tuple(self.setting.default.tolist())

    @cached_property
    def _value(self) -> tuple[Function, float]:
        """The function, and its value at the default."""
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
    """Folded at the faces of the unit box until it is inside."""
    folded: Array = 1 - np.abs(x % 2 - 1)
    return folded
