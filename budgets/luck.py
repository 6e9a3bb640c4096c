"""What the search's own scores are worth as evidence: what luck alone would make of them."""

from math import ceil, sqrt
from statistics import variance

from budgets.calibration import best_of_noise
from budgets.finalists import full_ones
from budgets.gains import baseline_mean
from budgets.state import Generation, RunState


def spread(state: RunState) -> float | None:
    """The candidates' sd within a generation in noise sds, over the first third of generations.

    There the search steps furthest. None where the noise was not measured; it is that of full
    evaluations.
    """
    calibration, full = state.plan.calibration, full_ones(state)
    noise = calibration.sd_score if calibration is not None else None
    healthy = [_healthy(g) for g in full[: ceil(len(full) / 3)]]
    parts = [(variance(scores), len(scores) - 1) for scores in healthy if len(scores) > 1]
    if not noise or not parts:
        return None
    freedom = sum(weight for _, weight in parts)
    return sqrt(sum(value * weight for value, weight in parts) / freedom) / noise


def _healthy(generation: Generation) -> list[float]:
    return [score for score in generation.scores() if score is not None]


def promise(state: RunState) -> float | None:
    """The gain that the search's best score, of a full evaluation, seemed to have."""
    baseline = baseline_mean(state)
    scores = [score for g in full_ones(state) for score in _healthy(g)]
    if not baseline or not scores:
        return None
    return (baseline - min(scores)) / abs(baseline)


def luck(state: RunState) -> float | None:
    """The gain that the best of the search's scores would have were all of them the baseline's."""
    calibration, baseline = state.plan.calibration, baseline_mean(state)
    sd = calibration.sd_score if calibration is not None else None
    if sd is None or not baseline:
        return None
    short = sum(len(g.results()) for g in state.generations if not g.is_full)
    return best_of_noise(state.accounts.evaluations - short) * sd / abs(baseline)
