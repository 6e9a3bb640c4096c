"""Which conditions a main effect compares, and on which seeds."""

from budgets.measurements import main_effect
from budgets.plan import CampaignPlan, Condition

A, B = ("a0", "a1"), ("b0", "b1", "b2")


def campaign(*conditions: str, **factors: tuple[str, ...]) -> CampaignPlan:
    """Conditions named by their levels."""
    own = tuple(
        Condition(name=name, point=(), levels=dict(zip(factors, name.split(), strict=True)))
        for name in conditions
    )
    return CampaignPlan(name="toy", conditions=own, seeds=(1, 2, 3), factors=factors)


def test_an_effect_is_of_the_pairs_with_both_scores_on_a_seed() -> None:
    names = [f"{a} {b}" for a in A for b in B]
    scores: list[dict[int, float]] = [
        {1: 1.0},
        {1: 1.0, 2: 1.0},
        {},
        {1: 1.5},
        {1: 2.0, 2: 1.0},
        {},
    ]
    own = campaign(*names, A=A, B=B)
    assert main_effect(own, scores, "A", "a1") == [0.75, 0.0]
    assert main_effect(own, scores, "B", "b1") == [0.25]
    assert main_effect(own, scores, "B", "b2") == []
