"""The contract of an executor: what it is given and what it returns.

Each attempt has its own directory. Its supervisor writes `summary.json` there exactly once, when
no process of the attempt is alive. That file is the result, even if the orchestrator died in the
meantime.
"""

import math
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self

from pydantic import Field

from budgets.events import MOST_SCORE, Owner, Status
from budgets.plan import Frozen, Limits
from objectives.api import Count, Measurement, ObjectiveSpec

Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""A duration that a supervisor can have measured; a file with any other value is not believed."""


class EngineError(Exception):
    """The machinery that runs evaluations failed; no candidate is to blame."""


class Attempt(Frozen):
    """Everything a supervisor needs, written to `config.json` in the attempt's directory."""

    attempt_id: str
    directory: Path
    objective: ObjectiveSpec
    knobs: dict[str, int | float]
    seed: int
    limits: Limits
    owner: Owner
    pinned: dict[str, str | int] = Field(default={})  # the plan's provenance


class Outcome(Frozen):
    """How an attempt ended, as measured by its supervisor (`summary.json`)."""

    attempt_id: str
    status: Status
    cause: str = ""  # one line for people; empty when ok
    seconds: Seconds  # wall clock from the supervisor's start to the end of the process tree
    startup_seconds: Seconds = 0.0  # the part of it before the objective was called
    cpu_seconds: Seconds = 0.0  # of the whole tree
    peak_memory_bytes: Count = 0  # resident, of the whole tree together
    device: str = ""  # see `device_name`
    measurement: Measurement | None = None  # always when ok; when nan, if there was a score


@dataclass(frozen=True)
class Slots:
    """What an executor may use: `count` evaluations at once, each on one device."""

    count: int
    device: Literal["cpu", "cuda"]
    device_name: str  # for people, and to match calibrations
    threads: int  # CPU threads per evaluation

    def with_threads(self, threads: int) -> Self:
        """Return slots with that many threads each: on CPUs fewer slots if they need more CPUs."""
        count = self.count
        if self.device == "cpu" and threads > self.threads:
            count = max(1, count * self.threads // threads)
        return replace(self, count=count, threads=threads)


class Executor(Protocol):
    """Runs at most `slots.count` attempts at once; each submitted attempt comes back once.

    An attempt comes back when none of its processes is alive. If its node is silent, it comes back
    as lost after its lease has expired there, charged its whole reservation.
    """

    slots: Slots

    @property
    def warnings(self) -> tuple[str, ...]:
        """For people: devices and nodes that are no longer used. Grows during the run."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Kill what is still running, wait until its processes are gone, release the slots."""

    def free(self) -> int:
        """Return how many attempts can be submitted now.

        With nothing running it may wait a moment for a device. Raises EngineError when no device
        is left.
        """

    def submit(self, attempt: Attempt) -> None:
        """Start an attempt whose directory exists and is empty. A slot must be free."""

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        """Return new outcomes: at least one, unless the time is up or nothing is running."""


def device_name(gpu_id: str | None, host: str = "") -> str:
    """Return a device's name in outcomes: `cpu` or the GPU's id; on a cluster with its host."""
    return f"{gpu_id or 'cpu'} on {host}" if host else gpu_id or "cpu"


def no_score(score: float) -> str:
    """Return why a score cannot be compared with others; empty if it can."""
    if not math.isfinite(score):
        return f"the score is {score}"
    if abs(score) > MOST_SCORE:
        return f"the score is {score:g}: expected a value within ±{MOST_SCORE:g}"
    return ""
