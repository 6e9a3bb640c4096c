"""Problems by name, so that another process can build them: functions, and small trainings."""

import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
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
"""Largest known gain over the baseline in bits per byte; a search of 240 evaluations had 0.047."""

FRESH = 8
"""Number of fresh seeds on which a recommendation and the default are compared."""

MOVES = (0.0, 0.1, 0.2)
"""Scale of the distance from baseline to x0 per knob, by the instance's seed."""


class TrainingProblem:
    """A small training; instances differ in x0 and in their seeds."""

    group = "real"
    is_expensive = True

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
        """Return the mean score on the fresh seeds; None if one fails."""
        seeds = [seed_of("fresh", self._instance, number) for number in range(FRESH)]
        scores = [self._evaluate(point, seed) for seed in seeds]
        healthy = [score for score in scores if score is not None]
        return fmean(healthy) if len(healthy) == FRESH else None

    @cached_property
    def _ends(self) -> tuple[float, float]:
        """The best known level, and the default's."""
        baseline, start = (self._level(p) for p in (self._objective.space.baseline, self.default))
        if baseline is None or start is None:
            raise ValueError(f"the default of instance {self._instance} of {self._space} fails")
        return baseline - GAIN[self._space], start

    def regret(self, point: Point) -> float:
        if point == self.default:
            return 1.0
        level, (best, start) = self._level(point), self._ends
        return FAILED if level is None else (level - best) / (start - best)


@dataclass(frozen=True, slots=True)
class Key:
    """A problem's name, as text `suite:function:seed:level:kind`."""

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


def load(key: Key) -> Problem:
    """Return the problem of that name."""
    if key.suite == "training":
        return TrainingProblem(key.function, key.seed)
    kind: Kind = "shared" if key.kind == "shared" else "white"
    return OwnProblem(key.function, key.seed, key.level, kind)


def _own(functions: Iterable[str], levels: Iterable[str], kind: Kind = "white") -> list[Key]:
    return [Key("own", function, 0, level, kind) for level in levels for function in functions]


def keys(suite: str, seeds: range) -> Iterator[Key]:
    """Yield every problem of a suite with each of the seeds."""
    for seed in seeds:
        for key in SUITES[suite]:
            yield replace(key, seed=seed)


SUITES: dict[str, list[Key]] = {
    "known": _own(KNOWN, LEVELS),
    "held-out": _own(HELD_OUT, LEVELS),
    "shared": _own(FUNCTIONS, ("1/3", "1"), "shared"),
    "training": [Key("training", "optimizer", 1)],
}
"""The choices of --suite; the seed of each problem is replaced."""
