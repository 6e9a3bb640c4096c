"""What a search has found so far, beside the baseline and its noise."""

from functools import partial
from statistics import fmean
from typing import Literal

from budgets.calibration import luck, noise_band
from budgets.state import Generation, RunState
from orchestrator.watch.noted import Noted, Tally
from orchestrator.watch.snapshot import GenerationScores, Scores


def scores_of(state: RunState, noted: Noted) -> Scores:
    """Of a search or a calibration; nothing but the baseline of any other run."""
    calibration = state.plan.calibration
    mean = None if calibration is None else calibration.mean_score
    sd = None if calibration is None else calibration.sd_score
    is_search = state.plan.search is not None
    seeds = state.plan.resolved.seeds_per_candidate if is_search else 1
    band = noise_band(calibration, seeds)
    generations = tuple(
        noted.scored(g, partial(_generation, band=band, is_search=is_search))
        for g in state.generations
        if is_search or state.plan.phase == "calibration"
    )
    full = [one for one in generations if one.is_full]
    return Scores(
        baseline=mean,
        noise_sd=sd,
        band=band,
        best=min((one.best for one in full if one.best is not None), default=None),
        best_by_luck=luck(calibration, sum(one.healthy for one in full), seeds),
        generations=generations,
    )


def _generation(
    generation: Generation, tally: Tally, band: tuple[float, float] | None, *, is_search: bool
) -> GenerationScores:
    """Of a search's candidates; else of single evaluations."""
    told = generation.told
    scores = tuple(generation.healthy) if is_search else tally.scores
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
