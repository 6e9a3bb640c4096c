"""Differences in words, and a campaign's matrix, which fits every terminal."""

from collections.abc import Mapping, Sequence

import pytest

from budgets.effects import Cell, Matrix, campaign_report
from budgets.events import Status
from budgets.plan import CampaignPlan, Condition
from budgets.stats import Gain, NamedGain
from orchestrator.look import text
from orchestrator.look.page import Section, markdown
from orchestrator.look.sections import campaign_blocks

NOISE = (0.0, 0.01, -0.02, 0.015, 0.02)
TABLE = {  # of b = 2 every score is lower by a fifth
    f"{a},{b}": [1.0 - 0.2 * (b == "2") + noise for noise in NOISE[:: 1 if a == "1" else -1]]
    for a in "12"
    for b in "12"
}
FACTORS = {"a": ("1", "2"), "b": ("1", "2")}


def cell(score: float | Status | None) -> Cell:
    """A healthy score, how it failed, or None of what is still to come."""
    if score is None:
        return Cell(status="pending")
    if isinstance(score, Status):
        return Cell(status=str(score))
    return Cell(status="ok", score=score)


def matrix_of(
    rows: Mapping[str, Sequence[float | Status | None]],
    factors: Mapping[str, tuple[str, ...]] | None = None,
) -> Matrix:
    """Conditions by name, each with its cells; of a factorial by their levels, with commas."""
    conditions = tuple(
        Condition(
            name=name,
            settings={},
            knobs={},
            levels=dict(zip(factors or {}, name.split(","), strict=False)),
        )
        for name in rows
    )
    seeds = tuple(range(1, 1 + len(next(iter(rows.values())))))
    campaign = CampaignPlan(
        name="toy", conditions=conditions, seeds=seeds, factors=dict(factors or {})
    )
    return Matrix(campaign=campaign, rows=tuple(tuple(map(cell, own)) for own in rows.values()))


def difference(mean: float | None, *ends: float) -> NamedGain:
    lower, upper = ends or (None, None)
    own = Gain(3, mean, None, lower, upper, 0.025, None, None)
    return NamedGain("effect", "a", "b", own, is_found=False)


@pytest.mark.parametrize(
    ("own", "said"),
    [
        (difference(None), "not estimated: a condition has no score, or the reference's is 0"),
        (difference(0.03144, 0.0225, 0.04), "3.14% better (2.25 to 4.00)"),
        (difference(-0.03144, -0.04, -0.0225), "3.14% worse (2.25 to 4.00)"),
        (difference(0.03, -0.01, 0.07), "3.00% better (-1.00 to 7.00)"),
        (difference(-0.03), "3.00% worse"),
    ],
)
def test_a_difference_says_which_is_better(own: NamedGain, said: str) -> None:
    assert text.difference(own) == said


def test_only_what_is_beyond_chance_is_named_and_only_when_all_is_over() -> None:
    matrix = matrix_of(TABLE, FACTORS)
    over, running = (campaign_report(matrix, 0.05, is_over=is_over) for is_over in (True, False))
    assert "b: 2 against 1" in text.campaign(over)
    assert "a: 2" not in text.campaign(over)
    assert "against" not in text.campaign(running)
    shown = [markdown([Section("c", "C", list(campaign_blocks(one)))]) for one in (over, running)]
    assert "**22" in shown[0]
    assert "**22" not in shown[1]
