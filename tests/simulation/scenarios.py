"""The small searches that stories are told of."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from budgets.terms import Window
from objectives.analytic import AnalyticObjective
from objectives.api import Variant
from orchestrator.execution.evaluate import Slots
from orchestrator.planning.request import Confirm, Request
from tests.simulation.fates import Nature


@dataclass(frozen=True)
class Controlled(AnalyticObjective):
    """An analytic objective with something to switch off: half of its effort."""

    def controls(self) -> tuple[Variant, ...]:
        return (Variant(label="half the effort", settings={"effort": 0.5}, length=0.5),)


@dataclass(frozen=True)
class Scenario:
    """What is searched, on how many slots, and how its evaluations end by themselves."""

    name: str
    workers: int = 2
    objective: str = "sphere"
    dimension: int = 2
    terms: Mapping[str, Any] = field(default_factory=dict)  # of the request
    caps: Mapping[str, Any] = field(default_factory=dict)  # likewise; a reference has none
    raised: Mapping[str, Any] = field(default_factory=dict)  # when a cap stops it, by a person
    natures: Mapping[Nature, float] = field(default_factory=dict)
    settings: Mapping[str, Any] = field(default_factory=dict)  # of the objective
    assumed_seconds: float = 0.5  # of an evaluation: no calibration is made first

    def request(self, *, capped: bool = True) -> Request:
        settings = {"dimension": self.dimension, "noise": 0.01, **self.settings}
        terms: dict[str, Any] = {"phase": "phase1", "tier": "min", **self.terms}
        return Request(
            objective=Controlled.from_settings(self.objective, settings),
            run_id=self.name,
            limit_seconds=3.0,
            stall_seconds=1.5,
            **terms,
            **(self.caps if capped else {}),
        )

    @property
    def slots(self) -> Slots:
        return Slots(self.workers, "cpu", "simulated", 1)


RARE: Mapping[Nature, float] = {
    "error": 0.02,
    "crash": 0.02,
    "nan": 0.02,
    "oom": 0.02,
    "hang": 0.02,
    "stall": 0.02,
}
OFTEN: Mapping[Nature, float] = {nature: 3 * share for nature, share in RARE.items()}
RESERVE_HOURS = 13 / 3600  # the limit, and twice the grace of 5 s
CONFIRMED: Mapping[str, Any] = {
    "tier": "target",
    "population": 4,
    "max_evals": 8,
    "confirm": Confirm(seeds=2, rung_seeds=1),
    "thresholds": {"go_seeds": 2, "go_level": 0.3},  # so that so little can show a Go
}
"""A search of two generations whose finalists are compared on fresh seeds."""

SCENARIOS = (
    Scenario("healthy", terms={"population": 4, "max_evals": 12}),
    Scenario("one-slot", workers=1, terms={"population": 4, "max_evals": 8}, natures=RARE),
    Scenario("rare-failures", 3, "ellipsoid", 3, {"population": 6, "max_evals": 12}, natures=RARE),
    Scenario("failures", 4, terms={"population": 8, "max_evals": 16}, natures=OFTEN),
    Scenario(
        "seeds",
        objective="noise",
        terms={"phase": "phase2", "population": 4, "max_evals": 24},
        natures=RARE,
    ),
    Scenario(
        "device-time",
        terms={"population": 4, "max_evals": 12},
        caps={"max_device_hours": 4 * RESERVE_HOURS},
        natures=RARE,
    ),
    Scenario(
        "money",
        3,
        terms={"population": 6, "max_evals": 12},
        caps={"max_cost": 8 * RESERVE_HOURS, "price_per_device_hour": 2.0},
        natures=RARE,
    ),
    Scenario(
        "wall-clock",
        terms={"population": 4, "max_evals": 12},
        caps={"max_hours": 3 * RESERVE_HOURS},
        natures=RARE,
    ),
    Scenario(
        "deadline",
        terms={"population": 4, "max_evals": 12},
        caps={"window": Window(hours=75 / 3600, margin_seconds=5)},
        natures=RARE,
    ),
    Scenario(
        "memory",
        terms={"population": 4, "max_evals": 8},
        natures=RARE,
        settings={"memory_steps": 2},
    ),
    Scenario("confirmed", 3, terms=CONFIRMED, natures=RARE),
    Scenario("nothing-found", objective="noise", terms=CONFIRMED, natures=RARE),
    Scenario(
        "confirmed-in-hours",
        3,
        terms=CONFIRMED,
        caps={"max_hours": 6 * RESERVE_HOURS},
        raised={"hours": 9.0},
        natures=RARE,
    ),
    Scenario(
        "confirmed-in-device-time",
        terms=CONFIRMED,
        caps={"max_device_hours": 6 * RESERVE_HOURS},
        raised={"device_hours": 9.0},
        natures=RARE,
    ),
)
