"""A whole search on an objective whose optimum is known, and whether its verdict was right.

The orchestrator runs for real, calibration and confirmation included, on a simulated machine and
clock; only the files beside the ledger are left out. What a recommendation really gains is what the
objective scores there without noise.
"""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from budgets.events import Grade, NoGo
from budgets.state import Generation, Panel, RunState
from budgets.terms import Tier
from budgets.verdict.conditions import conditions
from budgets.verdict.finalists import BASELINE, winner
from budgets.verdict.gains import winner_gain
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.planning.request import Request
from orchestrator.records.recorded import Result
from orchestrator.running.calibrating import Calibrating
from orchestrator.running.run import Run
from orchestrator.running.searching import Searching
from orchestrator.running.session import Session
from tests.simulation.clock import SimulatedClock
from tests.simulation.instant import InstantExecutor, Machine
from tests.simulation.session import Person, SimulatedEngine


@dataclass(frozen=True)
class Trial:
    """What is searched, on which machine. A seed makes a run of it."""

    name: str
    objective: str = "sphere"
    settings: Mapping[str, Any] = field(default_factory=dict)
    machine: Machine = field(default_factory=Machine)
    calibrated_on: Machine | None = None  # None: on the same
    tier: Tier = "target"

    @property
    def available(self) -> float:
        """What the optimum gains, relative to the baseline."""
        return 0.0 if self.objective == "noise" else float(self.settings.get("available", 0.5))

    def request(self, rng: np.random.Generator) -> Request:
        """A run of its own: its search and its evaluations have seeds that no other one has."""
        spec = ObjectiveSpec(name=self.objective, settings=dict(self.settings))
        search_seed, evaluation_seed = (int(seed) for seed in rng.integers(1, 2**31, size=2))
        return Request(
            "phase1",
            self.tier,
            registry.load(spec),
            search_seed=search_seed,
            evaluation_seed=evaluation_seed,
        )


@dataclass(frozen=True)
class Ending:
    """What a run came to, beside what is true. Gains are relative to the baseline's score."""

    seed: int
    decision: str  # of the verdict: done, or what held the run up
    rules: tuple[str, ...]  # that fired, each once
    grade: Grade | None  # None: the run was held up before there was one
    no_go: NoGo | None
    arm: str  # the recommendation; empty where there is none
    gain: float | None  # of the recommendation, true
    winner: str  # the finalist that was compared with the baseline, recommended or not
    winner_gain: float | None  # true
    measured_gain: float | None  # of the winner, on fresh seeds
    finalists: Mapping[str, float]  # true gains
    missing: tuple[str, ...]  # conditions of a Go that were not met

    @property
    def is_go(self) -> bool:
        return self.grade in ("go", "go_persists")


class _QuietSession(Session):
    """A session that writes its ledgers and no reports."""

    def _closed(self, run: Run, generation: Generation | None) -> None:
        """Nobody reads them."""


def ending(trial: Trial, seed: int, root: Path) -> Ending:
    """How that run ends. `root` is made for it, and removed."""
    clock, rng = SimulatedClock(), np.random.default_rng([*trial.name.encode(), seed])
    request, slots = trial.request(rng), trial.machine.slots
    try:
        with _session(root, clock, rng, trial.calibrated_on or trial.machine) as session:
            Calibrating(request.objective, slots, request=request).carry_out(session)
        with _session(root, clock, rng, trial.machine) as session:
            result = Searching(request, slots).carry_out(session)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return _ending(seed, result)


def _session(
    root: Path, clock: SimulatedClock, rng: np.random.Generator, machine: Machine
) -> Session:
    return _QuietSession(
        root,
        SimulatedEngine(kind="inline", make=lambda _: InstantExecutor(machine, clock, rng)),
        observe=lambda *_: None,
        say=lambda _: None,
        clock=clock.clock,
        stop=Person(),
    )


def _ending(seed: int, result: Result) -> Ending:
    state, decided = result.state, result.state.decided
    rules = [fired.rule for fired in state.fired]
    best, measured = winner(state), winner_gain(state)
    return Ending(
        seed=seed,
        decision=result.ruling.decision,
        rules=tuple(dict.fromkeys(rules)),
        grade=None if decided is None else decided.grade,
        no_go=None if decided is None else decided.no_go,
        arm="" if decided is None else decided.arm,
        gain=true_gain(state, decided.arm) if decided is not None else None,
        winner="" if best is None else best.name,
        winner_gain=None if best is None else true_gain(state, best.name),
        measured_gain=None if measured is None else measured.mean,
        finalists=_finalists(state),
        missing=tuple(c.rule for c in conditions(state) if not c.met),
    )


def _finalists(state: RunState) -> dict[str, float]:
    panel = state.panel("finalists")
    arms = () if panel is None else panel.arms
    gains = ((arm.name, true_gain(state, arm.name)) for arm in arms)
    return {name: gain for name, gain in gains if gain is not None}


def true_gain(state: RunState, arm: str) -> float | None:
    """What the finalist of that name gains without noise; None where it has no score."""
    baseline = _noise_free(state.panel("reference"), BASELINE)
    score = _noise_free(state.panel("finalists"), arm)
    return None if baseline is None or score is None else (baseline - score) / abs(baseline)


def _noise_free(panel: Panel | None, name: str) -> float | None:
    if panel is None:
        return None
    places = {arm.name: place for place, arm in enumerate(panel.arms)}
    found = [
        r.metrics["noise_free_score"]
        for r in panel.results()
        if r.candidate == places.get(name) and r.score is not None
    ]
    return fmean(found) if found else None
