"""Whole searches on objectives whose optimum is known, and what their verdicts must be.

The orchestrator runs for real, calibration and confirmation included, on a simulated machine and
clock (tests/simulation); only the files beside the ledger are left out. What a recommendation
really gains is what the objective scores there without noise.
"""

import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

import numpy as np

from budgets.events import Grade, NoGo
from budgets.state import Batch, RunState
from budgets.verdict import BASELINE, conditions, winner
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.matrix.matrix import calibrate, carry_out_search
from orchestrator.run.attempts import Run
from orchestrator.run.session import Session
from tests.asking import config_for
from tests.simulation.instant import InstantExecutor, Machine
from tests.simulation.session import Person, SimulatedClock, SimulatedEngine

DEFAULT_NOISE = 0.005
"""Standard deviation over seeds of the embedded default, in its score (docs/search.md)."""

FALSE_GO, POWER = 0.01, 0.90
"""Shares of runs: with a Go for nothing at most, with one for a convincing gain at least."""

CONVINCING = 0.02
LUCKY = 0.05  # share of evaluations that score 5 sd too low: of a search's 120 some six


@dataclass(frozen=True)
class Ending:
    """The result of a run, beside what is true. Gains are relative to the baseline's score."""

    decision: str  # done, or what paused the run
    rules: tuple[str, ...]
    grade: Grade | None  # None: it ended before there was one
    no_go: NoGo | None
    arm: str  # the recommendation; empty where there is none
    gain: float | None  # of the recommendation, true
    winner: str  # the finalist that was compared with the baseline, recommended or not
    winner_gain: float | None  # true
    missing: tuple[str, ...]  # conditions of a Go that were not met

    @property
    def is_go(self) -> bool:
        return self.grade in ("go", "go_persists")

    @property
    def is_lucky(self) -> bool:
        """Whether something is recommended that gains nothing."""
        return bool(self.arm) and (self.gain is None or self.gain <= 0)


@dataclass(frozen=True)
class Promise:
    """Something that happens in so large a share of a trial's runs, at least and at most."""

    what: str
    happens: Callable[[Ending], bool]
    least: float = 0.0
    most: float = 1.0


@dataclass(frozen=True)
class Trial:
    """What is searched, on which machine, and what its runs must come to. A seed makes a run."""

    name: str
    objective: str
    settings: Mapping[str, Any]
    promises: tuple[Promise, ...]  # one without a limit is only counted
    machine: Machine = field(default_factory=Machine)
    calibrated_on: Machine | None = None  # None: on the same

    @property
    def available(self) -> float:
        """What the optimum gains, relative to the baseline."""
        return float(self.settings.get("available", 0.0))


class _QuietSession(Session):
    """A session that writes its ledgers and no reports."""

    def _closed(self, run: Run, generation: Batch | None) -> None:
        """Nobody reads them."""


def ending(trial: Trial, seed: int, root: Path) -> Ending:
    """How that run ends. `root` is made for it, and removed. One seed has one ending."""
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
        return _QuietSession(
            root,
            SimulatedEngine(kind="inline", make=lambda _: InstantExecutor(machine, clock, rng)),
            observe=lambda *_: None,
            say=lambda _: None,
            clock=clock.clock,
            stop=Person(),
        )

    slots = trial.machine.slots
    try:
        with session(trial.calibrated_on or trial.machine) as opened:
            calibrate(opened, request, slots)
        with session(trial.machine) as opened:
            result = carry_out_search(opened, request, slots)
    finally:
        shutil.rmtree(root, ignore_errors=True)
    state, decided, best = result.state, result.state.decided, winner(result.state)
    return Ending(
        decision=result.ruling.decision,
        rules=tuple(dict.fromkeys(fired.rule for fired in state.fired)),
        grade=None if decided is None else decided.grade,
        no_go=None if decided is None else decided.no_go,
        arm="" if decided is None else decided.configuration,
        gain=None if decided is None else _true_gain(state, decided.configuration),
        winner="" if best is None else best.name,
        winner_gain=None if best is None else _true_gain(state, best.name),
        missing=tuple(condition.rule for condition in conditions(state) if not condition.met),
    )


def _true_gain(state: RunState, arm: str) -> float | None:
    """What the finalist of that name gains without noise; None where it has no score."""
    baseline = _noise_free(state.comparison("reference"), BASELINE)
    score = _noise_free(state.comparison("finalists"), arm)
    return None if baseline is None or score is None else (baseline - score) / abs(baseline)


def _noise_free(panel: Batch | None, name: str) -> float | None:
    if panel is None:
        return None
    places = {arm.name: place for place, arm in enumerate(panel.configurations)}
    own = (r for r in panel.results() if r.candidate == places.get(name) and r.score is not None)
    found = [result.metrics["noise_free_score"] for result in own]
    return fmean(found) if found else None


GO = Promise("Go", lambda e: e.is_go)
NO_GO = replace(GO, most=FALSE_GO)
PERSISTS = Promise("Go that persists", lambda e: e.grade == "go_persists")
LUCK = Promise("Go for what gains nothing", lambda e: e.is_go and e.is_lucky, most=FALSE_GO)
NAMED_LUCK = Promise("named as best, gains nothing", lambda e: e.is_lucky)
PAUSED = Promise("paused by a rule", lambda e: e.grade is None, most=0.0)
SEED_LUCK = Promise(
    "seed_luck fires where nothing is recommended",
    lambda e: bool(e.arm) or e.rules == ("seed_luck",),
    least=0.95,
)
NULL = (NO_GO, NAMED_LUCK, PAUSED)
GAIN = (GO, LUCK, PAUSED)
CONVINCING_GAIN = (replace(GO, least=POWER), LUCK, PAUSED)


def _alone(rule: str) -> tuple[Promise, ...]:
    return (Promise(f"{rule} fires, nothing else", lambda e: e.rules == (rule,), least=1.0),)


def _nothing(name: str, promises: tuple[Promise, ...] = NULL, **settings: float) -> Trial:
    """Pure noise: no point is better than another."""
    return Trial(f"nothing, {name}", "noise", settings, promises)


def _gain(
    available: float, promises: tuple[Promise, ...], name: str = "sphere", **settings: float
) -> Trial:
    """So much can be gained, on the noise of the embedded default."""
    objective = name if name in ("ellipsoid", "rosenbrock") else "sphere"
    given = {"available": available, "noise": DEFAULT_NOISE, **settings}
    return Trial(f"{name} {available:.1%}", objective, given, promises)


TRIALS = (
    _nothing("noise 0.5%", noise=DEFAULT_NOISE),
    *(
        _gain(share, CONVINCING_GAIN if share >= CONVINCING else GAIN)
        for share in (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.05)
    ),
    _nothing("noise 1%", noise=0.01),
    _nothing("noise 2%", noise=0.02),
    _nothing("noise 0.5%, seeds 2%", noise=0.005, seed_noise=0.02),
    replace(
        _nothing("noise 1%, calibrated as 0.3%", noise=0.01),
        calibrated_on=Machine(noise_factor=0.3),
    ),
    _gain(0.02, CONVINCING_GAIN, "sphere, seeds 2%,", seed_noise=0.02),
    _gain(0.02, GAIN, "ellipsoid"),
    _gain(0.02, GAIN, "rosenbrock"),
    _nothing(
        "noise 0.5%, lucky evaluations",
        (NO_GO, NAMED_LUCK, SEED_LUCK, PAUSED),
        noise=0.005,
        traps=LUCKY,
    ),
    _gain(0.02, (*GAIN, NAMED_LUCK), "sphere, lucky evaluations,", traps=LUCKY),
    replace(
        _gain(0.05, _alone("runaway_time"), "a machine that slows down,"),
        machine=Machine(trouble="slow"),
    ),
    replace(
        _gain(0.05, _alone("infrastructure"), "a device that fails,"),
        machine=Machine(trouble="failing"),
    ),
    _gain(0.05, _alone("sustained_nan"), "NaNs around the optimum,", nan_radius=0.7),
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
"""All of them, each with a name of its own."""
