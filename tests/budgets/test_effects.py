"""Which conditions a main effect compares, and on which seeds."""

from budgets.effects import main_effect
from budgets.plan import CampaignPlan, Condition, Factor

A = Factor(name="A", levels=("a0", "a1"))
B = Factor(name="B", levels=("b0", "b1", "b2"))


def campaign(*conditions: str, factors: tuple[Factor, ...]) -> CampaignPlan:
    """Conditions named by their levels, those in capitals controls."""
    own = tuple(
        Condition(
            name=name,
            settings={},
            knobs={},
            levels={
                factor.name: level
                for factor, level in zip(factors, name.lower().split(), strict=True)
            },
            control=name.isupper(),
        )
        for name in conditions
    )
    return CampaignPlan(name="toy", conditions=own, seeds=(1, 2, 3), factors=factors)


def test_an_effect_is_of_the_pairs_with_both_scores_on_a_seed() -> None:
    names = [f"{a} {b}" for a in A.levels for b in B.levels]
    scores: list[dict[int, float]] = [
        {1: 1.0},
        {1: 1.0, 2: 1.0},
        {},
        {1: 1.5},
        {1: 2.0, 2: 1.0},
        {},
    ]
    own = campaign(*names, factors=(A, B))
    assert main_effect(own, scores, 0, "a1") == [0.75, 0.0]
    assert main_effect(own, scores, 1, "b1") == [0.25]
    assert main_effect(own, scores, 1, "b2") == []


def test_a_control_is_a_cell_only_where_no_condition_has_its_levels() -> None:
    own = campaign("A0", "a0", "A1", factors=(A,))
    assert main_effect(own, [{1: 9.0}, {1: 1.0}, {1: 3.0}], 0, "a1") == [2.0]
