"""What a search has found so far, beside the baseline and its noise."""

from functools import partial
from statistics import fmean
from typing import Literal

from budgets.calibration import luck
from budgets.state import Generation, RunState
from orchestrator.watch.noted import Noted, Tally
from orchestrator.watch.snapshot import GenerationScores, Scores

BAND_SDS = 2.0
"""How far the noise band reaches either side of the baseline's mean, in its own deviations."""


def scores_of(state: RunState, noted: Noted) -> Scores:
    """Of a search or a calibration; nothing but the baseline of any other run."""
    calibration = state.plan.calibration
    mean = None if calibration is None else calibration.mean_score
    sd = None if calibration is None else calibration.sd_score
    band = None if mean is None or sd is None else (mean - BAND_SDS * sd, mean + BAND_SDS * sd)
    is_search = state.plan.search is not None or state.plan.phase == "calibration"
    full = [noted.tally(g) for g in state.generations if g.is_full and is_search]
    count = sum(len(tally.scores) for tally in full)
    return Scores(
        baseline=mean,
        noise_sd=sd,
        band=band,
        best=min((tally.best for tally in full if tally.best is not None), default=None),
        best_by_luck=luck(calibration, count),
        generations=tuple(
            noted.scored(g, partial(_generation, band=band)) for g in state.generations if is_search
        ),
    )


def _generation(
    generation: Generation, tally: Tally, band: tuple[float, float] | None
) -> GenerationScores:
    """Of candidates once it is told; before that of their evaluations so far."""
    told, scores = generation.told, tally.scores
    if told is not None:
        scores = tuple(generation.healthy)
    mean = fmean(scores) if scores else None
    outside: Literal["better", "worse"] | None = None
    if mean is not None and band is not None and generation.is_full:
        outside = "better" if mean < band[0] else "worse" if mean > band[1] else None
    return GenerationScores(
        number=generation.number,
        is_full=generation.is_full,
        is_told=told is not None,
        healthy=len(scores),
        failed=tally.statuses.total() - len(tally.scores),
        best=min(scores, default=None),
        mean=mean,
        sigma=None if told is None else told.sigma,
        outside=outside,
    )
