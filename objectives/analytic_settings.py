"""What may be asked of an analytic objective: how hard, how noisy, how misleading, how costly.

Settings that came later are written down only where they differ from their default, so that older
fingerprints stay.
"""

import math
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

MOST_EFFORT = 4.0
MOST_HALVINGS = 4


def _later(default: Any, **limits: Any) -> Any:
    return Field(default=default, exclude_if=lambda value: value == default, **limits)


class AnalyticSettings(BaseModel):
    """What a user may set. One seed and point have the same noise and failure everywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    dimension: int = Field(default=10, ge=2, le=1000)  # CMA-ES needs two
    noise: float = Field(default=0.0, ge=0, le=0.1)  # sd added; 5 of it keep the score positive
    seconds: float = Field(default=0.0, ge=0)  # of wall clock, or with `busy` of CPU time
    busy: bool = False
    failure_rate: float = Field(default=0.0, ge=0, le=1)  # share of (seed, point) pairs

    # What there is to find, and what else a search may find instead.
    available: float = _later(0.5, gt=0, le=0.5)  # what the optimum gains, relative to the baseline
    seed_noise: float = _later(0.0, ge=0, le=0.1)  # sd of what a seed adds to all points alike
    traps: float = _later(0.0, ge=0, le=1)  # share of (seed, point) pairs 5 sd of `noise` too low
    nan_radius: float | None = _later(None, gt=0, lt=1)  # in z, rms: nearer the optimum all diverge

    # A cheaper or a longer evaluation: `effort` scales its seconds and its noise's variance.
    effort: float = _later(1.0, gt=0, le=MOST_EFFORT)
    bias: float = _later(0.0, ge=-3, le=1)  # in z: below effort 1 the optimum is off by part of it
    persists: float = _later(1.0, ge=-1, le=1)  # share of the gain that is left at effort 4

    # Memory: it suffices after so many halvings. Each `lighter()` is one.
    memory_steps: int = _later(0, ge=0)
    halvings: int = _later(0, ge=0, le=MOST_HALVINGS)

    @property
    def noise_sd(self) -> float:
        """Of the noise of an evaluation at this effort."""
        return self.noise / math.sqrt(self.effort)

    @property
    def seed_noise_sd(self) -> float:
        """Of what a seed adds to every point at this effort."""
        return self.seed_noise / math.sqrt(self.effort)

    @property
    def shift(self) -> float:
        """How far in z, in every coordinate, the optimum lies from where it is at full effort."""
        return self.bias * max(0.0, 1.0 - self.effort)

    @property
    def kept(self) -> float:
        """Share of the gain left at this effort: linear in its logarithm from 1 to 4."""
        return 1.0 + (self.persists - 1.0) * math.log2(max(1.0, self.effort)) / 2.0

    @property
    def stream(self) -> str:
        """A suffix that gives every effort noise of its own."""
        return "" if self.effort == 1.0 else f" at effort {self.effort}"
