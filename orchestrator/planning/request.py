"""What a person asked for, and the names that follow from it."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from budgets.terms import (
    Phase,
    SearchMethod,
    Tier,
    VariantName,
    Window,
)
from objectives.api import Objective
from objectives.registry import short_name
from orchestrator.planning.known import KnownSettings

Overrides = Sequence[tuple[str, str]]
"""Rules that shall not hold a run up, each with the reason."""

RUN_ID = re.compile(r"[a-z0-9][a-z0-9._-]{0,63}")

METHOD: SearchMethod = "guided"
"""How a search proposes its candidates where nobody says how (docs/search.md)."""

SIGMA0: dict[SearchMethod, float] = {"guided": 0.15, "mirrored-orthogonal": 0.15, "plain": 0.2}
"""Of a knob's range: the first step of a search that nothing is known about (docs/search.md)."""

LEAST_SIGMA0 = 1e-6
"""Of a knob's range: with less, rounding decides which points of a generation differ."""


PICKING_SEEDS, CONTROL_SEEDS, LUCKIEST = 3, 5, 2


@dataclass(frozen=True)
class Confirm:
    """How a request wants its verdict reached; a smoke test never affords one.

    `None` leaves it to the default: that is not the same as asking for what the default is, where
    a recorded run has something else.
    """

    seeds: int | None = None  # 0: none, and so no Go
    rung_factor: float | None = None  # 0: no rung
    rung_seeds: int | None = None


@dataclass(frozen=True)
class Follows:
    """The run that a phase 2 follows, and how."""

    run: str  # its id or directory
    variant: VariantName


@dataclass(frozen=True)
class Request:
    """What a person asked for; `None` is "decide for me"."""

    phase: Phase
    tier: Tier
    objective: Objective
    run_id: str | None = None
    search_seed: int = 1
    evaluation_seed: int = 123
    method: SearchMethod | None = None  # guided, or that of the recorded run
    sigma0: float | None = None
    population: int | None = None
    generations: int | None = None  # at most
    seeds_per_candidate: int | None = None
    max_evals: int | None = None
    max_device_hours: float | None = None
    max_hours: float | None = None
    max_cost: float | None = None
    window: Window | None = None
    price_per_device_hour: float = 0.0
    limit_seconds: float | None = None
    stall_seconds: float | None = None
    fork: bool = False  # begin another run whose parent is the one of that name
    confirm: Confirm = Confirm()
    proxy: float | None = None  # the share of an evaluation's FLOPs that its stand-in has
    thresholds: Mapping[str, Any] = field(default_factory=dict)  # by field: other than the default
    follows: Follows | None = None  # of a phase 2
    warm_start: str | None = None  # of a phase 1: the run where it starts, by id or directory
    known: KnownSettings | None = None  # the first candidates

    @property
    def within(self) -> tuple[object, ...]:
        """What a run beside a search keeps within: part of its name, so never in another order."""
        return (
            self.evaluation_seed,
            self.limit_seconds,
            self.stall_seconds,
            self.max_evals,
            self.max_device_hours,
            self.max_hours,
            self.max_cost,
            self.window,
            self.price_per_device_hour,
        )


def run_name(request: Request) -> str:
    """The run's id: the one asked for, or variant, tier, objective and search seed."""
    name = request.run_id
    if name is None:
        name = f"{request.tier}-{short_name(request.objective.spec)}-s{request.search_seed}"
        if request.follows is not None:
            name = f"{request.follows.variant}-{name}"
    check_run_id(name)
    return name


def family_of(objective: Objective, kind: str) -> str:
    """What the names of all that is measured of an objective on a kind of device begin with."""
    return f"{short_name(objective.spec)}-{objective.fingerprint[:10]}-{kind}"


def check_run_id(name: str, whose: str = "--run-id") -> None:
    """Raises ValueError unless `name` is a plain file name of 1 to 64 safe characters."""
    if not RUN_ID.fullmatch(name):
        raise ValueError(
            f"{whose}: expected 1 to 64 of a-z, 0-9, '.', '_', '-', beginning with a letter or "
            f"digit, got {name!r}"
        )


def run_directory(root: Path, phase: Phase, run_id: str) -> Path:
    return root / phase / run_id


def method_of(request: Request) -> SearchMethod:
    return METHOD if request.method is None else request.method


def first_step(request: Request) -> float:
    """The one that was asked for, or the method's own."""
    return SIGMA0[method_of(request)] if request.sigma0 is None else request.sigma0
