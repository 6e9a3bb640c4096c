"""Differences in words, and a campaign's matrix, which fits every terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from budgets.effects import Difference, campaign_report
from budgets.events import Status
from budgets.matrix import Cell, Matrix
from budgets.plan import CampaignTerms, Condition, Factor
from orchestrator.look.campaign import (
    campaign_blocks,
    campaign_sentence,
    difference_in_words,
    matrix_lines,
)
from orchestrator.look.page import Section, markdown

NOISE = (0.0, 0.01, -0.02, 0.015, 0.02)
TABLE = {  # of b = 2 every score is lower by a fifth
    f"{a},{b}": [1.0 - 0.2 * (b == "2") + noise for noise in NOISE[:: 1 if a == "1" else -1]]
    for a in "12"
    for b in "12"
}
FACTORS = (Factor(name="a", levels=("1", "2")), Factor(name="b", levels=("1", "2")))


def cell(score: float | Status | None) -> Cell:
    """A healthy score, how it failed, or None of what is still to come."""
    if score is None:
        return Cell(status="pending")
    if isinstance(score, Status):
        return Cell(status=str(score), note=f"it was {score}")
    return Cell(status="ok", score=score, seconds=2.0)


def matrix_of(
    rows: Mapping[str, Sequence[float | Status | None]], factors: tuple[Factor, ...] = ()
) -> Matrix:
    """Conditions by name, each with its cells; of a factorial by their levels, with commas."""
    conditions = tuple(
        Condition(
            name=name,
            settings={},
            knobs={},
            levels={own.name: level for own, level in zip(factors, name.split(","), strict=False)},
        )
        for name in rows
    )
    seeds = tuple(range(1, 1 + len(next(iter(rows.values())))))
    terms = CampaignTerms(name="toy", conditions=conditions, seeds=seeds, factors=factors)
    return Matrix(terms=terms, rows=tuple(tuple(map(cell, own)) for own in rows.values()))


def difference(
    mean: float | None, lower: float | None = None, upper: float | None = None, **fields: Any
) -> Difference:
    """One in percent of a score of 100, so that both are the same number."""
    values = {"seeds": 3, "sd": None, "chance": None, "mean": mean, "lower": lower, "upper": upper}
    percents = {"percent": mean, "percent_lower": lower, "percent_upper": upper}
    return Difference.model_validate({**values, **percents, **fields})


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (difference(None), "-"),
        (difference(-3.144, -4.0, -2.25), "3.14% better (2.25 to 4.00)"),
        (difference(3.144, 2.25, 4.0), "3.14% worse (2.25 to 4.00)"),
        (difference(-3.0, -7.0, 1.0), "3.00% better (-1.00 to 7.00)"),
        (difference(3.0), "3.00% worse"),
        (difference(-0.5, percent=None), "0.5 better"),
    ],
)
def test_a_difference_says_which_is_better(own: Difference, said: str) -> None:
    assert difference_in_words(own, "minimize") == said


def test_where_higher_is_better_a_lower_mean_is_worse() -> None:
    assert difference_in_words(difference(-3.0), "maximize") == "3.00% worse"


def test_only_what_is_beyond_chance_is_named_and_only_when_all_is_over() -> None:
    matrix = matrix_of(TABLE, FACTORS)
    over, running = (campaign_report(matrix, 0.05, is_over=is_over) for is_over in (True, False))
    assert "b: 2 against 1" in campaign_sentence(over)
    assert "a: 2" not in campaign_sentence(over)
    assert "against" not in campaign_sentence(running)
    shown = [markdown([Section("c", "C", list(campaign_blocks(one)))]) for one in (over, running)]
    assert "**2" in shown[0]
    assert "**2" not in shown[1]


@pytest.mark.parametrize("seeds", [1, 8, 12, 30, 200])
@pytest.mark.parametrize("name", ["c", "n" * 97])
@pytest.mark.parametrize("width", [80, 110])
def test_no_line_of_a_matrix_is_longer_than_the_terminal(seeds: int, name: str, width: int) -> None:
    cells = [1.0, Status.OOM, None, *(seeds - 3) * [2.0]][:seeds]
    matrix = matrix_of({name: cells, f"{name}2": cells})
    lines = matrix_lines(matrix, width)
    assert max(len(line) for line in lines if "seed " not in line) <= width
    assert sum("oom" in line for line in lines) >= (seeds > 1)
