"""Problems by their names, so that another process can build them: our own, and trainings."""

import tempfile
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np

from objectives import registry
from objectives.api import Context, DivergedError, Objective, ObjectiveSpec
from scripts.bench.problems import (
    FAILED,
    FUNCTIONS,
    HELD_OUT,
    KNOWN,
    LEVELS,
    Kind,
    OwnProblem,
    Point,
    Problem,
    keyed,
    reflected,
    seed_of,
)

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


def _training(key: Key) -> Problem:
    return TrainingProblem(key.function, key.seed)


_BUILDERS: dict[str, Callable[[Key], Problem]] = {
    "own": _own,
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
    "training": [Key("training", "optimizer", 1)],
}
"""What --suite takes, by its first seed."""
