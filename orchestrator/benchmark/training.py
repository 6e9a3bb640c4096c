"""Real trainings: a small GPT and its optimiser, as dear as a second each.

Nobody knows the optimum, so what is available is what the best search so far has gained.
"""

import tempfile
from functools import cached_property
from pathlib import Path
from statistics import fmean

from objectives.api import Context, DivergedError, Objective, ObjectiveSpec
from objectives.registry import load
from orchestrator.benchmark.draws import seed_of
from orchestrator.benchmark.problem import FAILED, Point

SMALL = {"n_layer": 1, "n_embd": 32, "sequence_len": 64, "val_windows": 64, "num_batches": 80}
SETTINGS = {
    "optimizer": SMALL | {"space": "optimizer", "model": "gpt"},
    "synaptic": SMALL | {"space": "synaptic"},
}
AVAILABLE = {"optimizer": 0.5, "synaptic": 0.1}
"""Bits per byte between the default and the best found."""

FRESH = 8
"""Seeds, of no search, on which a recommendation and the default are compared."""


class TrainingProblem:
    """The training's knobs from its baseline; an instance is other seeds."""

    group = "real"
    is_dear = True

    def __init__(self, space: str, instance: int) -> None:
        self._space, self._instance = space, instance
        self._levels: dict[Point, float] = {}

    @cached_property
    def _objective(self) -> Objective:
        return load(ObjectiveSpec(name="nanochat", settings=SETTINGS[self._space]))

    @property
    def default(self) -> Point:
        return tuple(self._objective.space.baseline)

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

    def regret(self, point: Point) -> float:
        """Over the same fresh seeds as the default; a recommendation that fails on one has 2."""
        if point == self.default:
            return 1.0
        seeds = [seed_of("fresh", self._instance, number) for number in range(FRESH)]
        own, start = ([self._evaluate(p, s) for s in seeds] for p in (point, self.default))
        if None in own or None in start:
            return FAILED
        gain = fmean(s for s in start if s is not None) - fmean(s for s in own if s is not None)
        return 1 - gain / AVAILABLE[self._space]
