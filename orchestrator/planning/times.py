"""What is known of an evaluation here: measured, estimated from another run, or somebody's word."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Literal

from budgets.calibration import measure, noise
from budgets.events import Settled, Status
from budgets.ledger import LEDGER, LedgerCorruptError, Record, read
from budgets.plan import Calibration, Devices, Plan
from budgets.state import ImpossibleEventError, fold
from budgets.verdict import gains as luck
from objectives.api import Objective
from orchestrator.planning.calibrations import find_calibration
from orchestrator.planning.history import read_history
from orchestrator.planning.overheads import ASSUMED, Overheads, overheads
from orchestrator.planning.priors import Prior, nearest, scaled_seconds
from orchestrator.planning.room import bytes_of_evaluations
from orchestrator.records.recorded import first_plan, last_changed, ledgers

Origin = Literal["measured", "prior", "assumed", "none"]
"""Measured here on such devices; estimated from another measurement; a person's word; nothing."""

LOOKED_AT = 50
"""Runs of the same objective are looked for among so many, the latest first."""


@dataclass(frozen=True)
class Latest:
    """What the latest run of the same objective on such devices took."""

    run_id: str
    eval_seconds: float  # median of its search's healthy evaluations
    evaluations: int  # of those
    own_noise: float | None  # sd that two points on one seed do not share, in the score's unit
    overheads: Overheads


@dataclass(frozen=True)
class Times:
    """The times, noise and sizes to plan with. Without a calibration there is no number."""

    origin: Origin = "none"
    calibration: Calibration | None = None
    prior: Prior | None = None  # the earlier run that the calibration is scaled from
    overheads: Overheads = ASSUMED
    measured: Path | None = None  # the calibration's directory
    measured_at: datetime | None = None
    attempts: int = 0  # evaluations of the calibration and the latest run that ended
    timeouts: int = 0  # ... at their limit
    evaluation_bytes: int | None = None  # on disk, of one evaluation's directory
    latest: Latest | None = None
    notes: tuple[str, ...] = field(default=())  # what could not be read

    def is_to_measure(self, calibration: Calibration) -> bool:
        """Whether a run that is planned with this `calibration` would first measure its own."""
        is_scaled = not calibration.samples
        return is_scaled and self.origin != "assumed"

    @property
    def drift(self) -> float | None:
        """The latest run's evaluation by the calibrated one; None without one."""
        if self.latest is None or self.calibration is None:
            return None
        return self.latest.eval_seconds / self.calibration.median_seconds

    @property
    def own_noise(self) -> float | None:
        """Of one evaluation, relative to the baseline's score, what no seed adds to all alike.

        Measured where points met on the same seeds; else all of the calibration's. None unless
        that has two healthy seeds and a score that can be told from 0.
        """
        whole = None if self.calibration is None else noise(self.calibration)
        if whole is None or whole.sd is None or whole.is_about_zero:
            return None
        measured = None if self.latest is None else self.latest.own_noise
        return (whole.sd if measured is None else measured) / abs(whole.mean)

    def for_work(self, factor: float) -> Calibration | None:
        """The same of an evaluation with `factor` times the FLOPs: assumed, throughput x 0.7."""
        if self.calibration is None:
            return None
        seconds = self.calibration.median_seconds
        is_assumed = self.prior is None or not self.prior.is_assumed  # once is enough
        scaled = scaled_seconds(seconds, self._startup_seconds(), factor, is_assumed=is_assumed)
        return Calibration(assumed_seconds=scaled)

    def _startup_seconds(self) -> float:
        """Of an evaluation: what no FLOPs change. 0 where nobody measured it."""
        if self.prior is not None and self.prior.entry.evaluation is not None:
            return self.prior.entry.evaluation.startup_seconds
        samples = () if self.calibration is None else self.calibration.samples
        return median(s.startup_seconds for s in samples) if samples else 0.0


def known_time(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """The best there is of an evaluation alone: somebody's word, else a calibration, else the
    nearest earlier run.

    Raises as reading a damaged calibration does.
    """
    if assumed_seconds is not None:
        return Times("assumed", Calibration(assumed_seconds=assumed_seconds))
    if (found := find_calibration(root, objective, devices)) is not None:
        return Times("measured", measure(found.state), measured=found.directory)
    if (prior := nearest(read_history(root), objective, devices)) is not None:
        return Times("prior", prior.calibration(), prior=prior)
    return Times()


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """The same, and what its calibration and the latest run say besides.

    Raises as `known_time`; other runs that cannot be read are noted.
    """
    known = known_time(root, objective, devices, assumed_seconds)
    latest, records, notes = _latest(root, objective, devices)
    known = replace(known, latest=latest, notes=notes)
    if known.measured is None:
        return known if latest is None else replace(known, overheads=latest.overheads)
    own = read(known.measured / LEDGER).records
    ends = [r.event for r in (*own, *records) if isinstance(r.event, Settled)]
    return replace(
        known,
        overheads=_together(overheads(own), latest),
        measured_at=datetime.fromisoformat(own[-1].at),
        attempts=len(ends),
        timeouts=sum(end.status is Status.TIMEOUT for end in ends),
        evaluation_bytes=bytes_of_evaluations(known.measured),
    )


def _together(own: Overheads, latest: Latest | None) -> Overheads:
    """The calibration's, with what a search adds: time between generations, a longer start-up.

    A run that was calibrated by the same command found its workers started: that is not shorter.
    """
    if latest is None:
        return own
    there = latest.overheads
    if "start-up" not in there.assumed:
        own = replace(own, startup_seconds=max(own.startup_seconds, there.startup_seconds))
    if "between generations" in there.assumed:
        return own
    return replace(
        own,
        generation_seconds=there.generation_seconds,
        assumed=tuple(name for name in own.assumed if name != "between generations"),
    )


def _latest(
    root: Path, objective: Objective, devices: Devices
) -> tuple[Latest | None, Sequence[Record], tuple[str, ...]]:
    """The latest search that has told of a generation, its records, and what could not be read."""
    notes: list[str] = []
    searches = [*ledgers(root, "phase1"), *ledgers(root, "phase2")]
    for path in sorted(searches, key=last_changed, reverse=True)[:LOOKED_AT]:
        try:
            if not _is_of(first_plan(path), objective, devices):
                continue
            records = read(path).records
            if (found := _measured(records)) is not None:
                return found, records, tuple(notes)
        except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError) as error:
            notes.append(f"{path} was left out: {error}")
    return None, (), tuple(notes)


def _is_of(plan: Plan | None, objective: Objective, devices: Devices) -> bool:
    return (
        plan is not None
        and plan.objective_fingerprint == objective.fingerprint
        and (plan.devices.kind, plan.devices.name, plan.devices.count, plan.devices.threads)
        == (devices.kind, devices.name, devices.count, devices.threads)
    )


def _measured(records: Sequence[Record]) -> Latest | None:
    state = fold(iter(records))
    seconds = [
        end.seconds
        for generation in state.told
        for end in generation.results()
        if end.status is Status.OK
    ]
    if not seconds:
        return None
    noise = luck.noise(state)
    whole = None if noise is None else noise * state.plan.resolved.seeds_per_candidate**0.5
    return Latest(state.plan.run_id, median(seconds), len(seconds), whole, overheads(records))
