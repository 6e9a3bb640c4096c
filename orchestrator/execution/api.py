"""What an executor is asked and what it answers: the contract on one screen.

An attempt has a directory of its own. Whoever supervises it writes `summary.json` there exactly
once, when nothing of the attempt is alive any more: that file is the result, whether or not
anybody was left to hear of it.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal, Protocol, Self

from pydantic import Field

from budgets.events import MOST_SCORE, Owner, Status
from budgets.plan import Frozen, Limits
from objectives.api import Count, Measurement, ObjectiveSpec

Seconds = Annotated[float, Field(ge=0, le=1e12, allow_inf_nan=False)]
"""As a supervisor can measure them: whatever else a file claims is not a result."""


class EngineError(Exception):
    """The machinery that runs evaluations failed: no candidate is to blame."""


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
    avoid: str = ""  # a device, as outcomes name it: an earlier attempt failed there


class Outcome(Frozen):
    """How an attempt ended, as its supervisor measured it (`summary.json`)."""

    attempt_id: str
    status: Status
    cause: str = ""  # one line for a person; empty when ok
    seconds: Seconds  # wall clock from the supervisor's start to the end of the tree, monotonic
    startup_seconds: Seconds = 0.0  # of these, before the objective was called
    cpu_seconds: Seconds = 0.0  # of the whole tree
    peak_memory_bytes: Count = 0  # resident, the whole tree together
    device: str = ""  # see `device_name`
    log_bytes_dropped: Count = 0
    measurement: Measurement | None = None  # always when ok; when nan, if it came to a score


@dataclass(frozen=True)
class Slots:
    """What the executor may use at once: `count` evaluations, each on one device."""

    count: int
    device: Literal["cpu", "cuda"]
    device_name: str  # for people and for matching calibrations
    threads: int  # CPU threads per evaluation


class Executor(Protocol):
    """At most `slots.count` attempts in flight; every submitted attempt comes back once.

    An attempt comes back when nothing of it is alive; where its node is silent, when its lease
    has run out there: as lost, at the price of its whole reservation.
    """

    slots: Slots

    @property
    def warnings(self) -> tuple[str, ...]:
        """For people: devices and nodes that are not used any more. Grows while it runs."""

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None:
        """Kill what is still in flight, wait until its processes are gone, release the slots."""

    def free(self, avoid: str = "") -> int:
        """How many attempts can be submitted now. Raises EngineError when no device is left.

        For an attempt that should `avoid` a device: on other ones, unless no other is in use.
        With nothing in flight it may wait a moment for a device that is looked at.
        """

    def submit(self, attempt: Attempt) -> None:
        """Start an attempt. Its directory exists and is empty. Raises if no slot is free.

        It starts on the device that it should avoid only if no other one is free.
        """

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        """Outcomes that arrived, at least one unless the timeout passed or nothing is in flight."""


def usable(free: Iterable[str], in_use: Iterable[str], avoid: str) -> int:
    """How many of the free devices an attempt may start on now (see `Executor.free`)."""
    free = list(free)
    others = sum(device != avoid for device in free)
    return others if others or any(device != avoid for device in in_use) else len(free)


def device_name(gpu_id: str | None, host: str = "") -> str:
    """As outcomes name a device: `cpu`, or the GPU's id; on a cluster with its host."""
    return f"{gpu_id or 'cpu'} on {host}" if host else gpu_id or "cpu"


def no_score(score: float) -> str:
    """Why nothing can be compared with that score; empty where it can."""
    if not math.isfinite(score):
        return f"the score is {score}"
    if abs(score) > MOST_SCORE:
        return (
            f"the score is {score:g}: expected one within ±{MOST_SCORE:g}, to compare with others"
        )
    return ""
