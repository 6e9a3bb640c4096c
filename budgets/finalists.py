"""Who is compared with the baseline on fresh seeds, and who wins there.

The finalists are the search distribution's mean, its average over the last generations, and the
luckiest candidates. They are compared on the picking seeds; the best of them alone goes on to
seeds that nobody was picked on, so that having picked it does not flatter it there.
"""

from math import ceil, inf

from budgets.state import Generation, RunState
from budgets.terms import Arm

Point = tuple[float, ...]

BASELINE, INCUMBENT = "baseline", "incumbent"
AVERAGE, MEAN, LUCKIEST = "average", "mean", "luckiest"

IN_WORDS = {
    AVERAGE: "the mean of the search distribution, averaged over its last third of generations",
    MEAN: "the mean of the search distribution at the end",
    LUCKIEST: "a best candidate of the search",
}


def average(state: RunState) -> Point | None:
    """The mean of the distribution, averaged over the last third of the generations told."""
    told = [g.told for g in state.told if g.told is not None]
    if not told:
        return None
    last = told[-ceil(len(told) / 3) :]
    return tuple(sum(units) / len(last) for units in zip(*(t.favourite for t in last), strict=True))


def finalists(state: RunState) -> tuple[Arm, ...]:
    """The configurations to compare, none of them twice; those likelier to be good come first."""
    confirmation, last = state.plan.confirmation, state.told[-1].told
    assert confirmation is not None
    mean = average(state)
    assert last is not None
    assert mean is not None
    arms = [Arm(name=AVERAGE, point=mean), Arm(name=MEAN, point=last.favourite)]
    for place, point in enumerate(luckiest(state, confirmation.luckiest), 1):
        arms.append(Arm(name=f"{LUCKIEST} {place}", point=point))
    points = [arm.point for arm in arms]
    return tuple(arm for place, arm in enumerate(arms) if arm.point not in points[:place])


def luckiest(state: RunState, count: int) -> list[Point]:
    """The candidates furthest below their generation's mean score, the best first.

    Scores of different generations, on other seeds, do not compare as they are; those of a proxy
    not even so.
    """
    ranked = sorted(
        (score - mean, generation.number, candidate)
        for generation in full_ones(state)
        if (mean := mean_score(generation)) is not None
        for candidate, score in enumerate(generation.scores())
        if score is not None
    )
    return [state.told[number].points[candidate] for _, number, candidate in ranked[:count]]


def full_ones(state: RunState) -> list[Generation]:
    """The generations told whose candidates were evaluated in full."""
    return [generation for generation in state.told if generation.is_full]


def mean_score(generation: Generation) -> float | None:
    """Over its healthy candidates."""
    healthy = [score for score in generation.scores() if score is not None]
    return sum(healthy) / len(healthy) if healthy else None


def winner(state: RunState) -> Arm | None:
    """The finalist with the best mean score on the picking seeds; None before they are settled.

    One that failed on a seed comes after all that did not. None also where all failed everywhere.
    """
    panel = state.panel("finalists")
    if panel is None or not panel.closed:
        return None

    def order(place: int) -> tuple[int, float, int]:
        scores = panel.scores_by_seed(place)
        mean = sum(scores.values()) / len(scores) if scores else inf
        return len(panel.seeds[place]) - len(scores), mean, place

    best = min(range(len(panel.arms)), key=order)
    return panel.arms[best] if panel.scores_by_seed(best) else None


def has_winner(state: RunState) -> bool:
    """Whether a finalist has a score at all, or may still get one."""
    panel = state.panel("finalists")
    return panel is None or not panel.closed or winner(state) is not None
