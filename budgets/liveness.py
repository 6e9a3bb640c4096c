"""Whether each knob moves the score: what a check's evaluations prove, and how large it is.

A check is one generation. Candidate 0 is the baseline; every other candidate is the baseline with
one knob at an end of its range; all are scored on the same seeds. An end's effect is the mean
paired difference to the baseline (above 0 is worse), judged by Student's t; of all ends said to
move the score, a share `alive_level` at most is expected to be chance.
"""

from collections import Counter
from collections.abc import Sequence
from math import inf
from statistics import fmean, stdev
from typing import Literal

from budgets.events import Status
from budgets.plan import Frozen, Plan
from budgets.state import Batch, RunState
from budgets.stats import chance, count_needed, discoveries, paired, two_sided_limit

End = Literal["low", "high"]
KnobVerdict = Literal["alive", "dead", "unproven", "unstable"]

MOST_SEEDS = 1000
"""No check is advised to use more."""


class EndEffect(Frozen):
    """What one end of a knob's range does to the score. Numbers need two healthy seeds."""

    end: End
    statuses: dict[str, int]  # how its evaluations ended
    difference: float | None  # mean over the healthy seeds, in the score's unit
    standard_error: float | None  # of that mean
    in_noise: float | None  # the difference in standard deviations of the noise
    t: float | None  # the difference in standard errors; None also where they are 0
    same: bool  # every seed gave the baseline's score
    chance: float  # probability of so large a |t| if the end did nothing
    moves: bool = False  # too much for chance, all ends of the check considered


class KnobFinding(Frozen):
    """Whether one knob moves the score."""

    knob: str
    verdict: KnobVerdict
    better: Literal["low", "high", "neither"] | None  # end, of an alive knob
    ends: tuple[EndEffect, ...]  # one if the baseline lies at the other
    seeds_needed: int | None  # that would prove an unproven one; None: not within MOST_SEEDS

    @property
    def size(self) -> float:
        """The larger end's difference, whatever its sign; infinite where none was measured."""
        sizes = [abs(end.difference) for end in self.ends if end.difference is not None]
        return max(sizes, default=inf)


class Liveness(Frozen):
    """What a check has found so far, the largest effect first."""

    seeds: int
    baseline: float  # its mean score over the check's seeds
    noise: float  # sd of the baseline's score from seed to seed, calibrated if it was
    t_limit: float  # |t| above it moves the score, where all seeds are healthy
    knobs: tuple[KnobFinding, ...]
    pending: tuple[str, ...]  # knobs without all their evaluations yet

    @property
    def unstable_ends(self) -> tuple[str, ...]:
        """As `knob end`: where fewer than two seeds gave a score, whatever the other end does."""
        return tuple(
            f"{f.knob} {e.end}" for f in self.knobs for e in f.ends if e.difference is None
        )

    def names(self, verdict: KnobVerdict) -> tuple[str, ...]:
        """The knobs with that verdict."""
        return tuple(f.knob for f in self.knobs if f.verdict == verdict)


def moved(generation: Batch, candidate: int) -> tuple[int, End] | None:
    """Which knob (by its place in the space) the candidate has where; None: it is the baseline.

    Raises ValueError unless it differs from candidate 0 in one coordinate, which is 0 or 1.
    """
    baseline, point = generation.points[0], generation.points[candidate]
    places = [i for i, (b, u) in enumerate(zip(baseline, point, strict=True)) if u != b]
    if not places:
        return None
    if len(places) > 1 or point[places[0]] not in (0.0, 1.0):
        raise ValueError(f"candidate {candidate} is not the baseline with one knob at an end")
    return places[0], "high" if point[places[0]] else "low"


def label(plan: Plan, generation: Batch, candidate: int) -> str:
    """What a check's candidate is: `baseline`, or a knob's name and an end; of a campaign, which
    condition."""
    if plan.campaign is not None:
        return plan.campaign.conditions[candidate].name
    place = moved(generation, candidate)
    return "baseline" if place is None else f"{_name(plan, place[0])} {place[1]}"


def _name(plan: Plan, place: int) -> str:
    return plan.space.knobs[place].name


def liveness(state: RunState) -> Liveness | None:
    """What the check in `state` has found; None until its baseline is measured, and for others."""
    plan = state.plan
    if plan.phase != "check" or plan.proxy is not None or not state.generations:
        return None
    batch, rules = state.generations[0], plan.thresholds
    seeds, baseline = len(batch.seeds[0]), batch.scores_by_seed(0)
    if len(baseline) < seeds:
        return None
    calibrated = None if plan.calibration is None else plan.calibration.sd_score
    noise = stdev(baseline.values()) if calibrated is None else calibrated
    tried = len(batch.points) - 1
    measured = [_effect(batch, n, noise, rules.same_score) for n in range(1, tried + 1)]
    believed = discoveries([effect.chance for _, effect in measured], rules.alive_level)
    # the level of those believed, and of one more
    level, next_level = (
        rules.alive_level * min(max(k, 1), tried) / tried for k in (believed, believed + 1)
    )
    ends: dict[int, list[EndEffect]] = {}
    for place, effect in measured:
        moves = {"moves": believed > 0 and effect.chance <= level}
        ends.setdefault(place, []).append(effect.model_copy(update=moves))
    pending = [i for i, own in ends.items() if any(sum(e.statuses.values()) < seeds for e in own)]
    found = [_finding(_name(plan, i), ends[i], next_level) for i in ends if i not in pending]
    return Liveness(
        seeds=seeds,
        baseline=fmean(baseline.values()),
        noise=noise,
        t_limit=round(two_sided_limit(level, seeds - 1), 6),  # the last bits are the C library's
        knobs=tuple(sorted(found, key=lambda finding: -finding.size)),
        pending=tuple(_name(plan, i) for i in pending),
    )


def _effect(batch: Batch, candidate: int, noise: float, same_score: float) -> tuple[int, EndEffect]:
    """Which knob, by its place in the space, and what this end of it does."""
    moving = moved(batch, candidate)
    assert moving is not None, "only candidate 0 is the baseline"
    place, end = moving
    baseline, scores = batch.scores_by_seed(0), batch.scores_by_seed(candidate)
    results = [batch.result(candidate, seed) for seed in batch.seeds[0]]
    differences = {seed: score - baseline[seed] for seed, score in scores.items()}
    same = len(scores) == len(results) and all(
        abs(d) <= same_score * abs(baseline[seed]) for seed, d in differences.items()
    )
    mean, error, t = paired(list(differences.values()))
    return place, EndEffect(
        end=end,
        statuses=dict(Counter(str(r.status) for r in results if r is not None)),
        difference=mean,
        standard_error=error,
        in_noise=mean / noise if mean is not None and noise else None,
        t=t,
        same=same,
        chance=1.0 if same else round(chance(list(differences.values())), 9),
    )


def _finding(knob: str, ends: Sequence[EndEffect], level: float) -> KnobFinding:
    verdict, better, needed = _verdict(ends), None, None
    if verdict == "alive":
        better = _better(ends)
    elif verdict == "unproven":  # seeds on which the larger effect would be significant
        larger = max((end for end in ends if not end.same), key=lambda end: abs(end.t or 0.0))
        healthy = larger.statuses[Status.OK]
        needed = count_needed(larger.t or 0.0, healthy, level, MOST_SEEDS)
    return KnobFinding(
        knob=knob, verdict=verdict, better=better, ends=tuple(ends), seeds_needed=needed
    )


def _verdict(ends: Sequence[EndEffect]) -> KnobVerdict:
    if any(end.moves for end in ends):
        return "alive"
    if any(end.difference is None for end in ends):
        return "unstable"
    return "dead" if all(end.same for end in ends) else "unproven"


def _better(ends: Sequence[EndEffect]) -> Literal["low", "high", "neither"]:
    """The end with the lower score; neither if every end measured is worse than the baseline."""
    measured = [(end.difference, end) for end in ends if end.difference is not None]
    if all(difference > 0 and end.moves for difference, end in measured):
        return "neither"
    return min(measured, key=lambda pair: pair[0])[1].end
