"""What the scores over generations say, in words."""

from collections.abc import Sequence

from budgets.words import counted, number
from orchestrator.report.model import GenerationView, Noise, Report
from orchestrator.report.plots.candidates import Candidate
from orchestrator.report.plots.fresh import fresh_of
from orchestrator.report.plots.words import sentences


def caption(report: Report, has_short: bool) -> str:
    if all(g.best is None for g in report.generations):
        return "Nothing can be said of scores yet; the failures say why."
    noise = report.noise is not None and report.noise.sd is not None
    return sentences(
        "A search that finds something leaves the baseline's band and stays below what luck alone "
        "would give the best of as many candidates."
        if noise
        else "Lower is better. The baseline's noise is not known, so no band says what is chance.",
        "Only scores on fresh seeds, at the right, say how good the winner is: the best of many "
        "noisy scores is the luckiest too."
        if any(a.panel == "winner" for a in report.arms)
        else "",
        "Generations that a proxy evaluated are apart, below." if has_short else "",
    )


def description(report: Report, own: Sequence[Candidate]) -> str:
    failed = sum(c.score is None for c in own)
    fresh = fresh_of(report)
    return sentences(
        f"{counted(len(own), 'candidate')} in {counted(len(report.generations), 'generation')}, "
        f"{failed or 'none'} of them failed.",
        _noise_said(report.noise),
        _course_said([g for g in report.generations if g.best is not None and not g.is_short]),
        f"On {counted(fresh['winner'].seeds, 'fresh seed')} the winner's mean is "
        f"{fresh['winner'].in_words}, the baseline's {fresh['baseline'].in_words}."
        if fresh
        else "",
    )


def _noise_said(noise: Noise | None) -> str:
    if noise is None:
        return ""
    spread = "" if noise.sd is None else f", standard deviation {number(noise.sd)}"
    seeds = counted(len(noise.scores), "seed")
    return f"The baseline's mean over {seeds} is {number(noise.mean)}{spread}."


def _course_said(generations: Sequence[GenerationView]) -> str:
    if not generations:
        return ""
    first, last = generations[0], generations[-1]
    luck = last.luck_so_far
    return sentences(
        f"Generation {first.number}: best {number(first.best)}, mean {number(first.mean)}.",
        f"Generation {last.number}: best {number(last.best)}, mean {number(last.mean)}."
        if last is not first
        else "",
        f"Best so far: {number(last.best_so_far)}.",
        "" if luck is None else f"Luck alone would give {number(luck)}.",
    )
