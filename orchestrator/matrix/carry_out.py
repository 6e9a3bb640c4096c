"""Runs from a configuration to their end: points on seeds, calibrations, and searches.

A calibration, a check of knobs, of a proxy, of workers or of memory, and a campaign are points on
seeds, from which no search learns. They differ in their points and in how their results are read.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from budgets.measurements import measure, noise
from budgets.plan import Calibration, Configuration, Devices, Envelope, Phase, Plan
from budgets.state import RunState
from budgets.verdict import BASELINE
from objectives import registry
from objectives.registry import CALLABLE
from orchestrator.capacity import Pace
from orchestrator.config import Config
from orchestrator.plan.forecast import CALIBRATION_SEEDS, find_calibration, known_knobs
from orchestrator.plan.page import shown_alive
from orchestrator.plan.phase2 import followed, objections
from orchestrator.plan.resolve import (
    Overrides,
    calibration_name,
    family_of,
    plan_of,
    run_name,
    search_plan,
    short_hash,
    why_no_go,
    window_of,
)
from orchestrator.records.runs import Result, finished_runs, recorded_state
from orchestrator.run.loop import Proposer
from orchestrator.run.session import Session

NO_RUN_YET = "--override: there is no such run yet, so no rule holds it up"


@dataclass(frozen=True)
class Matrix:
    """Points on seeds that are not planned yet.

    Raises ValueError if a cap on evaluations does not pay for all of them; a calibration is small,
    and counts against no such cap.
    """

    config: Config  # the objective, its limits and the caps
    phase: Phase
    configurations: tuple[Configuration, ...]
    seeds: int
    name: str = ""  # the run's id; "": made from the request
    prefix: str = ""  # of such an id
    fields: Mapping[str, Any] = field(default_factory=dict)  # of the plan, of this kind of run only

    def __post_init__(self) -> None:
        count = self.shape.evaluations * (2 if "proxy" in self.fields else 1)
        most = self.config.budget.max_evals
        if self.phase != "calibration" and most is not None and most < count:
            raise ValueError(f"--max-evals {most} does not pay for all {count} evaluations")

    @property
    def shape(self) -> Envelope:
        """One generation of all points."""
        shape = {"population": len(self.configurations), "seeds_per_candidate": self.seeds}
        return Envelope(generations=1, **shape)

    def run_id(self, devices: Devices) -> str:
        """Return the run's id: an equal request finds the same run.

        A calibration is one of these very devices, another run of any devices of their kind.
        """
        if self.name:
            return self.name
        own, is_calibration = self.config, self.phase == "calibration"
        evaluation = own.evaluation.model_copy(update={"assume_eval_seconds": None})
        points = tuple(one.point for one in self.configurations)
        request = (points, self.fields, self.seeds, evaluation, own.budget, own.direction)
        family = family_of(own.tuned, devices.kind)
        family = calibration_name(own.tuned, devices) if is_calibration else family
        return f"{self.prefix}{family}-{short_hash(repr(request))}"

    def plan(self, devices: Devices, calibration: Calibration | None) -> Plan:
        """Return the plan: one generation, every point on the same seeds."""
        own = {"run_id": self.run_id(devices), **self.fields}
        return plan_of(self.config, devices, calibration, self.shape, self.phase, **own)


def carry_out(  # noqa: PLR0913, PLR0917 - what is run, on what, and how
    matrix: Matrix,
    session: Session,
    slots: Devices,
    pace: Pace | None = None,
    calibration: Calibration | None = None,
    overrides: Overrides = (),
) -> Result:
    """Begin or resume the run of a matrix.

    A new run takes its limits and its noise from `calibration`, or from the one made on such
    devices.
    """
    devices = slots
    directory = session.root / matrix.phase / matrix.run_id(devices)
    if (recorded := recorded_state(directory)) is not None:
        devices, calibration = recorded.planned.devices, recorded.planned.calibration
    elif overrides:
        raise ValueError(NO_RUN_YET)
    elif calibration is None and matrix.phase != "calibration":
        found = find_calibration(session.root, matrix.config.tuned, devices)
        calibration = None if found is None else measure(found.state)
    plan, whole = matrix.plan(devices, calibration), matrix.configurations
    return session.carry_out(directory, plan, slots, lambda _: whole, overrides, pace=pace)


# Calibrations


def calibration_of(config: Config, seeds: int = CALIBRATION_SEEDS, prefix: str = "") -> Matrix:
    """Return the baseline on that many seeds. Runs with a prefix are used by no plan."""
    baseline = Configuration(name=BASELINE, point=config.tuned.space.baseline)
    return Matrix(config, "calibration", (baseline,), seeds, prefix=prefix)


def calibrate(  # noqa: PLR0913 - what is measured, how often, and why
    session: Session,
    config: Config,
    slots: Devices,
    seeds: int = CALIBRATION_SEEDS,
    overrides: Overrides = (),
    *,
    again: bool = False,
) -> Result:
    """Measure the baseline, or read the calibration made on these devices.

    With `again` it is measured again, or what is not finished is resumed; new runs are then planned
    with it. With `overrides` nothing is begun: what a rule has paused goes on.
    """
    matrix = calibration_of(config, seeds)
    if again:
        family = calibration_name(config.tuned, slots)
        finished = len(list(finished_runs(session.root, "calibration", family)))
        number = f"-{finished + 1}" if finished else ""
        matrix = replace(matrix, name=f"{matrix.run_id(slots)}{number}")
    elif known := find_calibration(session.root, config.tuned, slots):
        session.say("Nothing was measured: these figures are on record. --again measures again.")
        return known
    return carry_out(matrix, session, slots, overrides=overrides)


def calibrated_for(
    session: Session, config: Config, slots: Devices, overrides: Overrides
) -> Calibration | Result:
    """Return the calibration to plan a search with; makes it if there is none.

    One made here is named after the search, so that its cost counts against the caps of that search
    alone, also if the process dies before the search's first record. If it does not end well, its
    result is returned instead.
    """
    assumed, matrix = config.evaluation.assume_eval_seconds, calibration_of(config)
    search = short_hash(f"{config.search.phase}/{run_name(config)}")
    matrix = replace(matrix, name=f"{matrix.run_id(slots)}-{search}")
    found = find_calibration(session.root, config.tuned, slots)
    known = None if assumed is None else Calibration(assumed_seconds=assumed)
    if known is None and found is not None and found.directory.name != matrix.name:
        known = measure(found.state)
    if known is not None:
        if overrides:
            raise ValueError(NO_RUN_YET)
        return known
    if found is None:
        what = f"{registry.kind(config.tuned.spec)} on {slots.count} x {slots.name}"
        session.say(f"No calibration of {what} yet: evaluating the baseline first.")
    result = carry_out(matrix, session, slots, overrides=overrides)
    if result.ruling.decision != "done":
        return result
    accounts = result.state.accounts
    cost = {"charged_ms": accounts.device_ms, "open_ms": accounts.wall_ms}
    return measure(result.state).model_copy(update=cost)


# Searches


def carry_out_search(
    session: Session, config: Config, slots: Devices, overrides: Overrides = ()
) -> Result:
    """Begin or resume the configured search; calibrates first if there is no calibration.

    If the calibration does not end well, its result is returned instead. Raises ValueError on a
    plan that is impossible or differs from the recorded run's, and on a phase 1 without a Go.
    """
    directory = session.root / config.search.phase / run_name(config)
    if (recorded := recorded_state(directory)) is not None:
        before = recorded.planned
        source, follows = before.source, config.search.follows
        if source is not None and follows is not None:  # not read: it may be deleted
            source = source.model_copy(update={"run_id": Path(follows).resolve().name})
        plan = search_plan(config, before.devices, before.calibration, source)
        return session.carry_out(directory, plan, slots, replayed, overrides)
    permitted: Overrides = ()
    if (source := followed(session.root, config, slots.kind)) is not None:
        against = objections(source)
        permitted = [override for override in overrides if override[0] in against]
        overrides = [override for override in overrides if override not in permitted]
        if missing := [why for rule, why in against.items() if rule not in dict(permitted)]:
            raise ValueError(". ".join(missing))
    # refuse what cannot be planned before a calibration is paid for
    warnings = [*why_no_go(search_plan(config, slots, None, source))]
    window_of(config.budget, session.clock.now())  # which may be over
    if not config.objective.startswith(CALLABLE):  # no command can check a callable
        are_alive, why = shown_alive(known_knobs(session.root, config.tuned, slots.kind))
        warnings += [] if are_alive else [why]
    for warning in warnings:
        session.say(f"Warning: {warning}.")
    calibration = calibrated_for(session, config, slots, overrides)
    if isinstance(calibration, Result):
        return calibration
    plan, measured = search_plan(config, slots, calibration, source), noise(calibration)
    if plan.confirmation is not None and measured is not None and measured.is_about_zero:
        raise ValueError(
            f"the baseline's score, {measured.mean:.3g}, cannot be told from 0, and a gain is a "
            "share of it: no verdict can be reached. Let the objective return a score whose 0 is "
            "out of reach, or search without a verdict: --set verdict.confirm_seeds=0"
        )
    return session.carry_out(directory, plan, slots, replayed, permitted)


def replayed(state: RunState) -> Proposer:
    """Return the search as the ledger has it."""
    from orchestrator.search import Search  # imports cma

    assert state.plan.search is not None
    search = Search(state.plan.search, state.plan.resolved.population)
    search.replay(state.generations)
    return search
