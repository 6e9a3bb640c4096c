"""Functions whose optimum is known, with noise, failures and cost on request.

Every function is written in z, one coordinate per knob: z = 0 is the baseline, z = 1 the optimum
and |z| <= 2 the box. Knob `x{i}` runs linearly over [-1, 1] with its baseline at 0 and its
optimum at 0.5 (even i) or -0.5 (odd i), so z_i = x_i / x_i* and a mixed-up order shows. With
`available` = a, by default 0.5, the score is (1 - a) + a f(z) / f(0): 1 at the baseline, 1 - a at
the optimum, and never lower without noise.

With `effort` other than 1 it is a cheaper or longer evaluation of the same function: it takes
`effort` times the seconds, with 1 / sqrt(effort) of the noise, drawn again. Below 1 the optimum is
at z = 1 + bias (1 - effort), so a short evaluation may rank points wrongly; above 1 only a share of
every gain is left, `persists` at effort 4.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from random import Random
from typing import Any, Self

from pydantic import Field

from objectives.api import (
    Context,
    DivergedError,
    Knobs,
    Measurement,
    Objective,
    ObjectiveError,
    Variant,
    digest,
)
from objectives.settings import Settings
from objectives.space import Knob, SearchSpace

CLIFF_EDGE = 0.6  # of x0, whose optimum is 0.5
HEARTBEAT_SECONDS = 0.1
MOST_EFFORT = 4.0


def _sphere(z: tuple[float, ...]) -> float:
    return math.fsum((1.0 - v) ** 2 for v in z)


def _ellipsoid(z: tuple[float, ...]) -> float:
    """Axes weighted 1 to 1e6 (Hansen et al., BBOB 2009, f2, not rotated)."""
    last = len(z) - 1
    return math.fsum(1e6 ** (i / last) * (1.0 - v) ** 2 for i, v in enumerate(z))


FUNCTIONS: dict[str, Callable[[tuple[float, ...]], float]] = {
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "cliff": _sphere,
    "idle": lambda z: _sphere(z[:-1]),  # the last changes nothing, the noise included
    "noise": lambda _: 1.0,
}


def _extra(default: Any, **limits: Any) -> Any:
    return Field(default=default, exclude_if=lambda value: value == default, **limits)


class AnalyticSettings(Settings):
    """What a user may set. A seed and a point have the same noise and failure everywhere.

    Settings after the first five are recorded only where they differ from their default.
    """

    dimension: int = Field(default=10, ge=2, le=1000)  # CMA-ES needs two
    noise: float = Field(default=0.0, ge=0, le=0.1)  # sd added; 5 of it keep the score positive
    seconds: float = Field(default=0.0, ge=0)  # of wall clock, or with `busy` of CPU time
    busy: bool = False
    failure_rate: float = Field(default=0.0, ge=0, le=1)  # share of (seed, point) pairs

    available: float = _extra(0.5, gt=0, le=0.5)  # relative gain of the optimum over the baseline

    # A cheaper or a longer evaluation: `effort` scales its seconds and its noise's variance.
    effort: float = _extra(1.0, gt=0, le=MOST_EFFORT)
    bias: float = _extra(0.0, ge=-3, le=1)  # in z: by part of it the optimum is off below effort 1
    persists: float = _extra(1.0, ge=-1, le=1)  # share of the gain that is left at effort 4


@dataclass(frozen=True)
class AnalyticObjective(Objective):
    """One of `FUNCTIONS`."""

    model = AnalyticSettings
    budget_settings, budget_unit = ("effort",), "effort"

    config: AnalyticSettings

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """Only `noise` has noise by default: 0.01, about a short training's from seed to seed."""
        defaults = {"noise": 0.01} if name == "noise" else {}
        return super().from_settings(name, {**defaults, **settings})

    @property
    def space(self) -> SearchSpace:
        """`x0`, `x1`, ...: linear in [-1, 1], baseline 0."""
        return SearchSpace(
            knobs=tuple(
                Knob(name=f"x{i}", kind="linear", low=-1.0, high=1.0, baseline=0.0)
                for i in range(self.config.dimension)
            )
        )

    def scaled(self, factor: float) -> Variant | None:
        """Return `factor` times the effort; None above 4."""
        return None if self.config.effort * factor > MOST_EFFORT else super().scaled(factor)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Spend the time, then score.

        Raises DivergedError past the cliff's edge, ObjectiveError at the `failure_rate`.
        """
        settings = self.config
        x = tuple(float(knobs[f"x{i}"]) for i in range(settings.dimension))
        spent = _spend(settings.seconds * settings.effort, settings.busy, context.heartbeat)
        if _draws("failure", seed, x).random() < settings.failure_rate:
            raise ObjectiveError(f"failure on request: failure_rate {settings.failure_rate}")
        if self.name == "cliff" and x[0] > CLIFF_EDGE:
            raise DivergedError(f"x0 = {x[0]:.6g} lies past the cliff's edge at {CLIFF_EDGE}")
        noise_free = self._noise_free(x)
        own = "" if settings.effort == 1.0 else f" at effort {settings.effort}"
        read = x[:-1] if self.name == "idle" else x  # what changes the score
        noise = _draws("noise" + own, seed, read).gauss(0.0, settings.noise / settings.effort**0.5)
        return Measurement(
            score=noise_free + noise,
            train_seconds=spent,
            steps=1,
            metrics={"noise_free_score": noise_free},
        )

    def _noise_free(self, x: tuple[float, ...]) -> float:
        settings, function = self.config, FUNCTIONS[self.name]
        shift = settings.bias * max(0.0, 1.0 - settings.effort)
        z = tuple(value / (-0.5 if i % 2 else 0.5) - shift for i, value in enumerate(x))
        share = function(z) / function((0.0,) * len(z))
        score = (1.0 - settings.available) + settings.available * share
        # The share of a gain that is left is linear in the logarithm of the effort, from 1 to 4.
        kept = 1.0 + (settings.persists - 1.0) * math.log2(max(1.0, settings.effort)) / 2.0
        return score + (1.0 - kept) * max(0.0, 1.0 - score)


def _draws(purpose: str, seed: int, x: tuple[float, ...]) -> Random:
    """Return a generator keyed by its purpose: the same in every process and on every machine."""
    return Random(bytes.fromhex(digest([purpose, seed, x])))  # noqa: S311  # no secret


def _spend(seconds: float, busy: bool, heartbeat: Callable[[Mapping[str, float]], None]) -> float:
    """Use up the time with a heartbeat every 0.1 s; return the wall clock that it took."""
    started = time.perf_counter()
    clock = time.thread_time if busy else time.perf_counter
    end = clock() + seconds
    while (left := end - clock()) > 0:
        if busy:
            math.fsum(range(100_000))  # some milliseconds
        else:
            time.sleep(min(left, HEARTBEAT_SECONDS))
        heartbeat({"elapsed_seconds": time.perf_counter() - started})
    return time.perf_counter() - started
