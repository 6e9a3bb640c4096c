"""Whether each knob moves the score: the findings of a check of knobs.

A check is one generation. Candidate 0 is the baseline; every other candidate is the baseline with
one knob at an end of its range; all are evaluated on the same seeds. An end's effect is the mean
paired difference to the baseline, judged by Student's t. Of all ends said to move the score, a
share `alive_level` is expected to be chance (Benjamini and Hochberg).
"""

from collections import Counter
from math import inf, sqrt
from statistics import fmean, stdev
from typing import Literal

from budgets.plan import Direction, Frozen, Plan
from budgets.state import Batch, RunState
from budgets.stats import believed, chance, one_sided_limit

End = Literal["low", "high"]
KnobVerdict = Literal["alive", "dead", "unproven", "unstable"]


class EndEffect(Frozen):
    """What one end of a knob's range does to the score. Numbers need two healthy seeds."""

    end: End
    statuses: dict[str, int]  # how its evaluations ended
    difference: float | None  # mean over the healthy seeds, in the score's unit
    standard_error: float | None
    in_noise: float | None  # the difference in standard deviations of the noise
    t: float | None  # the difference in standard errors; None also where they are 0
    same: bool  # every seed gave the baseline's score
    chance: float  # probability of so large a |t| without an effect
    moves: bool = False  # more than chance, all ends of the check considered


class KnobFinding(Frozen):
    """Whether one knob moves the score."""

    knob: str
    verdict: KnobVerdict
    better: Literal["low", "high", "neither"] | None  # end, of an alive knob
    ends: tuple[EndEffect, ...]  # one if the baseline lies at the other

    @property
    def size(self) -> float:
        """The larger end's difference, without its sign; infinite where none was measured."""
        sizes = [abs(end.difference) for end in self.ends if end.difference is not None]
        return max(sizes, default=inf)


class Liveness(Frozen):
    """The findings of a check so far, the largest effect first."""

    seeds: int
    baseline: float  # its mean score over the check's seeds
    noise: float  # sd of the baseline's score over seeds, calibrated if it was
    t_limit: float  # a larger |t| moves the score, where all seeds are healthy
    knobs: tuple[KnobFinding, ...]
    pending: tuple[str, ...]  # knobs without all their evaluations yet
    direction: Direction

    @property
    def unstable_ends(self) -> tuple[str, ...]:
        """`knob end` of each end where fewer than two seeds gave a score."""
        return tuple(
            f"{f.knob} {e.end}" for f in self.knobs for e in f.ends if e.difference is None
        )

    def names(self, verdict: KnobVerdict) -> tuple[str, ...]:
        """The knobs with that verdict."""
        return tuple(f.knob for f in self.knobs if f.verdict == verdict)


def moved(generation: Batch, candidate: int) -> tuple[int, End] | None:
    """The moved knob's place in the space, and the end; None for the baseline.

    Raises ValueError unless the candidate differs from candidate 0 in one coordinate, 0 or 1.
    """
    baseline, point = generation.points[0], generation.points[candidate]
    places = [i for i, (b, u) in enumerate(zip(baseline, point, strict=True)) if u != b]
    if not places:
        return None
    if len(places) > 1 or point[places[0]] not in (0.0, 1.0):
        raise ValueError(f"candidate {candidate} is not the baseline with one knob at an end")
    return places[0], "high" if point[places[0]] else "low"


def label(plan: Plan, generation: Batch, candidate: int) -> str:
    """A campaign's condition; of a check `baseline`, or a knob's name and an end."""
    if plan.campaign is not None:
        return plan.campaign.conditions[candidate].name
    place = moved(generation, candidate)
    return "baseline" if place is None else f"{plan.space.knobs[place[0]].name} {place[1]}"


def liveness(state: RunState) -> Liveness | None:
    """The findings of a check of knobs; None before its baseline is measured, and of other runs."""
    plan = state.plan
    if plan.phase != "check" or plan.proxy is not None or not state.generations:
        return None
    batch = state.generations[0]
    seeds, baseline = len(batch.seeds[0]), list(batch.scores_by_seed(0).values())
    if len(baseline) < seeds:
        return None
    calibrated = None if plan.calibration is None else plan.calibration.sd_score
    noise = stdev(baseline) if calibrated is None else calibrated
    candidates = range(1, len(batch.points))
    effects = [_effect(batch, one, noise, plan.thresholds.same_score) for one in candidates]
    flags = believed([effect.chance for effect in effects], plan.thresholds.alive_level)
    level = plan.thresholds.alive_level * max(sum(flags), 1) / len(flags)
    ends: dict[str, list[EndEffect]] = {}
    for candidate, effect, flag in zip(candidates, effects, flags, strict=True):
        name = label(plan, batch, candidate).removesuffix(f" {effect.end}")
        ends.setdefault(name, []).append(effect.model_copy(update={"moves": flag}))
    pending = [n for n, own in ends.items() if any(sum(e.statuses.values()) < seeds for e in own)]
    knobs = [_finding(n, tuple(own), plan.sign) for n, own in ends.items() if n not in pending]
    return Liveness(
        seeds=seeds,
        baseline=fmean(baseline),
        noise=noise,
        t_limit=round(one_sided_limit(level / 2, seeds - 1), 6),  # later bits are the C library's
        knobs=tuple(sorted(knobs, key=lambda finding: -finding.size)),
        pending=tuple(pending),
        direction=plan.direction,
    )


def _effect(batch: Batch, candidate: int, noise: float, same_score: float) -> EndEffect:
    moving = moved(batch, candidate)
    assert moving is not None, "only candidate 0 is the baseline"
    baseline = batch.scores_by_seed(0)
    results = [r for seed in batch.seeds[0] if (r := batch.result(candidate, seed)) is not None]
    scores = batch.scores_by_seed(candidate)
    differences = [score - baseline[seed] for seed, score in scores.items()]
    sizes = (same_score * abs(baseline[seed]) for seed in scores)
    is_same = len(scores) == len(baseline) and all(
        abs(own) <= size for own, size in zip(differences, sizes, strict=True)
    )
    mean = error = None
    if len(differences) > 1:
        mean, error = fmean(differences), stdev(differences) / sqrt(len(differences))
    return EndEffect(
        end=moving[1],
        statuses=dict(Counter(str(result.status) for result in results)),
        difference=mean,
        standard_error=error,
        in_noise=mean / noise if mean is not None and noise else None,
        t=mean / error if mean is not None and error else None,
        same=is_same,
        chance=1.0 if is_same else round(chance(differences), 9),
    )


def _finding(knob: str, ends: tuple[EndEffect, ...], sign: int) -> KnobFinding:
    measured = [(sign * end.difference, end) for end in ends if end.difference is not None]
    if any(end.moves for end in ends):
        lowest, end = min(measured, key=lambda pair: pair[0])
        is_worse = lowest > 0 and all(end.moves for _, end in measured)
        better = "neither" if is_worse else end.end
        return KnobFinding(knob=knob, verdict="alive", better=better, ends=ends)
    verdict: KnobVerdict = "unproven" if len(measured) == len(ends) else "unstable"
    if all(end.same for end in ends):
        verdict = "dead"
    return KnobFinding(knob=knob, verdict=verdict, better=None, ends=ends)
