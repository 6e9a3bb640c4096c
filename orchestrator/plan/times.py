"""What was measured here: calibrations, times scaled from them, and checks of knobs."""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime
from math import log
from pathlib import Path
from statistics import median
from typing import Literal, NamedTuple

from budgets.calibration import measure
from budgets.events import Status
from budgets.formatting import PROGRAM
from budgets.ledger import LedgerCorruptError
from budgets.liveness import liveness
from budgets.pace import last_seen
from budgets.plan import Calibration, Devices
from budgets.state import ImpossibleEventError, RunState
from objectives.api import Objective
from objectives.registry import kind, short_name
from orchestrator.plan.resolve import calibration_name, family_of
from orchestrator.records.runs import Result, finished_runs, ledgers, recorded_state

CALIBRATION_SEEDS = 8

UNMEASURED = 0.7
"""Share of the throughput that is expected of other FLOPs or another number of devices."""

BUDGET = ("target_flops", "num_batches", "num_epochs")
"""Settings of how long to train. The first that is set decides."""


# Calibrations


def find_calibration(root: Path, objective: Objective, devices: Devices) -> Result | None:
    """Return the newest finished calibration of the objective on such devices."""
    return newest_calibration(root, calibration_name(objective, devices))


def newest_calibration(root: Path, family: str) -> Result | None:
    """Return the newest finished calibration whose name begins with `family`, by its ledger."""
    finished = finished_runs(root, "calibration", family)
    return max(finished, key=lambda found: found.state.began_ms, default=None)


def calibration_here(root: Path, objective: Objective, devices: Devices) -> Calibration | None:
    """Return what was measured of an evaluation on such devices."""
    found = find_calibration(root, objective, devices)
    return None if found is None else measure(found.state)


# The time of an evaluation


@dataclass(frozen=True)
class Overheads:
    """Seconds beside the evaluations; by default as seen on Ray with two cores."""

    startup_seconds: float = 10.0  # from the command to the first evaluation
    gap_seconds: float = 0.03  # of a device, before and after each evaluation


Origin = Literal["measured", "prior", "assumed", "none"]
"""Calibrated here on such devices; scaled from another calibration; stated by the user; unknown."""


@dataclass(frozen=True)
class Times:
    """The time of an evaluation to plan with, and what else its calibration measured."""

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: "Prior | None" = None  # the measurement that the calibration is scaled from
    overheads: Overheads = Overheads()
    measured_at: datetime | None = None
    attempts: int = 0  # finished evaluations of the calibration
    timeouts: int = 0  # those of them that were killed at their limit

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run planned with this `calibration` would first measure its own."""
        return self.origin == "prior" or (self.origin == "measured" and not calibration.samples)

    def for_work(self, factor: float) -> Calibration | None:
        """Return the time of an evaluation with `factor` times the FLOPs."""
        if self.calibration is None:
            return None
        if factor == 1:
            return Calibration(assumed_seconds=self.calibration.median_seconds)
        source, work = self.calibration, factor
        if self.prior is not None:
            source, work = self.prior.calibration, factor * self.prior.factor
        return Calibration(assumed_seconds=scaled_seconds(source, work))


def scaled_seconds(calibration: Calibration, factor: float) -> float:
    """Return the seconds with `factor` times the FLOPs: start-up is fixed, the rest is scaled."""
    startups = [sample.startup_seconds for sample in calibration.samples]
    startup = median(startups) if startups else 0.0
    return startup + max(0.0, calibration.median_seconds - startup) * factor / UNMEASURED


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """Return the user's figure, else a calibration on such devices, else one scaled from elsewhere.

    Raises as reading a damaged calibration does.
    """
    if assumed_seconds is not None:
        return Times("assumed", Calibration(assumed_seconds=assumed_seconds))
    found = find_calibration(root, objective, devices)
    if found is not None:
        ends = list(found.state.ends())
        return Times(
            "measured",
            measure(found.state),
            overheads=overheads_of(found.state),
            measured_at=last_seen(found.state),
            attempts=len(ends),
            timeouts=sum(end.status is Status.TIMEOUT for end in ends),
        )
    if (prior := nearest(root, objective, devices)) is not None:
        return Times("prior", Calibration(assumed_seconds=prior.eval_seconds), prior)
    return Times()


def overheads_of(state: RunState) -> Overheads:
    """Return the overheads of a calibration; the defaults if it was interrupted."""
    attempts = [one for batch in state.batches() for own in batch.attempts.values() for one in own]
    gaps = [
        (one.settled_at.ms - one.reserved_ms) / 1000 - one.settled.seconds
        for one in attempts
        if one.settled is not None and one.settled_at is not None
        if one.settled_at.session == one.session
    ]
    if not gaps or not state.starts_ms:
        return Overheads()
    return Overheads(state.starts_ms[min(state.starts_ms)] / 1000, max(0.0, median(gaps)))


@dataclass(frozen=True)
class Prior:
    """An earlier calibration that the time of an evaluation here is taken or scaled from."""

    run_id: str
    measured_at: datetime
    devices: Devices
    calibration: Calibration
    factor: float  # FLOPs of an evaluation here over those there
    is_assumed: bool  # other FLOPs, or another number of devices
    distance: tuple[float, ...] = ()  # smaller is nearer

    @property
    def eval_seconds(self) -> float:
        if not self.is_assumed:
            return self.calibration.median_seconds
        return scaled_seconds(self.calibration, self.factor)

    def sentence(self) -> str:
        """Name the calibration, its figures, the factor and the result."""
        there, work = self.calibration, _flops(self.calibration)
        scaled = "" if self.factor == 1 else f", {self.factor:.3g} x its FLOPs"
        how = "assumed, throughput x 0.7" if self.is_assumed else "measured"
        return (
            f"times from calibration {self.run_id} of {self.measured_at:%Y-%m-%d} on "
            f"{self.devices.count} x {self.devices.name} (median {there.median_seconds:.3g} s of "
            f"{len(there.samples)}{f', {work:.3g} FLOPs' if work else ''}){scaled}: "
            f"{self.eval_seconds:.3g} s an evaluation, {how}"
        )


def _flops(calibration: Calibration) -> float:
    return median(s.train_flops + s.eval_flops for s in calibration.samples)


def nearest(root: Path, objective: Objective, devices: Devices) -> Prior | None:
    """Return the nearest calibration of this kind of objective on this kind of device.

    The same objective comes first, then as many devices, then the nearest FLOPs, then the newest.
    """
    found: list[Prior] = []
    for path in ledgers(root, "calibration", f"{short_name(objective.spec)}-*"):
        with suppress(LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
            state = recorded_state(path.parent)
            if state is not None and state.concluded is not None:
                found += _priors(state, objective, devices)
    return min(found, key=lambda prior: prior.distance, default=None)


def _priors(state: RunState, objective: Objective, devices: Devices) -> Iterator[Prior]:
    """Yield the calibration as a prior, if times here can be scaled from it.

    Raises ValueError if none of its evaluations was healthy.
    """
    plan, there = state.plan, state.plan.devices
    facts = [(one.kind, one.name, one.threads) for one in (there, devices)]
    if facts[0] != facts[1] or kind(plan.objective) != kind(objective.spec):
        return
    calibration, factor, seen = measure(state), 1.0, last_seen(state)
    is_same = plan.objective_fingerprint == objective.fingerprint
    if not is_same:
        here, work = objective.flops(), _flops(calibration)
        if here is None or not here.total or not work:
            return
        factor = here.total / work
    # on fewer seeds than devices they were not all busy
    is_like = factor == 1 and there.count == devices.count <= len(calibration.samples)
    other_count = there.count != devices.count
    distance = (not is_same, other_count, abs(log(factor)), -seen.timestamp())
    yield Prior(plan.run_id, seen, there, calibration, factor, not is_like, distance)


# Checks of knobs


class Known(NamedTuple):
    """What finished checks have shown about an objective's knobs, by name."""

    alive: tuple[str, ...]
    dead: tuple[str, ...]  # in one check, and alive in none
    neither: tuple[str, ...]

    def lines(self) -> Iterator[str]:
        """Yield a warning of dead knobs and a note of unproven ones."""
        if self.dead:
            yield (
                f"Warning: {', '.join(self.dead)} did not move the score when checked: a search "
                "wastes budget there."
            )
        if self.neither:
            some = self.alive or self.dead
            which = f"{', '.join(self.neither)} have not" if some else "no knob has"
            yield (
                f"Note: {which} been shown to move the score yet; `{PROGRAM} check knobs` with "
                "the same options finds out."
            )


def known_knobs(root: Path, objective: Objective, kind: str) -> Known:
    """Return what all finished checks of the objective on that kind of device have shown."""
    runs = finished_runs(root, "check", family_of(objective, kind))
    found = [own for run in runs if (own := liveness(run.state)) is not None]
    alive = {name for one in found for name in one.names("alive")}
    dead = {name for one in found for name in one.names("dead")} - alive
    names = [knob.name for knob in objective.space.knobs]
    parts = (alive, dead, set(names) - alive - dead)
    return Known(*(tuple(name for name in names if name in part) for part in parts))
