"""Who is compared with the baseline on fresh seeds, and who wins there.

The finalists are the search distribution's mean, its average over the last generations, and the
luckiest candidates. They are compared on the picking seeds; the best of them alone goes on to
seeds that nobody was picked on, so that having picked it does not flatter it there.
"""

from math import ceil
from statistics import fmean
from typing import TypeVar

from budgets.events import GenerationTold
from budgets.plan import Arm
from budgets.state import Generation, RunState
from budgets.stats import total

Point = tuple[float, ...]
Item = TypeVar("Item")

BASELINE, INCUMBENT = "baseline", "incumbent"
AVERAGE, MEAN, LUCKIEST = "average", "mean", "luckiest"

IN_WORDS = {
    AVERAGE: "the mean of the search distribution, averaged over its last third of generations",
    MEAN: "the mean of the search distribution at the end",
    LUCKIEST: "one of the luckiest candidates of the search",
}


def average(state: RunState) -> Point | None:
    """The mean of the distribution, averaged over the last third of the generations."""
    means = [told.favourite for told in _last_third(learned(state))]
    if not means:
        return None
    return tuple(total(units) / len(means) for units in zip(*means, strict=True))


def stood_for(state: RunState) -> Point | None:
    """What the search itself would recommend; None before a generation is told.

    The mean of its distribution where a model put it, for the model has weighed all scores; its
    average over the last generations where none did.
    """
    told = learned(state)
    if told and told[-1].guided is not None:
        return told[-1].favourite
    return average(state)


def learned(state: RunState) -> list[GenerationTold]:
    """What the search was told, generation by generation."""
    return [generation.told for generation in state.told if generation.told is not None]


def _last_third(items: list[Item]) -> list[Item]:
    return items[-ceil(len(items) / 3) :]


def finalists(state: RunState) -> tuple[Arm, ...]:
    """The configurations to compare, none of them twice; those likelier to be good come first."""
    confirmation, mean = state.plan.confirmation, average(state)
    assert confirmation is not None
    assert mean is not None
    last = learned(state)[-1].favourite
    arms = [Arm(name=AVERAGE, point=mean), Arm(name=MEAN, point=last)]
    for place, point in enumerate(luckiest(state, confirmation.luckiest), 1):
        arms.append(Arm(name=f"{LUCKIEST} {place}", point=point))
    points = [arm.point for arm in arms]
    return tuple(arm for place, arm in enumerate(arms) if arm.point not in points[:place])


def luckiest(state: RunState, count: int) -> list[Point]:
    """Candidates of the last third of generations, furthest below their generation's mean first.

    Scores of different generations, on other seeds, do not compare as they are. Early generations
    spread more: theirs lie far below a mean that was worse.
    """
    ranked = sorted(
        (score - mean, generation.number, candidate)
        for generation in _last_third(state.told)
        if (mean := mean_score(generation)) is not None
        for candidate, score in enumerate(generation.scores())
        if score is not None
    )
    return [state.told[number].points[candidate] for _, number, candidate in ranked[:count]]


def recommendation(state: RunState) -> tuple[float, ...] | None:
    """The point of the unit cube that is recommended; None where there is none.

    What won on fresh seeds; before that, and where nothing is compared, what the search stands
    for. Never the best score seen: the luckiest of many noisy scores is evidence of luck.
    """
    if state.decided is not None:
        return state.decided.point
    return stood_for(state)


def mean_score(generation: Generation) -> float | None:
    """Over its healthy candidates."""
    healthy = generation.healthy
    return total(healthy) / len(healthy) if healthy else None


def winner(state: RunState) -> Arm | None:
    """The finalist with the best mean score on the picking seeds; None before they are settled.

    One that failed on more seeds than another is not it. Those that failed on other seeds each are
    compared on the seeds that all of them have. None also where all failed everywhere.
    """
    panel = state.panel("finalists")
    if panel is None or not panel.closed:
        return None
    scores = [panel.scores_by_seed(place) for place in range(len(panel.arms))]
    most = max(map(len, scores))
    left = [place for place, own in enumerate(scores) if len(own) == most]
    if most == 0:
        return None
    shared = set.intersection(*(set(scores[place]) for place in left))

    def mean(place: int) -> float:
        return fmean(score for seed, score in scores[place].items() if seed in shared or not shared)

    return panel.arms[min(left, key=mean)]


def has_winner(state: RunState) -> bool:
    """Whether a finalist has a score at all, or may still get one."""
    panel = state.panel("finalists")
    return panel is None or not panel.closed or winner(state) is not None
