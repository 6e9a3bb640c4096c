"""What goes wrong in one session of a story: how the process dies, what its disk does."""

import errno
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from tests.simulation.fates import CALM, STORM, Weather
from tests.simulation.faults import CALLS, Call, Fault

CALLS_A_SESSION = 200
"""About as many storage calls as an undisturbed session makes."""

TOUCHES_A_SESSION = 120
"""Likewise: its calls of the executor, and its records."""

Kind = Literal[
    "none", "killed", "killed in a call", "power cut", "power cut in a call", "disk error",
    "disk full", "interrupted",
]  # fmt: skip
KINDS: dict[Kind, float] = {
    "none": 0.2,
    "killed": 0.15,
    "killed in a call": 0.15,
    "power cut": 0.1,
    "power cut in a call": 0.15,
    "disk error": 0.1,
    "disk full": 0.05,
    "interrupted": 0.1,
}
"""How often which is drawn."""


@dataclass(frozen=True)
class Disturbance:
    """One session's bad luck."""

    kind: Kind = "none"
    weather: Weather = CALM
    faults: tuple[Fault, ...] = ()
    dies_at: int | None = None  # the so-many-th touch kills the process
    cuts_power: bool = False  # whatever ends the process takes the machine along
    interrupted_at: int | None = None  # the so-many-th record: a person wants it to end
    at_once: bool = False  # ... without waiting for what runs
    fills_up_at: int | None = None  # the so-many-th record: nothing more fits on the disk
    wall_clock_seconds: float = 0.0  # by so much somebody sets the clock on the wall
    set_at: int = 0  # ... at the so-many-th record; before the session begins


def draw(rng: np.random.Generator) -> Disturbance:
    """A session's bad luck. Moments lie anywhere in it, more of them early."""
    kind = list(KINDS)[int(rng.choice(len(KINDS), p=list(KINDS.values())))]
    call = 1 + int(CALLS_A_SESSION * rng.random() ** 2)
    touch = 1 + int(TOUCHES_A_SESSION * rng.random() ** 2)
    half = bool(rng.random() < 0.5)
    one = Disturbance(
        kind,
        STORM if rng.random() < 0.7 else CALM,
        cuts_power=kind.startswith("power") or (kind == "disk error" and half),
        wall_clock_seconds=float(rng.choice([0.0, 0.0, -3600.0, 3600.0, 86400.0])),
        set_at=int(rng.integers(8)),
    )
    match kind:
        case "killed" | "power cut":
            return replace(one, dies_at=touch)
        case "killed in a call" | "power cut in a call" | "disk error":
            return replace(one, faults=(_fault(rng, kind, call),))
        case "disk full":
            return replace(one, fills_up_at=1 + touch // 4)
        case "interrupted":
            return replace(one, interrupted_at=1 + touch // 4, at_once=half)
        case _:
            return one


def _fault(rng: np.random.Generator, kind: Kind, at: int) -> Fault:
    moments: tuple[Literal["before", "torn", "after"], ...] = ("before", "torn", "after")
    moment, kept = moments[int(rng.integers(3))], float(rng.random())
    if kind != "disk error":
        return Fault(at, None, None, moment, kept)
    calls: tuple[Call | None, ...] = (None, *CALLS)
    call = calls[int(rng.integers(len(calls)))]
    number = int(rng.choice([errno.EIO, errno.ENOSPC, errno.EROFS]))
    return Fault(
        at if call is None else 1 + at // 8, call, number, moment, kept, rng.random() < 0.5
    )
