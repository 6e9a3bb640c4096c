"""Problems by their names, so that another process can build them: our own, COCO's, trainings."""

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from objectives import registry
from objectives.api import Context, DivergedError, Objective, ObjectiveSpec
from scripts.bench.problems import (
    FAILED,
    FUNCTIONS,
    HELD_OUT,
    KNOWN,
    LEVELS,
    Array,
    Kind,
    OwnProblem,
    Point,
    Problem,
    keyed,
    reflected,
    seed_of,
)

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
        return float(self._clean(optimum_of(self._clean)))


def _theirs(point: Point) -> Array:
    there: Array = 10 * np.clip(np.array(point), 0, 1) - 5
    return there


def optimum_of(problem: Any) -> Array:
    """It writes the optimum into the working directory: there is no other way to it."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            problem._best_parameter("print")
            return np.loadtxt(BEST)
        finally:
            os.chdir(before)


SMALL = {"n_layer": 1, "n_embd": 32, "sequence_len": 64, "val_windows": 64, "num_batches": 80}
SETTINGS = {"optimizer": SMALL | {"space": "optimizer", "model": "gpt"}}
GAIN = {"optimizer": 0.05}
"""Bits per byte that the best found has on the baseline, on the same seeds.

A search of 240 evaluations had 0.047.
"""

FRESH = 8
"""Seeds, of no search, on which a recommendation and the default are compared."""

MOVES = (0.0, 0.1, 0.2)
"""How far in each knob a search begins from the baseline, by the instance's seed."""


class TrainingProblem:
    """The training's knobs; an instance begins elsewhere, and has other seeds."""

    group = "real"
    is_dear = True

    def __init__(self, space: str, instance: int) -> None:
        self._space, self._instance = space, instance

    @cached_property
    def _objective(self) -> Objective:
        return registry.load(ObjectiveSpec(name="nanochat", settings=SETTINGS[self._space]))

    @cached_property
    def default(self) -> Point:
        baseline = np.array(self._objective.space.baseline)
        rng = keyed("training", self._space, self._instance)
        distance = MOVES[self._instance % len(MOVES)]
        moved = reflected(baseline + distance * rng.standard_normal(len(baseline)))
        return tuple(moved.tolist())

    def score(self, point: Point, seed: int) -> float | None:
        return self._evaluate(point, seed_of("training", self._instance, seed))

    def _evaluate(self, point: Point, seed: int) -> float | None:
        inside = [min(1.0, max(0.0, unit)) for unit in point]
        with tempfile.TemporaryDirectory() as folder:
            context = Context(Path(folder), "cpu", 1, lambda _: None)
            try:
                knobs = self._objective.space.decode(inside)
                return self._objective.evaluate(knobs, seed, context).score
            except DivergedError:
                return None

    def _level(self, point: Point) -> float | None:
        """Mean score on the fresh seeds; None where one fails."""
        seeds = [seed_of("fresh", self._instance, number) for number in range(FRESH)]
        scores = [self._evaluate(point, seed) for seed in seeds]
        healthy = [score for score in scores if score is not None]
        return fmean(healthy) if len(healthy) == FRESH else None

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The best level there is, as far as known, and the default's."""
        baseline, start = (self._level(p) for p in (self._objective.space.baseline, self.default))
        if baseline is None or start is None:
            raise ValueError(f"instance {self._instance} of {self._space} begins where it fails")
        return baseline - GAIN[self._space], start

    def regret(self, point: Point) -> float:
        if point == self.default:
            return 1.0
        level, (best, start) = self._level(point), self._ends
        return FAILED if level is None else (level - best) / (start - best)


@dataclass(frozen=True, slots=True)
class Key:
    """Which problem. As text it is one word, `suite:function:seed:level:kind`."""

    suite: str
    function: str
    seed: int
    level: str = "0"
    kind: str = "white"

    def __str__(self) -> str:
        return f"{self.suite}:{self.function}:{self.seed}:{self.level}:{self.kind}"

    @classmethod
    def parse(cls, text: str) -> "Key":
        suite, function, seed, level, kind = text.split(":")
        return cls(suite, function, int(seed), level, kind)


def _own(key: Key) -> Problem:
    kind: Kind = "shared" if key.kind == "shared" else "white"
    return OwnProblem(key.function, key.seed, key.level, kind)


def _coco(key: Key) -> Problem:
    return CocoProblem(key.suite, int(key.function), key.seed)


def _training(key: Key) -> Problem:
    return TrainingProblem(key.function, key.seed)


_BUILDERS: dict[str, Callable[[Key], Problem]] = {
    "own": _own,
    "bbob": _coco,
    "bbob-noisy": _coco,
    "training": _training,
}


def load(key: Key) -> Problem:
    """The problem of that name."""
    return _BUILDERS[key.suite](key)


def _of_own(functions: Iterable[str], kinds: tuple[str, ...]) -> list[Key]:
    return [
        Key("own", function, 0, level, kind)
        for kind in kinds
        for level in LEVELS
        for function in functions
        if kind == "white" or LEVELS[level]
    ]


def keys(suite: str, seeds: range) -> Iterator[Key]:
    """Every problem of a suite with those seeds."""
    every = SUITES[suite]
    for seed in seeds:
        for key in every:
            yield Key(key.suite, key.function, seed, key.level, key.kind)


SUITES: dict[str, list[Key]] = {
    "known": _of_own(KNOWN, ("white",)),
    "held-out": _of_own(HELD_OUT, ("white",)),
    "shared": [key for key in _of_own(FUNCTIONS, ("shared",)) if key.level in {"1/3", "1"}],
    "bbob": [Key("bbob", str(f), 1) for f in range(1, 25)],
    "bbob-noisy": [Key("bbob-noisy", str(f), 1) for f in range(101, 131)],
    "training": [Key("training", "optimizer", 1)],
}
"""What --suite takes, by its first seed."""
