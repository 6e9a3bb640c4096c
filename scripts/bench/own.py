"""Our own suite: every function at every noise level, an instance per seed."""

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from scripts.bench.draws import keyed
from scripts.bench.functions import FUNCTIONS, Array, Function, Setting
from scripts.bench.noise import Kind, noise
from scripts.bench.problem import FAILED, Point

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
