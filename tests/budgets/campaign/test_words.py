"""Differences in words: which way, how far, how sure, and not one digit more."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.campaign.words import chance_in_words, in_words, moves, with_level
from budgets.effects import Difference, campaign_report
from budgets.formatting import number

if TYPE_CHECKING:
    from tests.budgets.campaign.conftest import Campaigns


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
        (difference(0.0, -1.0, 1.0), "0.00% apart (-1.00 to 1.00)"),
        (difference(0.001234), "0.001% worse"),
        (difference(5.0, 4.9988, 5.0012), "5.000% worse (4.999 to 5.001)"),
        (difference(1e-9, 0.0, 2e-9), "0.000000% apart (0.000000 to 0.000000)"),
        (difference(-0.5, percent=None), "0.50 better"),
    ],
)
def test_a_difference_is_said_as_far_as_it_is_known(own: Difference, said: str) -> None:
    assert in_words(own) == said


def test_the_level_stands_before_the_bounds() -> None:
    assert with_level(difference(-3.0, -4.0, -2.0), 0.05) == "3.00% better (95%: 2.00 to 4.00)"


@pytest.mark.parametrize(
    ("chance", "said"),
    [(None, "-"), (0.00009, "<0.0001"), (0.0001, "0.0001"), (0.00312, "0.0031"), (1.0, "1")],
)
def test_a_chance_has_two_digits(chance: float | None, said: str) -> None:
    assert chance_in_words(difference(1.0, chance=chance)) == said


def test_a_number_has_five_digits() -> None:
    assert (number(3.138512), number(None)) == ("3.1385", "-")


def test_each_factor_has_a_clause_with_its_own_levels(campaigns: "Campaigns") -> None:
    rows = {
        f"{a},{b}": tuple(10 + seed - float(a) - float(b) for seed in (0.0, 0.5, 1.0))
        for a in ("0", "1")
        for b in ("0", "2", "4")
    }
    matrix = campaigns.of(rows, {"A": ("0", "1"), "B": ("0", "2", "4")})
    found = campaign_report(matrix, 0.05, is_over=True).found
    clauses = moves(found, 0.05)
    names = [[part.split(" is ")[0] for part in clause.split(", ")] for clause in clauses]
    assert names == [
        ["B moves the score: 4 against 0", "2 against 0"],
        ["A moves the score: 1 against 0"],
    ]
