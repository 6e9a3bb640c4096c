"""What happens to evaluations: what is their own doing, and what the machines do to them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeVar

import numpy as np

from budgets.events import Status
from objectives import registry
from objectives.api import Context, OutOfMemoryError
from orchestrator.execution.evaluate import Attempt, Outcome

Nature = Literal["ok", "error", "crash", "nan", "oom", "hang", "stall"]
"""How an evaluation ends by itself, whenever and wherever it is tried, however light it is made."""

Trouble = Literal[
    "none", "lost", "unborn", "silent", "duplicate", "delayed", "unkillable", "killed", "broken",
    "unready",
]  # fmt: skip
"""What the machines do to one attempt at it.

lost: its node dies under it; unborn: before it could begin. silent: its slot is not heard of until
the reservation is over, and its own outcome comes after that. duplicate: its outcome comes twice.
delayed: its outcome is on disk before anybody hears of it, and others overtake it. unkillable: one
that hangs outlives the kill and its reservation. killed: by a signal from outside, at most once
for each evaluation. broken: its device fails under it, and says so. unready: what every evaluation
needs is not there, at most once for each, until somebody mends it.
"""

FAILED: dict[Nature, tuple[Status, str]] = {
    "error": (Status.ERROR, "InjectedError: failure on request"),
    "crash": (Status.ERROR, "killed by signal 11 SIGSEGV"),
    "nan": (Status.NAN, "DivergedError: the loss is not finite"),
    "oom": (Status.OOM, "OutOfMemoryError: out of memory"),
    "hang": (Status.TIMEOUT, "ran over its limit"),
    "stall": (Status.TIMEOUT, "stalled: no output or heartbeat"),
}
Name = TypeVar("Name", bound=str)


@dataclass(frozen=True)
class Weather:
    """How likely which trouble is, how many slots are slow, and what lasts."""

    troubles: Mapping[Trouble, float] = field(default_factory=dict)
    slow: float = 0.0  # share of slots that take nearly twice as long
    for_good: float = 0.0  # share of troubled slots that never come back


CALM = Weather()
STORM = Weather(
    {
        "lost": 0.07,
        "unborn": 0.03,
        "silent": 0.06,
        "duplicate": 0.08,
        "delayed": 0.08,
        "killed": 0.06,
        "broken": 0.02,
        "unready": 0.02,
    },
    slow=0.2,
    for_good=0.2,
)


def drawn(rng: np.random.Generator, shares: Mapping[Name, float], otherwise: Name) -> Name:
    """A name with the probability of its share; `otherwise` with what is left of 1."""
    left = rng.random()
    for name, share in shares.items():
        left -= share
        if left < 0:
            return name
    return otherwise


def of_its_own(attempt: Attempt, shares: Mapping[Nature, float]) -> tuple[Nature, Outcome]:
    """How the attempt ends if nothing disturbs it: a function of what is evaluated alone."""
    text = json.dumps([sorted(attempt.knobs.items()), attempt.seed])
    rng = np.random.default_rng(list(hashlib.sha256(text.encode()).digest()[:8]))
    nature, seconds = drawn(rng, shares, "ok"), 0.2 + 0.8 * rng.random()
    seconds *= attempt.objective.settings.get("effort", 1.0)
    limits = attempt.limits
    if nature == "hang":
        seconds = limits.wall_seconds + limits.grace_seconds * rng.random()
    elif nature == "stall":
        seconds = (limits.stall_seconds or limits.wall_seconds) + rng.random()
    outcome = Outcome(
        attempt_id=attempt.attempt_id, status=Status.OK, seconds=seconds, startup_seconds=0.1
    )
    if nature != "ok":
        status, cause = FAILED[nature]
        return nature, outcome.model_copy(update={"status": status, "cause": cause})
    context = Context(attempt.directory, "cpu", 1, lambda _: None)
    try:
        measured = registry.load(attempt.objective).evaluate(attempt.knobs, attempt.seed, context)
    except OutOfMemoryError as error:
        return nature, outcome.model_copy(update={"status": Status.OOM, "cause": str(error)})
    quiet = measured.model_copy(update={"train_seconds": seconds - 0.1})
    return nature, outcome.model_copy(update={"measurement": quiet})


def ended(outcome: Outcome, status: Status, cause: str, seconds: float) -> Outcome:
    """The same attempt, come to another end after so long."""
    changed = {"status": status, "cause": cause, "seconds": seconds, "measurement": None}
    return outcome.model_copy(update=changed)


def poisoned(outcome: Outcome) -> Outcome:
    """The outcome with another score: it shows where one that nobody may believe was believed."""
    if outcome.measurement is None:
        return outcome
    worse = outcome.measurement.model_copy(update={"score": outcome.measurement.score + 1000})
    return outcome.model_copy(update={"measurement": worse})
