"""What is known of the baseline's noise, and of every configuration compared on fresh seeds."""

from collections.abc import Iterator
from contextlib import suppress
from statistics import fmean

from budgets import calibration as calibrations
from budgets.state import RunState
from budgets.statistics.comparison import Gain
from budgets.statistics.spread import sd_interval
from budgets.terms import Calibration
from budgets.verdict.finalists import BASELINE, INCUMBENT
from budgets.verdict.findings import Findings
from orchestrator.report.model import ArmScores, Comparison, Noise

WINNER = "winner"


def noise(state: RunState) -> Noise | None:
    """The baseline as calibrated; of a calibration as it has measured so far."""
    calibration = state.plan.calibration
    if state.plan.phase == "calibration":
        with suppress(ValueError):  # nothing healthy yet
            calibration = calibrations.measure(state)
    if calibration is None or not calibration.samples:
        return None
    seeds = state.plan.resolved.seeds_per_candidate if state.plan.search is not None else 1
    return _noise(calibration, seeds)


def _noise(calibration: Calibration, seeds: int) -> Noise:
    samples, sd = calibration.samples, calibration.sd_score
    low, high = (None, None) if sd is None else sd_interval(sd, len(samples))
    return Noise(
        mean=fmean(sample.score for sample in samples),
        sd=sd,
        sd_low=low,
        sd_high=high,
        scores=tuple(sample.score for sample in samples),
        seconds=tuple(sample.seconds for sample in samples),
        peak_memory_bytes=tuple(sample.peak_memory_bytes for sample in samples),
        median_seconds=calibration.median_seconds,
        p90_seconds=calibration.p90_seconds,
        band=calibrations.noise_band(calibration, seeds),
    )


def arms(state: RunState) -> tuple[ArmScores, ...]:
    """Each configuration's scores on the seeds that it is evaluated on, panel by panel."""
    return tuple(
        ArmScores(
            panel=panel.name,
            number=panel.number,
            name=arm.name,
            scores={**dict.fromkeys(panel.seeds[place]), **panel.scores_by_seed(place)},
        )
        for panel in state.panels.values()
        for place, arm in enumerate(panel.arms)
    )


def comparisons(found: Findings | None) -> tuple[Comparison, ...]:
    """Every gain on fresh seeds that is known, the one that decides first."""
    return () if found is None else tuple(_comparisons(found))


def _comparisons(found: Findings) -> Iterator[Comparison]:
    if found.gain is not None:
        yield _against_baseline(WINNER, found.gain, is_decisive=True)
    if found.rung is not None:
        yield _against_baseline(f"{WINNER}, {found.rung_label}", found.rung)
    if found.incumbent is not None:
        yield _against_baseline(f"{INCUMBENT} of the run before", found.incumbent)
    if found.over_incumbent is not None:
        yield _compared(WINNER, f"{INCUMBENT} of the run before", found.over_incumbent)
    for control in found.controls:
        yield _against_baseline(f"{control.name} (control)", control.gain)
        if control.winner_gain.pairs:
            yield _compared(WINNER, f"{control.name} (control)", control.winner_gain)
    for finalist in found.finalists:
        yield _against_baseline(f"{finalist.name} (picking seeds)", finalist.gain)


def _against_baseline(name: str, gain: Gain, *, is_decisive: bool = False) -> Comparison:
    return _compared(name, BASELINE, gain, is_decisive=is_decisive)


def _compared(name: str, against: str, gain: Gain, *, is_decisive: bool = False) -> Comparison:
    return Comparison(name=name, against=against, gain=gain, is_decisive=is_decisive)
