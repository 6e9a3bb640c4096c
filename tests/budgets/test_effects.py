"""Which conditions a main effect compares, on which seeds, and what it makes of rounding."""

import pytest

from budgets.effects import cells_of, difference, main_effect, pairs_of
from budgets.plan import Condition, Factor

FACTORS = (
    Factor(name="A", levels=("a0", "a1")),
    Factor(name="B", levels=("b0", "b1", "b2")),
)


def condition(name: str, *, control: bool = False, **levels: str) -> Condition:
    return Condition(name=name, settings={}, knobs={}, levels=levels, control=control)


def test_a_level_is_compared_with_the_first_at_every_combination_of_the_others() -> None:
    conditions = [condition(a + b, A=a, B=b) for a in ("a0", "a1") for b in ("b0", "b1", "b2")]
    cells = cells_of(FACTORS, conditions)
    assert pairs_of(FACTORS, cells, 0, "a1") == [(3, 0), (4, 1), (5, 2)]
    assert pairs_of(FACTORS, cells, 1, "b2") == [(2, 0), (5, 3)]
    del cells["a1", "b1"]
    assert pairs_of(FACTORS, cells, 0, "a1") == [(3, 0), (5, 2)]


def test_a_control_is_a_cell_only_where_no_condition_has_its_levels() -> None:
    factors = (Factor(name="A", levels=("a0", "a1")),)
    own = [
        condition("a0_base", control=True, A="a0"),
        condition("a0", A="a0"),
        condition("a1_base", control=True, A="a1"),
        condition("default_base", control=True),
    ]
    assert cells_of(factors, own) == {("a0",): 1, ("a1",): 2}
    assert cells_of((), own) == {}


def test_an_effect_uses_the_pairs_with_both_scores_on_a_seed() -> None:
    scores = {
        0: {1: 1.0, 2: 1.0, 3: 1.0},
        1: {1: 1.5, 2: 1.25},
        2: {1: 2.0},
        3: {1: 2.0, 2: 9.0},
    }
    assert main_effect(scores, [(1, 0), (3, 2)], (1, 2, 3)) == [0.25, 0.25]


def test_a_difference_in_the_last_digits_is_none() -> None:
    found = difference([1e-13, -3e-13, 2e-13], 1.0, 1.0)
    assert (found.mean, found.sd, found.chance) == (0.0, 0.0, 1.0)
    found = difference([0.5 + 1e-13, 0.5], 2.0, 1.0)
    assert (found.mean, found.lower, found.chance) == (0.5, 0.5, 0.0)
    assert found.percent == pytest.approx(25.0)
