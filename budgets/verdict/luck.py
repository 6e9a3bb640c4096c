"""What the search's own scores are worth as evidence: what luck alone would make of them."""

from math import ceil, sqrt
from statistics import variance

from budgets.calibration import best_exceeded, best_of_noise
from budgets.state import Panel, RunState
from budgets.stats import total, unexplained
from budgets.verdict.finalists import full_ones
from budgets.verdict.gains import baseline_mean, baseline_scores


def spread(state: RunState) -> float | None:
    """Standard deviation of the candidates of one generation, over the first third of them.

    There the search steps furthest. In the score's unit, of full evaluations; None where no
    generation has two healthy candidates.
    """
    parts = [(variance(scores), len(scores) - 1) for scores in _far_apart(state)]
    return _pooled([(value * freedom, freedom) for value, freedom in parts])


def spread_freedom(state: RunState) -> int:
    """Degrees of freedom that the spread is known with."""
    return sum(len(scores) - 1 for scores in _far_apart(state))


def _far_apart(state: RunState) -> list[list[float]]:
    full = full_ones(state)
    healthy = [generation.healthy for generation in full[: ceil(len(full) / 3)]]
    return [scores for scores in healthy if len(scores) > 1]


def noise(state: RunState) -> float | None:
    """What that would be if all candidates were equally good; None where nothing tells.

    They share their seeds, so what a seed adds to all alike makes no two of them differ: most of a
    baseline's standard deviation over seeds may be of that kind. What is left is seen where
    finalists, winner and baseline are compared on the same fresh seeds.
    """
    baseline, panels = baseline_scores(state), (state.panel("finalists"), state.panel("winner"))
    rows = [[baseline, *_scores(panel)] for panel in panels if panel is not None]
    one_seed = _pooled([unexplained([row for row in own if row]) for own in rows])
    return None if one_seed is None else one_seed / sqrt(state.plan.resolved.seeds_per_candidate)


def _scores(panel: Panel) -> list[dict[int, float]]:
    """By seed, of each arm that is no control."""
    return [panel.scores_by_seed(place) for place, arm in enumerate(panel.arms) if not arm.settings]


def _pooled(parts: list[tuple[float, int]]) -> float | None:
    """The standard deviation that sums of squares, with their degrees of freedom, amount to."""
    freedom = sum(own for _, own in parts)
    return sqrt(total(squares for squares, _ in parts) / freedom) if freedom else None


def promise(state: RunState) -> float | None:
    """The gain that the search's best score, of a full evaluation, seemed to have."""
    baseline = baseline_mean(state)
    scores = [score for g in full_ones(state) for score in g.healthy]
    if not baseline or not scores:
        return None
    return (baseline - min(scores)) / abs(baseline)


def luck(state: RunState, share: float | None = None) -> float | None:
    """The same if every candidate were the baseline, each on seeds of its own: on average.

    With a `share`, the gain that it exceeds with that probability. Candidates that share a seed
    differ by less, so it is the most that luck makes.
    """
    calibration, baseline = state.plan.calibration, baseline_mean(state)
    sd = calibration.sd_score if calibration is not None else None
    if sd is None or not baseline:
        return None
    count = sum(len(generation.healthy) for generation in full_ones(state))
    one_candidate = sd / sqrt(state.plan.resolved.seeds_per_candidate)
    best = best_of_noise(count) if share is None else best_exceeded(count, share)
    return best * one_candidate / abs(baseline)
