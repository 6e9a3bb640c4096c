"""The small searches that are simulated, and the disturbances of their sessions."""

import errno
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Literal, get_args

import numpy as np

from budgets.plan import Devices, Window
from objectives.analytic import AnalyticObjective
from objectives.api import Variant
from orchestrator.config import Config
from orchestrator.execution.devices import make_devices
from tests.asking import config_for
from tests.simulation.devices import CALM, STORM, Failure, FaultRates
from tests.simulation.disk import CALLS, Call, Fault


@dataclass(frozen=True)
class Controlled(AnalyticObjective):
    """An analytic objective with a control of half the effort."""

    def controls(self) -> tuple[Variant, ...]:
        return (Variant(name="half the effort", settings={"effort": 0.5}, cost_factor=0.5),)


@dataclass(frozen=True)
class Scenario:
    """A search, its slots, and how often its evaluations fail on their own."""

    name: str
    workers: int = 2
    objective: str = "sphere"
    dimension: int = 2
    options: Mapping[str, Any] = field(default_factory=dict)  # of the request
    caps: Mapping[str, Any] = field(
        default_factory=dict
    )  # also of the request; the reference has none
    raised: Mapping[str, Any] = field(default_factory=dict)  # new caps, when a cap has stopped it
    failures: Mapping[Failure, float] = field(default_factory=dict)
    assumed_seconds: float = 0.5  # per evaluation, instead of a calibration

    def request(self, *, capped: bool = True) -> Config:
        settings = {"dimension": self.dimension, "noise": 0.01}
        options: dict[str, Any] = {"phase": "phase1", "tier": "min", **self.options}
        return config_for(
            objective=Controlled.from_settings(self.objective, settings),
            run_id=self.name,
            limit_seconds=3.0,
            stall_seconds=1.5,
            assumed_seconds=self.assumed_seconds,
            **options,
            **(self.caps if capped else {}),
        )

    @property
    def slots(self) -> Devices:
        return make_devices(self.workers, "cpu", "simulated")


RARE: Mapping[Failure, float] = dict.fromkeys(get_args(Failure)[1:], 0.02)
OFTEN: Mapping[Failure, float] = {failure: 3 * share for failure, share in RARE.items()}
RESERVE_HOURS = 13 / 3600  # the limit plus twice the grace of 5 s
SMALL: Mapping[str, Any] = {"population": 4, "max_evals": 12}
CONFIRMED: Mapping[str, Any] = {
    "tier": "target",
    "population": 4,
    "max_evals": 8,
    "confirm_seeds": 2,
    "long_run_seeds": 1,
    "thresholds": {"go_seeds": 2, "go_level": 0.3},  # so that few evaluations can show a Go
}
"""A search of two generations whose finalists are compared on fresh seeds."""

DEADLINE = {"window": Window(hours=45 / 3600, margin_seconds=5)}

SCENARIOS = (
    Scenario("healthy", options=SMALL),
    Scenario("one-slot", 1, options={"population": 4, "max_evals": 8}, failures=RARE),
    Scenario("rare-failures", 3, "ellipsoid", 3, {"population": 6, "max_evals": 12}, failures=RARE),
    Scenario("failures", 4, options={"population": 8, "max_evals": 16}, failures=OFTEN),
    Scenario(
        "seeds",
        objective="noise",
        options={"phase": "phase2", "population": 4, "max_evals": 24},
        failures=RARE,
    ),
    Scenario(
        "device-time", options=SMALL, caps={"max_device_hours": 4 * RESERVE_HOURS}, failures=RARE
    ),
    Scenario(
        "money",
        3,
        options={"population": 6, "max_evals": 12},
        caps={"max_cost": 8 * RESERVE_HOURS, "price_per_device_hour": 2.0},
        failures=RARE,
    ),
    Scenario("wall-clock", options=SMALL, caps={"max_hours": 3 * RESERVE_HOURS}, failures=RARE),
    Scenario(
        "deadline", 1, options={"population": 4, "max_evals": 24}, caps=DEADLINE, failures=RARE
    ),
    Scenario("confirmed", 3, options=CONFIRMED, failures=RARE),
    Scenario("nothing-found", objective="noise", options=CONFIRMED, failures=RARE),
    Scenario(
        "confirmed-in-hours",
        3,
        options=CONFIRMED,
        caps={"max_hours": 6 * RESERVE_HOURS},
        raised={"hours": 9.0},
        failures=RARE,
    ),
    Scenario(
        "confirmed-in-device-time",
        options=CONFIRMED,
        caps={"max_device_hours": 6 * RESERVE_HOURS},
        raised={"device_hours": 9.0},
        failures=RARE,
    ),
)

Kind = Literal[
    "storm", "killed", "killed in a call", "power cut", "power cut in a call", "disk error",
    "disk full", "interrupted", "clock set back", "clock set forward",
]  # fmt: skip
KINDS: tuple[Kind, ...] = get_args(Kind)

CALLS_PER_SESSION = 200  # about the storage calls of an undisturbed session
TOUCHES_PER_SESSION = 120  # about its executor calls and records


@dataclass(frozen=True)
class Disturbance:
    """What goes wrong in one session."""

    kind: Kind | None = None
    rates: FaultRates = CALM
    faults: tuple[Fault, ...] = ()
    dies_at: int | None = None  # this touch kills the process
    cuts_power: bool = False  # the machine dies with the process
    interrupted_at: int | None = None  # the user interrupts it at this record
    at_once: bool = False  # ... a second time, so that running evaluations are killed
    fills_up_at: int | None = None  # from this record on the disk is full
    wall_clock_seconds: float = 0.0  # the wall clock is changed by this
    set_at: int = 0  # ... at this record; 0: before the session


def disturbed(rng: np.random.Generator, kind: Kind) -> Disturbance:
    """Return a disturbance of that kind at a random moment, more often an early one."""
    call = 1 + int(CALLS_PER_SESSION * rng.random() ** 2)
    touch = 1 + int(TOUCHES_PER_SESSION * rng.random() ** 2)
    half = bool(rng.random() < 0.5)
    rates = STORM if kind == "storm" or rng.random() < 0.6 else CALM
    one = Disturbance(kind, rates, cuts_power=kind.startswith("power"))
    match kind:
        case "killed" | "power cut":
            one = replace(one, dies_at=touch)
        case "killed in a call" | "power cut in a call":
            one = replace(one, faults=(_fault(rng, call),))
        case "disk error":
            one = replace(one, faults=(_error(rng, call),), cuts_power=half)
        case "disk full":
            one = replace(one, fills_up_at=1 + touch // 4)
        case "interrupted":
            one = replace(one, interrupted_at=1 + touch // 4, at_once=half)
        case "clock set back" | "clock set forward":
            seconds = 3600.0 * (-1 if kind == "clock set back" else 24)
            one = replace(one, wall_clock_seconds=seconds, set_at=int(rng.integers(8)))
    return one


def _fault(rng: np.random.Generator, at: int) -> Fault:
    moments: tuple[Literal["before", "torn", "after"], ...] = ("before", "torn", "after")
    return Fault(at, None, None, moments[int(rng.integers(3))], float(rng.random()))


def _error(rng: np.random.Generator, at: int) -> Fault:
    calls: tuple[Call | None, ...] = (None, *CALLS)
    call = calls[int(rng.integers(len(calls)))]
    number = int(rng.choice([errno.EIO, errno.ENOSPC, errno.EROFS]))
    fault = _fault(rng, at if call is None else 1 + at // 8)
    return replace(fault, call=call, error=number, lasting=rng.random() < 0.5)
