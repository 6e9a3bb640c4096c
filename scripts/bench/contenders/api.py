"""What a contender is."""

from collections.abc import Sequence
from typing import NamedTuple, Protocol

from scripts.bench.budgets import Budget
from scripts.bench.problem import Point


class Trial(NamedTuple):
    """An evaluation that is asked for. Those of one ask with equal `repeat` share their seed.

    With `batch`, those of every ask that names the same one do.
    """

    point: Point
    repeat: int = 0
    batch: int | None = None


class Start(NamedTuple):
    """What a contender knows before it begins."""

    default: Point
    budget: Budget
    seed: int

    @property
    def dimension(self) -> int:
        return len(self.default)


class Contender(Protocol):
    """Proposes points, learns from their scores, and names the one that it would use."""

    def ask(self) -> Sequence[Trial]:
        """What to evaluate next, in any number; none when it has come to its end."""

    def tell(self, trials: Sequence[Trial], scores: Sequence[float | None], /) -> None:
        """The scores of all that was asked; None is a failed evaluation."""

    def recommend(self) -> Point:
        """What its user would take now."""


class BestSeen:
    """The point with the best score so far; the default before there is one."""

    def __init__(self, default: Point) -> None:
        self.point = default
        self._score = float("inf")

    def see(self, trials: Sequence[Trial], scores: Sequence[float | None]) -> None:
        for trial, score in zip(trials, scores, strict=True):
            if score is not None and score < self._score:
                self.point, self._score = trial.point, score
