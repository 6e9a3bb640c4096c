"""What a race is run on."""

from typing import Protocol

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
