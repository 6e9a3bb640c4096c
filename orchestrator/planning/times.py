"""What an evaluation is expected to take here, and what delays a run beside its evaluations."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median

from budgets.terms import Calibration, Devices
from objectives.api import Objective
from orchestrator.planning.basis import basis_of, known_time
from orchestrator.planning.history import Entry, on_such, read_history
from orchestrator.planning.priors import Prior, scaled_seconds

RECENT = 5
"""Runs that are asked what beside evaluations takes time."""


@dataclass(frozen=True)
class Delays:
    """How much longer runs take than their evaluations."""

    startup_hours: float = 0.0  # of a session, until its first evaluation
    slowdown: float = 1.0  # actual over estimated wall clock, 1 at least
    runs: tuple[str, ...] = ()  # that say so


NO_DELAYS = Delays()


def delays(history: Sequence[Entry], fingerprint: str, devices: Devices) -> Delays:
    """Medians over the last five runs on as many of these devices: start-up of any objective,
    slowdown of this one. None where there is no such run."""
    alike = [e for e in history if on_such(e, devices) and e.devices == devices.count]
    own = [e for e in alike if e.fingerprint == fingerprint and e.accuracy][-RECENT:]
    starts = [e.startup_seconds for e in alike if e.evaluations][-RECENT:]
    slowdown = max(1.0, median(100 / (e.accuracy or 100) for e in own)) if own else 1.0
    startup_hours = median(starts) / 3600 if starts else 0.0
    return Delays(startup_hours, slowdown, tuple(e.run_id for e in own))


@dataclass(frozen=True)
class Times:
    """The times to plan with. Without a calibration there is no number."""

    calibration: Calibration | None = None
    prior: Prior | None = None  # where the calibration is taken from an earlier run
    delays: Delays = NO_DELAYS

    @property
    def to_calibrate(self) -> bool:
        """Whether a run would first measure what is only known from elsewhere."""
        return self.calibration is None or self.prior is not None

    @property
    def startup_seconds(self) -> float:
        """Of an evaluation: what no FLOPs change. 0 where nobody measured it."""
        if self.prior is not None and self.prior.entry.evaluation is not None:
            return self.prior.entry.evaluation.startup_seconds
        samples = () if self.calibration is None else self.calibration.samples
        return median(s.startup_seconds for s in samples) if samples else 0.0

    def notes(self) -> tuple[str, ...]:
        """Where the times come from, if not from a calibration here."""
        notes = [] if self.prior is None else [self.prior.sentence()]
        if self.delays.runs and self.delays.slowdown > 1:
            runs = ", ".join(self.delays.runs)
            notes.append(f"x {self.delays.slowdown:.3g}, as much longer than forecast took: {runs}")
        return tuple(notes)

    def for_work(self, factor: float) -> Calibration | None:
        """The same of an evaluation with `factor` times the FLOPs: assumed, throughput x 0.7."""
        if self.calibration is None:
            return None
        seconds = self.calibration.median_seconds
        is_assumed = self.prior is None or not self.prior.is_assumed  # once is enough
        scaled = scaled_seconds(seconds, self.startup_seconds, factor, is_assumed=is_assumed)
        return Calibration(assumed_seconds=scaled)


def times_here(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """What is known of an evaluation of `objective` on such devices."""
    known = known_time(root, objective, devices, assumed_seconds)
    history = read_history(root).entries
    return Times(known.calibration, known.prior, delays(history, objective.fingerprint, devices))


def times_with_gaps(
    root: Path, objective: Objective, devices: Devices, assumed_seconds: float | None = None
) -> Times:
    """The same; where no run of this objective says what delays it, with the start-up and the gaps
    that its calibration measured, or what is assumed of them."""
    times = times_here(root, objective, devices, assumed_seconds)
    if times.delays.runs or times.calibration is None:
        return times
    beside = basis_of(root, objective, devices, assumed_seconds).overheads
    startup_hours = max(times.delays.startup_hours, beside.startup_seconds / 3600)
    slowdown = 1 + beside.gap_seconds / times.calibration.median_seconds
    return replace(times, delays=Delays(startup_hours, slowdown))
