"""Whole searches on objectives whose optimum is known, and what their verdicts must be.

The orchestrator runs for real, calibration and confirmation included, on a simulated machine and
clock (tests/simulation); only the files beside the ledger are not written. The true gain of a
recommendation is the objective's score without noise.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from budgets.events import Grade, NoGo
from budgets.state import Batch, RunState
from budgets.verdict import BASELINE
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.matrix.carry_out import calibrate, carry_out_search
from orchestrator.run.loop import Stop
from orchestrator.run.session import Session
from tests.asking import config_for
from tests.simulation.instant import InstantExecutor, Machine
from tests.simulation.session import SimulatedClock, SimulatedEngine

DEFAULT_NOISE = 0.005
"""Relative standard deviation over seeds of the default objective (docs/search.md)."""

FALSE_GO, POWER = 0.01, 0.90
"""At most this share of runs may get a Go for nothing; at least this share for a clear gain."""

CLEAR = 0.02
OUTLIERS = 0.05  # share of evaluations that score 5 sd too low: about 6 of a search's 120


@dataclass(frozen=True)
class Ending:
    """The result of a run, and the truth. Gains are relative to the baseline's score."""

    decision: str  # done, or what paused the run
    rules: tuple[str, ...]
    grade: Grade | None  # None: it ended without a verdict
    no_go: NoGo | None
    arm: str  # the recommendation; empty if there is none
    gain: float | None  # true gain of the recommendation

    @property
    def is_go(self) -> bool:
        return self.grade in ("go", "go_persists")

    @property
    def is_false(self) -> bool:
        """Whether something is recommended that gains nothing."""
        return bool(self.arm) and (self.gain is None or self.gain <= 0)


@dataclass(frozen=True)
class Promise:
    """An ending, and the least and largest share of a trial's runs that may end so."""

    name: str
    happens: Callable[[Ending], bool]
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True)
class Trial:
    """What is searched, on which machine, and how its runs must end. A seed makes a run."""

    name: str
    objective: str
    settings: Mapping[str, Any]
    promises: tuple[Promise, ...]  # one without limits is only counted
    machine: Machine = field(default_factory=Machine)
    calibrated_on: Machine | None = None  # None: on `machine`


def ending(trial: Trial, seed: int, root: Path) -> Ending:
    """Run a trial with a seed, in the directory `root`, which is removed. Deterministic."""
    clock, rng = SimulatedClock(), np.random.default_rng([*trial.name.encode(), seed])
    search_seed, evaluation_seed = (int(drawn) for drawn in rng.integers(1, 2**31, size=2))
    request = config_for(
        "phase1",
        "target",
        registry.load(ObjectiveSpec(name=trial.objective, settings=dict(trial.settings))),
        search_seed=search_seed,
        evaluation_seed=evaluation_seed,
    )

    def session(machine: Machine) -> Session:
        return Session(
            root,
            SimulatedEngine(kind="inline", make=lambda _: InstantExecutor(machine, clock, rng)),
            observe=lambda *_: None,
            say=lambda _: None,
            clock=clock.clock,
            stop=Stop(),
        )

    slots = trial.machine.slots
    try:
        with session(trial.calibrated_on or trial.machine) as opened:
            calibrate(opened, request, slots)
        with session(trial.machine) as opened:
            result = carry_out_search(opened, request, slots)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    state, decided = result.state, result.state.decided
    return Ending(
        decision=result.ruling.decision,
        rules=tuple(dict.fromkeys(fired.rule for fired in state.fired)),
        grade=None if decided is None else decided.grade,
        no_go=None if decided is None else decided.no_go,
        arm="" if decided is None else decided.configuration,
        gain=None if decided is None else _true_gain(state, decided.configuration),
    )


def _true_gain(state: RunState, arm: str) -> float | None:
    """Return the finalist's gain without noise; None if it has no score."""
    baseline = _noise_free(state.comparisons.get("reference"), BASELINE)
    score = _noise_free(state.comparisons.get("finalists"), arm)
    return None if baseline is None or score is None else (baseline - score) / abs(baseline)


def _noise_free(comparison: Batch | None, name: str) -> float | None:
    if comparison is not None:
        for result in comparison.results():
            is_it = comparison.configurations[result.candidate].name == name
            if is_it and result.score is not None:
                return float(result.metrics["noise_free_score"])
    return None


GO = Promise("Go", lambda e: e.is_go)
NO_GO = replace(GO, most=FALSE_GO)
PERSISTS = Promise("Go that persists", lambda e: e.grade == "go_persists")
FALSE = Promise("Go without a gain", lambda e: e.is_go and e.is_false, most=FALSE_GO)
RECOMMENDED = Promise("recommended without a gain", lambda e: e.is_false)
PAUSED = Promise("paused by a rule", lambda e: e.grade is None, most=0.0)
SEED_LUCK = Promise(
    "a recommendation, or seed_luck fires",
    lambda e: bool(e.arm) or e.rules == ("seed_luck",),
    least=0.95,
)
NULL = (NO_GO, RECOMMENDED, PAUSED)
GAIN = (GO, FALSE, PAUSED)
CLEAR_GAIN = (replace(GO, least=POWER), FALSE, PAUSED)


def _alone(rule: str) -> tuple[Promise, ...]:
    return (Promise(f"{rule} alone fires", lambda e: e.rules == (rule,), least=1.0),)


def _nothing(name: str, promises: tuple[Promise, ...] = NULL, **settings: float) -> Trial:
    """Return a trial with pure noise: all points are equally good."""
    return Trial(f"nothing, {name}", "noise", settings, promises)


def _gain(
    available: float, promises: tuple[Promise, ...], name: str = "sphere", **settings: float
) -> Trial:
    """Return a trial whose optimum gains `available`, with the default objective's noise."""
    known = {"available": available, "noise": DEFAULT_NOISE, **settings}
    return Trial(f"{name} {available:.1%}", "sphere", known, promises)


TRIALS = (
    _nothing("noise 0.5%", noise=DEFAULT_NOISE),
    *(
        _gain(share, CLEAR_GAIN if share >= CLEAR else GAIN)
        for share in (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.05)
    ),
    _nothing("noise 1%", noise=0.01),
    _nothing("noise 2%", noise=0.02),
    replace(
        _nothing("noise 0.5%, seeds 2%", noise=DEFAULT_NOISE), machine=Machine(seed_noise=0.02)
    ),
    replace(
        _nothing("noise 1%, calibrated as 0.3%", noise=0.01),
        calibrated_on=Machine(noise_factor=0.3),
    ),
    replace(
        _nothing(
            "noise 0.5%, outliers", (NO_GO, RECOMMENDED, SEED_LUCK, PAUSED), noise=DEFAULT_NOISE
        ),
        machine=Machine(traps=OUTLIERS),
    ),
    replace(
        _gain(0.02, (*GAIN, RECOMMENDED), "sphere, outliers,"), machine=Machine(traps=OUTLIERS)
    ),
    replace(
        _gain(0.05, _alone("runaway_time"), "a machine that slows down,"),
        machine=Machine(trouble="slow"),
    ),
    replace(
        _gain(0.05, _alone("infrastructure"), "a device that fails,"),
        machine=Machine(trouble="failing"),
    ),
    replace(
        _gain(0.05, _alone("sustained_nan"), "NaNs around the optimum,"),
        machine=Machine(nan_radius=0.7),
    ),
    *(
        _gain(
            0.03,
            (GO, PERSISTS if share > 0 else replace(PERSISTS, most=FALSE_GO)),
            f"{share:.0%} persists of",
            persists=share,
        )
        for share in (-1.0, 0.0, 0.5, 1.0)
    ),
)
