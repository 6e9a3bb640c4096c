"""Functions whose optimum is known, with noise, failures and cost on request.

Every function is written in z, one coordinate per knob: z = 0 is the baseline, z = 1 the optimum
and |z| <= 2 the box. Knob `x{i}` runs linearly over [-1, 1] with its baseline at 0 and its
optimum at 0.5 (even i) or -0.5 (odd i), so z_i = x_i / x_i* and a mixed-up order shows. The score
is 0.5 + 0.5 f(z) / f(0): 1 at the baseline, 0.5 at the optimum, and never lower without noise.
"""

import hashlib
import json
import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import Any, Self

from pydantic import BaseModel, ConfigDict, Field

from objectives.api import (
    Context,
    DivergedError,
    Knobs,
    Measurement,
    ObjectiveError,
    ObjectiveSpec,
    SetupError,
    Variant,
)
from objectives.settings import parse
from objectives.space import Knob, SearchSpace

VERSION = 1  # part of the fingerprint: raise it with any change that moves a score
OPTIMUM_SCORE = 0.5
CLIFF_EDGE = 0.6  # of x0, whose optimum is 0.5
HEARTBEAT_SECONDS = 0.1


class InjectedError(ObjectiveError):
    """The failure that `failure_rate` asked for."""


class AnalyticSettings(BaseModel):
    """What a user may set. One seed and point have the same noise and failure everywhere."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    dimension: int = Field(default=10, ge=2, le=1000)  # CMA-ES needs two
    noise: float = Field(default=0.0, ge=0, le=0.1)  # sd added; 5 sd keep the score positive
    seconds: float = Field(default=0.0, ge=0)  # of wall clock, or with `busy` of CPU time
    busy: bool = False
    failure_rate: float = Field(default=0.0, ge=0, le=1)  # share of (seed, point) pairs


@dataclass(frozen=True)
class AnalyticObjective:
    """One of `sphere`, `ellipsoid`, `rosenbrock`, `cliff`, `idle`, `noise`."""

    name: str
    settings: AnalyticSettings

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """The objective `name`. Raises ValueError, naming what was expected, on a wrong setting.

        `noise` alone has noise by default: 0.01, about a short training run's from seed to seed.
        """
        if name not in _FUNCTIONS:
            raise ValueError(
                f"unknown analytic objective {name!r}: expected one of {', '.join(_FUNCTIONS)}"
            )
        defaults = {"noise": 0.01} if name == "noise" else {}
        return cls(name, parse(AnalyticSettings, {**defaults, **settings}, name))

    @property
    def spec(self) -> ObjectiveSpec:
        """Name and all settings, defaults included."""
        return ObjectiveSpec(name=self.name, settings=self.settings.model_dump())

    @property
    def space(self) -> SearchSpace:
        """`x0`, `x1`, ...: linear in [-1, 1], baseline 0."""
        return SearchSpace(
            knobs=tuple(
                Knob(name=f"x{i}", kind="linear", low=-1.0, high=1.0, baseline=0.0)
                for i in range(self.settings.dimension)
            )
        )

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of name, settings, space and code version."""
        identity = {
            "name": self.name,
            "settings": self.settings.model_dump(),
            "space": self.space.model_dump(),
            "version": VERSION,
        }
        return hashlib.sha256(_canonical(identity)).hexdigest()

    @property
    def provenance(self) -> Mapping[str, str | int]:
        return {}

    @property
    def preload(self) -> tuple[str, ...]:
        return ("objectives.analytic",)

    @property
    def optimum(self) -> tuple[float, ...]:
        """The best point of the unit cube (for `noise` and `idle`, one of many)."""
        return self.space.encode({f"x{i}": x for i, x in enumerate(self._best())})

    @property
    def optimum_score(self) -> float:
        """The score there, without noise."""
        return 1.0 if self.name == "noise" else OPTIMUM_SCORE

    def controls(self) -> tuple[Variant, ...]:
        return ()

    def rung(self, factor: float) -> Variant | None:  # noqa: ARG002  # as far as it goes
        return None

    def lighter(self) -> Variant | None:
        return None

    def preflight(self) -> tuple[str, ...]:
        """Warns if nothing is left to tell two candidates apart."""
        if self.name == "noise" and self.settings.noise == 0:
            return ("objective noise with noise = 0 scores every candidate exactly 1",)
        return ()

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Spend the time, then score.

        Raises DivergedError past the cliff's edge, InjectedError for a `failure_rate`, SetupError
        if a knob is missing.
        """
        x = self._coordinates(knobs)
        spent = _spend(self.settings.seconds, self.settings.busy, context.heartbeat)
        if _draws("failure", seed, x).random() < self.settings.failure_rate:
            raise InjectedError(f"failure on request: failure_rate {self.settings.failure_rate}")
        if self.name == "cliff" and x[0] > CLIFF_EDGE:
            raise DivergedError(f"x0 = {x[0]:.6g} lies past the cliff's edge at {CLIFF_EDGE}")
        noise_free = self._noise_free(x)
        read = x[:-1] if self.name == "idle" else x
        score = noise_free + _draws("noise", seed, read).gauss(0.0, self.settings.noise)
        return Measurement(
            score=score, train_seconds=spent, steps=1, metrics={"noise_free_score": noise_free}
        )

    def _best(self) -> tuple[float, ...]:
        return tuple(-0.5 if i % 2 else 0.5 for i in range(self.settings.dimension))

    def _coordinates(self, knobs: Knobs) -> tuple[float, ...]:
        missing = [f"x{i}" for i in range(self.settings.dimension) if f"x{i}" not in knobs]
        if missing:
            raise SetupError(f"objective {self.name}: knobs {', '.join(missing)} are missing")
        return tuple(float(knobs[f"x{i}"]) for i in range(self.settings.dimension))

    def _noise_free(self, x: tuple[float, ...]) -> float:
        function = _FUNCTIONS[self.name]
        z = tuple(value / best for value, best in zip(x, self._best(), strict=True))
        return OPTIMUM_SCORE + (1.0 - OPTIMUM_SCORE) * function(z) / function((0.0,) * len(z))


def _sphere(z: tuple[float, ...]) -> float:
    return math.fsum((1.0 - v) ** 2 for v in z)


def _ellipsoid(z: tuple[float, ...]) -> float:
    """Axes weighted 1 to 1e6 (Hansen et al., BBOB 2009, f2, not rotated)."""
    last = len(z) - 1
    return math.fsum(1e6 ** (i / last) * (1.0 - v) ** 2 for i, v in enumerate(z))


def _rosenbrock(z: tuple[float, ...]) -> float:
    return math.fsum(
        100.0 * (right - left**2) ** 2 + (1.0 - left) ** 2 for left, right in pairwise(z)
    )


def _idle(z: tuple[float, ...]) -> float:
    """The sphere of all knobs but the last, which changes nothing, not even the noise."""
    return _sphere(z[:-1])


def _flat(z: tuple[float, ...]) -> float:  # noqa: ARG001  # flat: that is its point
    return 1.0


_FUNCTIONS: dict[str, Callable[[tuple[float, ...]], float]] = {
    "sphere": _sphere,
    "ellipsoid": _ellipsoid,
    "rosenbrock": _rosenbrock,
    "cliff": _sphere,
    "idle": _idle,
    "noise": _flat,
}


def _draws(purpose: str, seed: int, x: tuple[float, ...]) -> Random:
    """A generator keyed by what it is for: the same in every process and on every machine."""
    return Random(hashlib.sha256(_canonical([purpose, seed, x])).digest())  # noqa: S311  # no secret


def _canonical(value: object) -> bytes:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def _spend(seconds: float, busy: bool, heartbeat: Callable[[Mapping[str, float]], None]) -> float:
    """Use up the time asked for with a heartbeat every 0.1 s; the wall clock it took."""
    started = time.perf_counter()
    clock = time.thread_time if busy else time.perf_counter
    end = clock() + seconds
    while (left := end - clock()) > 0:
        piece = min(left, HEARTBEAT_SECONDS)
        if busy:
            _burn(piece)
        else:
            time.sleep(piece)
        heartbeat({"elapsed_seconds": time.perf_counter() - started})
    return time.perf_counter() - started


def _burn(cpu_seconds: float) -> None:
    end = time.thread_time() + cpu_seconds
    while time.thread_time() < end:
        math.fsum(range(1000))
