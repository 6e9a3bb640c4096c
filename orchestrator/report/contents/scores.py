"""Scores over generations, beside the baseline and what luck alone would show."""

from collections.abc import Iterator

from budgets.blocks import Table, Text
from budgets.plain import plain
from budgets.proxy.text import proxy_blocks
from budgets.report.markdown import luckiest
from budgets.words import number, sentence_case
from orchestrator.report.contents.blocks import Block, Figure, without_headings
from orchestrator.report.model import GenerationView, Noise, Report
from orchestrator.report.plots.candidates import is_search


def scores(report: Report, figures: list[Figure]) -> list[Block]:
    """The section."""
    return [*_basis(report), *figures, *_table(report), *_rest(report)]


def _basis(report: Report) -> Iterator[Block]:
    what = report.identity.score
    measured = (
        "Lower is better." if what == "score" else f"{sentence_case(plain(what))}: lower is better."
    )
    if report.noise is None:
        yield Text(f"{measured} No calibration says what the baseline scores, or how it varies.")
    else:
        yield Text(f"{measured} {_of_the_baseline(report.noise)}")


def _of_the_baseline(noise: Noise) -> str:
    said = f"The baseline scores {noise.mean:.5g}, the mean of {len(noise.scores)} seeds"
    if noise.sd is None:
        return f"{said}."
    known = ""
    if noise.sd_low is not None and noise.sd_high is not None:
        known = f" (95% interval {noise.sd_low:.3g} to {noise.sd_high:.3g})"
    return (
        f"{said}; from seed to seed it varies with a standard deviation of {noise.sd:.4g}{known}."
    )


def _table(report: Report) -> Iterator[Block]:
    if not report.evaluations:
        yield Text("No evaluation has ended yet.")
    if not is_search(report) or not report.generations:
        return
    numbers = [">best", ">mean", ">sd", ">best so far", ">by luck alone", ">healthy", ">failed"]
    yield Table(
        "Scores by generation; by luck alone: the best to expect of as many tries of the baseline",
        [">generation", *numbers],
        [_row(one) for one in report.generations],
    )


def _row(one: GenerationView) -> list[str]:
    name = f"{one.number}{', short' if one.is_short else ''}{'' if one.is_told else ', unfinished'}"
    so_far = (number(one.best_so_far), number(one.luck_so_far))
    return [
        name,
        number(one.best),
        number(one.mean),
        number(one.sd, 3),
        *so_far,
        str(one.healthy),
        str(one.failed),
    ]


def _rest(report: Report) -> Iterator[Block]:
    budget = report.budget
    yield from luckiest(budget)
    if budget.proxy is not None and budget.phase != "check":
        yield from without_headings(proxy_blocks(budget.proxy))
