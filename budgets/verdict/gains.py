"""Who gains how much over whom on fresh seeds, and what luck makes of the search's scores."""

from math import ceil, sqrt
from statistics import fmean, variance

from budgets.calibration import best_exceeded, best_of_noise
from budgets.plan import Arm
from budgets.state import Panel, RunState
from budgets.stats import Gain, gain, total, unexplained
from budgets.verdict.finalists import AVERAGE, BASELINE, INCUMBENT, winner


def baseline_scores(state: RunState) -> dict[int, float]:
    """The baseline's healthy scores on the confirmation's seeds."""
    return scores_of(state.panel("reference"), BASELINE)


def incumbent_scores(state: RunState) -> dict[int, float] | None:
    """An earlier winner's healthy scores there; None before they are settled, and without one."""
    confirmation, panel = state.plan.confirmation, state.panel("reference")
    if confirmation is None or confirmation.incumbent is None:
        return None
    return None if panel is None or not panel.closed else scores_of(panel, INCUMBENT)


def scores_of(panel: Panel | None, arm: str) -> dict[int, float]:
    """Healthy scores by seed of the panel's arm of that name; empty where there is none."""
    if panel is None:
        return {}
    places = (place for place, own in enumerate(panel.arms) if own.name == arm)
    return next(map(panel.scores_by_seed, places), {})


def baseline_mean(state: RunState) -> float | None:
    """The baseline's score, by the calibration or by the confirmation's own evaluations."""
    calibration = state.plan.calibration
    if calibration is not None and calibration.mean_score is not None:
        return calibration.mean_score
    scores = baseline_scores(state)
    return fmean(scores.values()) if scores else None


def picking_gains(state: RunState) -> list[tuple[Arm, Gain]]:
    """Each finalist's gain over the baseline on the picking seeds, in the order of the panel."""
    panel, level = state.panel("finalists"), state.plan.thresholds.go_level
    if panel is None:
        return []
    baseline = baseline_scores(state)
    return [(arm, gain(scores_of(panel, arm.name), baseline, level)) for arm in panel.arms]


def average_gain(state: RunState) -> Gain | None:
    """The gain of the distribution's mean over the last third of generations.

    On the picking seeds; where it won there, on those nobody was picked on.
    """
    best = winner(state)
    if best is not None and best.name == AVERAGE and state.panel("winner") is not None:
        return winner_gain(state)
    return next((found for arm, found in picking_gains(state) if arm.name == AVERAGE), None)


def winner_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline, on seeds nobody was picked on; None before they are."""
    panel = state.panel("winner")
    if panel is None:
        return None
    scores = panel.scores_by_seed(0)
    return gain(scores, baseline_scores(state), state.plan.thresholds.go_level)


def winner_means(state: RunState) -> tuple[float, float] | None:
    """Mean scores of the baseline and the winner on the seeds that the winner's gain is seen on.

    None where that is not seen.
    """
    panel = state.panel("winner")
    if panel is None:
        return None
    scores, baseline = panel.scores_by_seed(0), baseline_scores(state)
    seeds = set(scores) & set(baseline)
    if not seeds:
        return None
    return fmean(baseline[seed] for seed in seeds), fmean(scores[seed] for seed in seeds)


def incumbent_gain(state: RunState) -> Gain | None:
    """The earlier winner's gain over the baseline on the same seeds; None before it is settled."""
    scores = incumbent_scores(state)
    if scores is None:
        return None
    return gain(scores, baseline_scores(state), state.plan.thresholds.go_level)


def gain_over_incumbent(state: RunState) -> Gain | None:
    """The winner's gain over the earlier one on the same seeds; None before both are settled."""
    panel, scores = state.panel("winner"), incumbent_scores(state)
    if panel is None or not panel.closed or scores is None:
        return None
    return gain(panel.scores_by_seed(0), scores, state.plan.thresholds.go_level)


def rung_gain(state: RunState) -> Gain | None:
    """The winner's gain over the baseline on the rung; None before it is settled."""
    panel = state.panel("rung")
    if panel is None or not panel.closed:
        return None
    baseline, best = panel.scores_by_seed(0), panel.scores_by_seed(1)
    return gain(best, baseline, state.plan.thresholds.go_level)


def control_gains(state: RunState) -> list[tuple[str, Gain, Gain]]:
    """For each control its gain over the baseline, and the winner's gain over it."""
    level, panel = state.plan.thresholds.go_level, state.panel("winner")
    best = panel.scores_by_seed(0) if panel is not None else {}
    baseline = baseline_scores(state)
    found = []
    for one in (state.panel("reference"), panel):
        for arm in one.arms if one is not None else ():
            if arm.settings:
                scores = scores_of(one, arm.name)
                found.append((arm.name, gain(scores, baseline, level), gain(best, scores, level)))
    return found


# What luck alone would make of the search's scores


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
    full = state.told
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
    scores = [score for g in state.told for score in g.healthy]
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
    count = sum(len(generation.healthy) for generation in state.told)
    one_candidate = sd / sqrt(state.plan.resolved.seeds_per_candidate)
    best = best_of_noise(count) if share is None else best_exceeded(count, share)
    return best * one_candidate / abs(baseline)
