"""What an evaluation is expected to take here: measured, vouched for, from a prior, or unknown."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from budgets.terms import Calibration, Devices
from objectives.api import Objective
from orchestrator.planning.calibrations import calibration_here
from orchestrator.planning.history import read_history
from orchestrator.planning.lost import NOTHING_LOST, Lost, lost
from orchestrator.planning.priors import Prior, nearest, scaled_seconds


@dataclass(frozen=True)
class Times:
    """The times to plan with. Without a calibration there is no number."""

    calibration: Calibration | None = None
    prior: Prior | None = None  # where the calibration is taken from an earlier run
    lost: Lost = NOTHING_LOST  # beside evaluations

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
        if self.lost.runs and self.lost.slowdown > 1:
            runs = ", ".join(self.lost.runs)
            notes.append(f"x {self.lost.slowdown:.3g}, as much longer than forecast took: {runs}")
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
    history = read_history(root).entries
    beside = lost(history, objective.fingerprint, devices)
    known = calibration_here(root, objective, devices, assumed_seconds)
    if known is not None:
        return Times(known, lost=beside)
    prior = nearest(history, objective, devices)
    return Times() if prior is None else Times(prior.calibration(), prior, beside)
