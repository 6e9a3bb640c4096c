"""Real trainings: a small GPT and its optimiser, as dear as a second each.

Nobody knows the optimum, so what is available is what the best search so far has gained.
"""

import tempfile
from functools import cached_property
from pathlib import Path
from statistics import fmean

import numpy as np

from objectives.api import Context, DivergedError, Objective, ObjectiveSpec
from objectives.registry import load
from scripts.bench.draws import keyed, seed_of
from scripts.bench.own import reflected
from scripts.bench.problem import FAILED, Point

SMALL = {"n_layer": 1, "n_embd": 32, "sequence_len": 64, "val_windows": 64, "num_batches": 80}
SETTINGS = {"optimizer": SMALL | {"space": "optimizer", "model": "gpt"}}
GAIN = {"optimizer": 0.05}
"""Bits per byte that the best found has on the baseline, on the same seeds.

A search of 240 evaluations had 0.047.
"""

FRESH = 8
"""Seeds, of no search, on which a recommendation and the default are compared."""

DISTANCES = (0.0, 0.1, 0.2)
"""How far in each knob a search begins from the baseline, by the instance's seed."""


class TrainingProblem:
    """The training's knobs; an instance begins elsewhere, and has other seeds."""

    group = "real"
    is_dear = True

    def __init__(self, space: str, instance: int) -> None:
        self._space, self._instance = space, instance

    @cached_property
    def _objective(self) -> Objective:
        return load(ObjectiveSpec(name="nanochat", settings=SETTINGS[self._space]))

    @cached_property
    def default(self) -> Point:
        baseline = np.array(self._objective.space.baseline)
        rng = keyed("training", self._space, self._instance)
        distance = DISTANCES[self._instance % len(DISTANCES)]
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
