"""COCO's suites bbob and bbob-noisy, moved from [-5, 5] to the unit box.

N. Hansen et al., "COCO: a platform for comparing continuous optimizers in a black-box setting",
Optimization Methods and Software 36 (2021) 114-144. Its noise is its own generator's: it begins
anew with every problem and depends on the order of evaluations.
"""

import os
import tempfile
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from scripts.bench.draws import keyed
from scripts.bench.functions import Array
from scripts.bench.problem import Point

WITHOUT_NOISE = {
    101: 1,
    104: 8,
    107: 1,
    110: 8,
    113: 7,
    116: 10,
    119: 14,
    122: 17,
    125: 19,
    128: 21,
}
"""Each three noisy functions share a function of bbob, instance by instance: the first one's."""

ELLIPSOIDS = range(116, 119)
"""Of condition 1e4 in the noisy suite, not 1e6: the third one's noise strikes one time in five."""

NOISES = ("Gaussian", "uniform", "Cauchy")
LOOKS = 51
BEST = Path("._bbob_problem_best_parameter.txt")
"""Where COCO writes a problem's optimum when asked for it."""


class CocoProblem:
    """One function and instance in `dimension` dimensions; true values come without noise."""

    is_dear = False

    def __init__(self, suite: str, function: int, instance: int, dimension: int = 10) -> None:
        self._is_noisy, self._function = suite == "bbob-noisy", function
        self._instance, self._dimension = instance, dimension
        self._problem = self._get(suite, function)

    def _get(self, suite: str, function: int) -> Any:
        import cocoex

        which = f"dimensions:{self._dimension} instance_indices:{self._instance}"
        whole = cocoex.Suite(suite, "", which)
        number = self._instance
        return whole.get_problem_by_function_dimension_instance(function, self._dimension, number)

    @property
    def group(self) -> str:
        if not self._is_noisy:
            return "0"
        strength = "moderate" if self._function < 107 else "severe"
        return f"{NOISES[(self._function - 101) % 3]}, {strength}"

    @cached_property
    def default(self) -> Point:
        drawn = keyed("coco", self._function, self._instance).uniform(0.25, 0.75, self._dimension)
        return tuple(drawn.tolist())

    def score(self, point: Point, seed: int) -> float | None:  # noqa: ARG002
        return float(self._problem(_theirs(point)))

    def regret(self, point: Point) -> float:
        value, best, start = self._true(point), self._best, self._true(self.default)
        return max(0.0, (value - best) / (start - best))

    @cached_property
    def _clean(self) -> Any:
        if not self._is_noisy:
            return self._get("bbob", self._function)
        if self._function in ELLIPSOIDS:
            return self._get("bbob-noisy", ELLIPSOIDS[-1])
        return self._get("bbob", WITHOUT_NOISE[self._function - (self._function - 101) % 3])

    def _true(self, point: Point) -> float:
        looks = LOOKS if self._is_noisy and self._function in ELLIPSOIDS else 1
        return float(np.median([self._clean(_theirs(point)) for _ in range(looks)]))

    @cached_property
    def _best(self) -> float:
        return float(self._clean(_optimum(self._clean)))


def _theirs(point: Point) -> Array:
    there: Array = 10 * np.clip(np.array(point), 0, 1) - 5
    return there


def _optimum(problem: Any) -> Array:
    """It writes the optimum into the working directory: there is no other way to it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            problem._best_parameter("print")
            return np.loadtxt(BEST)
        finally:
            os.chdir(before)
