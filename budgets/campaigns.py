"""What a campaign found: its conditions, their differences from controls, and effects of factors.

Comparisons of conditions are paired by seed: each seed gives one value, and Student's t over the
seeds gives an interval and a chance. Effects, and differences from controls, are each judged
together: a share `rate` of what is found is expected to be chance (Benjamini and Hochberg).
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from statistics import fmean, stdev

from budgets.plan import CampaignPlan, Frozen
from budgets.state import RunState
from budgets.stats import Gain, NamedGain, believed, gain, gain_of

LEVEL = 0.05
"""How often an interval misses the truth."""

Scores = Sequence[Mapping[int, float]]
"""Of each condition, its healthy scores by seed."""


class ConditionRow(Frozen):
    """One condition over all seeds."""

    name: str
    statuses: dict[str, int]  # of what is settled
    scores: tuple[float | None, ...]  # in the order of the seeds
    healthy: int
    mean: float | None
    sd: float | None


class CampaignReport(Frozen):
    """A campaign's matrix, condition by seed, and what was found in it."""

    seeds: tuple[int, ...]
    rate: float  # share of what is found that may be chance
    is_over: bool  # nothing is judged earlier: repeated looks would find chance
    rows: tuple[ConditionRow, ...]
    gains: tuple[NamedGain, ...]  # effects of factors, then conditions against controls


def campaign_report(state: RunState, *, is_over: bool) -> CampaignReport:
    """The results of a campaign so far; judged only if it `is_over`."""
    campaign, rate = state.plan.campaign, state.plan.thresholds.alive_level
    assert campaign is not None, "the run is a campaign"
    batch = state.generations[0] if state.generations else None
    rows, scores, gains = list[ConditionRow](), list[Mapping[int, float]](), list[NamedGain]()
    for number, condition in enumerate(campaign.conditions):
        results = () if batch is None else (batch.result(number, s) for s in campaign.seeds)
        settled = [one for one in results if one is not None]
        scores.append(own := {one.seed: one.score for one in settled if one.score is not None})
        row = ConditionRow(
            name=condition.name,
            statuses=dict(Counter(str(one.status) for one in settled)),
            scores=tuple(own.get(seed) for seed in campaign.seeds),
            healthy=len(own),
            mean=fmean(own.values()) if own else None,
            sd=stdev(own.values()) if len(own) > 1 else None,
        )
        rows.append(row)
    found = {"effect": _effects, "condition": _against_controls}
    for kind, compared in found.items():
        named = list(compared(campaign, scores, state.plan.sign))
        judging = rate if is_over else -1.0  # below 0 nothing is found
        flags = believed([one.chance for _, _, one in named], judging)
        gains += [NamedGain(kind, *one, flag) for one, flag in zip(named, flags, strict=True)]
    return CampaignReport(
        seeds=campaign.seeds, rate=rate, is_over=is_over, rows=tuple(rows), gains=tuple(gains)
    )


def _against_controls(
    campaign: CampaignPlan, scores: Scores, sign: int
) -> Iterator[tuple[str, str, Gain]]:
    """Each condition against every control; a control against those before it."""
    names = [condition.name for condition in campaign.conditions]
    controls = [n for n, condition in enumerate(campaign.conditions) if condition.control]
    for number, own in enumerate(scores):
        for control in controls:
            if control < number or number not in controls:
                found = gain(own, scores[control], LEVEL / 2, sign)
                yield names[number], names[control], found


def _effects(campaign: CampaignPlan, scores: Scores, sign: int) -> Iterator[tuple[str, str, Gain]]:
    """Each level of a factor against its first, as shares of the first control's mean score.

    Without a control's, of the mean of the conditions' means.
    """
    means = [fmean(own.values()) for own in scores if own]
    pairs = zip(campaign.conditions, scores, strict=True)
    controls = (fmean(own.values()) for condition, own in pairs if condition.control and own)
    reference = next(controls, fmean(means) if means else 0.0)
    for factor, (first, *others) in campaign.factors.items():
        for level in others:
            values = main_effect(campaign, scores, factor, level)
            found = gain_of([-sign * value for value in values], reference, LEVEL / 2)
            yield f"{factor}: {level}", first, found


def main_effect(campaign: CampaignPlan, scores: Scores, factor: str, level: str) -> list[float]:
    """The mean difference of a level from its factor's first, of each seed that any pair has.

    A pair has the same levels of all other factors, and on the seed a score of both.
    """
    named = zip(campaign.conditions, scores, strict=True)
    cells = {frozenset(one.levels.items()): own for one, own in named if one.levels}
    before, after = {(factor, campaign.factors[factor][0])}, {(factor, level)}
    pairs = [(cells[one - before | after], cells[one]) for one in cells if before <= one]
    found = ([a[s] - b[s] for a, b in pairs if s in a and s in b] for s in campaign.seeds)
    return [fmean(values) for values in found if values]
