"""What measured throughputs say, and how many workers they speak for."""

from dataclasses import dataclass, field
from math import fsum, sqrt

from orchestrator.capacity.usl import NEAR_MOST, Law, Regime

LEAST_GAIN = 0.02
"""Of the throughput: less is taken for noise, however well it seems to be known."""


@dataclass(frozen=True, slots=True)
class Level:
    """A number of workers, and what they were measured to do together."""

    workers: float  # whole in a sweep, a mean over time while a run goes on
    throughput: float  # evaluations an hour
    noise: float = 0.0  # relative standard error of it


@dataclass(frozen=True, slots=True)
class Fit:
    """What measured levels say. `law` is None, and the rest from the levels, where too few."""

    levels: tuple[Level, ...]  # each number of workers once, in their order
    law: Law | None
    residual: float = 0.0  # root mean square, relative
    untold: tuple[str, ...] = field(default=())  # what these levels cannot tell, for people

    @property
    def is_told(self) -> bool:
        """Whether contention and coherency can be told apart, and so the optimum."""
        return self.law is not None and len(self.levels) > 2

    @property
    def optimum(self) -> float | None:
        """N*, infinite where more workers always do more; None where it cannot be told."""
        return self.law.optimum if self.law is not None and self.is_told else None

    @property
    def noise(self) -> float:
        """Relative: two throughputs no further apart may be the same."""
        own = sqrt(2 * fsum(level.noise**2 for level in self.levels) / len(self.levels))
        return min(0.5, max(LEAST_GAIN, own, self.residual))

    def regime(self, workers: float) -> Regime:
        """Where so many workers stand: as measured where they were, else by the law.

        Raises ValueError where one level alone was measured, and another is asked for.
        """
        if self._is_measured_retrograde(workers):
            return "retrograde"
        if self.law is not None:
            return self.law.regime(workers)
        if workers != self.levels[0].workers:
            raise ValueError(f"{self.levels[0].workers:g} workers alone say nothing of {workers:g}")
        return "linear"

    def _is_measured_retrograde(self, workers: float) -> bool:
        own = [level.throughput for level in self.levels if level.workers == workers]
        fewer = [level.throughput for level in self.levels if level.workers < workers]
        return bool(own and fewer) and own[0] < NEAR_MOST * max(fewer)

    def recommended(self, most: int | None = None) -> int:
        """How many workers to use, of `most` (default: as many as were measured) at most.

        The fewest whose throughput is the best but for noise, and never beyond the optimum. Where
        that cannot be told, one of those measured.
        """
        highest = most or int(max(level.workers for level in self.levels))
        if self.law is not None and self.is_told:
            return self.law.best(highest, self.noise)
        within = [level for level in self.levels if level.workers <= highest] or [self.levels[0]]
        enough = (1 - self.noise) * max(level.throughput for level in within)
        return int(next(level.workers for level in within if level.throughput >= enough))
