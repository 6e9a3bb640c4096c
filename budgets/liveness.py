"""Whether each knob moves the score: the findings of a check of knobs.

A check is one generation. Candidate 0 is the baseline; every other candidate is the baseline with
one knob at an end of its range; all are evaluated on the same seeds. An end's effect is the mean
paired difference to the baseline, judged by Student's t. Of all ends said to
move the score, a share `alive_level` is expected to be chance (Benjamini and Hochberg).
"""

from collections import Counter
from math import inf
from statistics import fmean, stdev
from typing import Literal

from budgets.plan import DIRECTION, Direction, Frozen, Plan
from budgets.state import Batch, RunState
from budgets.stats import chance, discoveries, paired, two_sided_limit

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
    direction: Direction = DIRECTION

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
    batch, level = state.generations[0], plan.thresholds.alive_level
    seeds, baseline = len(batch.seeds[0]), batch.scores_by_seed(0)
    if len(baseline) < seeds:
        return None
    calibrated = None if plan.calibration is None else plan.calibration.sd_score
    noise = stdev(baseline.values()) if calibrated is None else calibrated
    effects: dict[int, list[EndEffect]] = {}
    for candidate in range(1, len(batch.points)):
        moving = moved(batch, candidate)
        assert moving is not None, "only candidate 0 is the baseline"
        effect = _effect(batch, candidate, moving[1], noise, plan.thresholds.same_score)
        effects.setdefault(moving[0], []).append(effect)
    chances = [effect.chance for ends in effects.values() for effect in ends]
    count = discoveries(chances, level)
    limit = level * max(count, 1) / len(chances)
    knobs, pending = [], []
    for place, ends in effects.items():
        name = plan.space.knobs[place].name
        if any(sum(end.statuses.values()) < seeds for end in ends):
            pending.append(name)
            continue
        moves = [bool(count) and end.chance <= limit for end in ends]
        knobs.append(_finding(name, ends, moves, plan.sign))
    return Liveness(
        seeds=seeds,
        baseline=fmean(baseline.values()),
        noise=noise,
        t_limit=round(two_sided_limit(limit, seeds - 1), 6),  # the last bits are the C library's
        knobs=tuple(sorted(knobs, key=lambda finding: -finding.size)),
        pending=tuple(pending),
        direction=plan.direction,
    )


def _effect(batch: Batch, candidate: int, end: End, noise: float, same_score: float) -> EndEffect:
    baseline, scores = batch.scores_by_seed(0), batch.scores_by_seed(candidate)
    results = [batch.result(candidate, seed) for seed in batch.seeds[0]]
    differences = {seed: score - baseline[seed] for seed, score in scores.items()}
    same = len(scores) == len(results) and all(
        abs(d) <= same_score * abs(baseline[seed]) for seed, d in differences.items()
    )
    mean, error, t = paired(list(differences.values()))
    return EndEffect(
        end=end,
        statuses=dict(Counter(str(r.status) for r in results if r is not None)),
        difference=mean,
        standard_error=error,
        in_noise=mean / noise if mean is not None and noise else None,
        t=t,
        same=same,
        chance=1.0 if same else round(chance(list(differences.values())), 9),
    )


def _finding(knob: str, effects: list[EndEffect], moves: list[bool], sign: int) -> KnobFinding:
    verdict: KnobVerdict = "dead" if all(end.same for end in effects) else "unproven"
    better: Literal["low", "high", "neither"] | None = None
    ends = tuple(e.model_copy(update={"moves": own}) for e, own in zip(effects, moves, strict=True))
    measured = [(sign * end.difference, end) for end in ends if end.difference is not None]
    if any(moves):
        lowest, end = min(measured, key=lambda pair: pair[0])
        is_worse = lowest > 0 and all(end.moves for _, end in measured)
        verdict, better = "alive", "neither" if is_worse else end.end
    elif len(measured) < len(ends):
        verdict = "unstable"
    return KnobFinding(knob=knob, verdict=verdict, better=better, ends=ends)
