"""The contract between an objective and whoever runs it.

An objective is a pure function of (knobs, seed): the same pair on the same device and versions
gives the same score, bit for bit. It owns its configuration and its search space, and it imports
what it needs to train only inside `evaluate` and `preflight`, so that planning stays quick.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field

from objectives.space import SearchSpace

Knobs = Mapping[str, float]
"""Decoded values by knob name, in the knob's own unit (an `int` knob holds an int)."""


Count = Annotated[int, Field(ge=0, lt=2**63)]
Amount = Annotated[float, Field(ge=0, allow_inf_nan=False)]


def _no_words(value: Any) -> Any:
    if isinstance(value, str | bytes | bool):
        raise ValueError(f"expected a number, got {type(value).__name__}")
    return value


Score = Annotated[float, BeforeValidator(_no_words)]
"""Text and truth values are no scores, though Python would make numbers of them."""


class ObjectiveError(Exception):
    """An evaluation that could not give a score. The subclass says why."""


class SetupError(ObjectiveError):
    """Nothing can be evaluated at all: data missing, configuration impossible, device absent."""


def missing_package(name: str | None) -> str:
    """Return one line: the package that is not installed, and the command that installs it."""
    if name == "ray":
        return "ray is not installed: pip install ray, or say --executor local, which needs none"
    if name == "torch":
        return (
            "torch is not installed, which training needs: "
            "pip install 'cmaes-orchestrator[nanochat]'"
        )
    return f"the package {name} is not installed: pip install {name}"


class DivergedError(ObjectiveError):
    """Training left the finite numbers: the candidate's own doing."""


class NoScoreError(ObjectiveError):
    """It ended well and left no score, or none of a measure that was asked for."""


class OutOfMemoryError(ObjectiveError):
    """The device's or the host's memory did not suffice."""


class ProgramFailedError(ObjectiveError):
    """The program ended otherwise than with 0."""


class ObjectiveSpec(BaseModel):
    """What it takes to load the same objective in another process: plain JSON."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class Variant(BaseModel):
    """The same objective with some settings changed: `objectives.registry.varied` makes its spec.

    Its space is the objective's own, so both are evaluated at the same points.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    label: str = Field(min_length=1)  # plain words for reports: "synapses off"
    settings: dict[str, Any]  # laid over the objective's own
    length: float = Field(default=1.0, gt=0, allow_inf_nan=False)  # duration over the objective's


@dataclass(frozen=True)
class Flops:
    """What one evaluation of the baseline computes, by formula, before it is run."""

    train: float  # forward and backward
    score: float  # outside the training target
    steps: int  # optimiser steps
    tokens: int  # trained on

    @property
    def total(self) -> float:
        return self.train + self.score


class Measurement(BaseModel):
    """What one evaluation measured. FLOPs are counted, not estimated; times are in seconds."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    score: Score  # lower is better; not finite or beyond ±1e100: the runner calls it `nan`
    train_seconds: Amount = 0.0  # wall clock inside the training loop, without start-up
    steps: Count = 0  # optimiser steps
    tokens: Count = 0  # training tokens seen
    train_flops: Amount = 0.0  # forward and backward, realised
    eval_flops: Amount = 0.0  # scoring, outside the training target
    metrics: dict[str, float] = Field(default_factory=dict)  # further finite diagnostics


@dataclass(frozen=True)
class Context:
    """Where one evaluation runs: given by the runner, never guessed by the objective."""

    directory: Path  # the evaluation's own; it exists and is writable
    device: str  # "cpu" or "cuda"; one GPU is visible at most
    threads: int  # for arithmetic on the CPU
    heartbeat: Callable[[Mapping[str, float]], None]  # call at least every few seconds with metrics
    attempt_id: str = ""  # no other evaluation has it, nor another try at this one
    pinned: Mapping[str, str | int] = field(default_factory=dict)  # the run's provenance


@dataclass(frozen=True)
class CommandLine:
    """A program as it is started. No shell reads any of it: every argument arrives as it is."""

    argv: tuple[str, ...]
    directory: Path  # where it is started
    environment: Mapping[str, str]  # all that it gets


class Objective(ABC):
    """Knobs and a seed in, a `Measurement` out. What a subclass does not say has a default."""

    @property
    @abstractmethod
    def spec(self) -> ObjectiveSpec:
        """Name and settings; `objectives.registry.load(spec)` gives an equal objective."""

    @property
    @abstractmethod
    def space(self) -> SearchSpace:
        """The knobs, their ranges and their baseline."""

    @property
    @abstractmethod
    def fingerprint(self) -> str:
        """SHA-256 (hex) of everything that decides a score: settings, space, data, code version."""

    @property
    def provenance(self) -> Mapping[str, str | int]:
        """What the scores rest on besides settings, for the record: hashes and sizes of data.

        Raises SetupError when it cannot be read.
        """
        return {}

    @property
    def requires(self) -> tuple[str, ...]:
        """Packages that an evaluation imports and a plain installation does not have."""
        return ()

    @property
    def preload(self) -> tuple[str, ...]:
        """Modules a fork server may import before it forks an evaluation. None touches CUDA."""
        return (type(self).__module__,)

    def controls(self) -> tuple[Variant, ...]:
        """The comparisons that every verdict owes its reader, at equal FLOPs; there may be none.

        What a control's model lacks, its knobs do not move.
        """
        return ()

    def scaled(self, factor: float) -> Variant | None:
        """The same training with `factor` times the budget, which may be below 1.

        None if the objective cannot be scaled so. Raises ValueError on a factor that is no
        positive number.
        """
        if not 0 < factor < math.inf:
            raise ValueError(f"a budget's factor must be positive and finite, got {factor}")
        return self._scale(factor)

    def _scale(self, factor: float) -> Variant | None:  # noqa: ARG002 - of those that scale
        return None

    def flops(self) -> Flops | None:
        """What an evaluation of the baseline computes, exactly; None if FLOPs do not say it.

        Raises SetupError when that hangs on data that cannot be read.
        """
        return None

    def command_line(
        self,
        knobs: Knobs,  # noqa: ARG002 - of those that start a program
        seed: int,  # noqa: ARG002
        context: Context,  # noqa: ARG002
    ) -> CommandLine | None:
        """The program that an evaluation starts; None if it computes in its own process.

        Starts nothing and writes nothing. Raises SetupError where it cannot be told.
        """
        return None

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:  # noqa: ARG002 - of those with arguments
        """The knobs as a person gives them to what is tuned; empty if that takes no arguments."""
        return ()

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec | None:  # noqa: ARG002 - likewise
        """The same objective whose baseline is `knobs`; None if its baseline cannot be moved."""
        return None

    def preflight(self) -> tuple[str, ...]:
        """Check data and configuration before any budget is spent.

        Returns warnings for a person. Raises SetupError, saying how to mend it.
        """
        return ()

    @abstractmethod
    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        """Run one evaluation. Raises DivergedError, OutOfMemoryError or SetupError."""
