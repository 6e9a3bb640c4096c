"""Who gains how much over whom, as far as the panels of a run tell."""

from statistics import fmean

from budgets.state import Panel, RunState
from budgets.stats import Gain, gain
from budgets.terms import Arm
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
