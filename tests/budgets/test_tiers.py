"""How a tier's budget becomes P, G and S on the devices at hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.plan import Envelope, Phase, Tier
from budgets.tiers import TIERS, size, smallest_population

phases: st.SearchStrategy[Phase] = st.sampled_from(["phase1", "phase2"])
tiers: st.SearchStrategy[Tier] = st.sampled_from(["min", "target", "max"])


def shape(envelope: Envelope) -> tuple[int, int, int, int]:
    return (
        envelope.population,
        envelope.generations,
        envelope.seeds_per_candidate,
        envelope.evaluations,
    )


@given(phases, tiers, st.integers(1, 300), st.integers(1, 400))
def test_the_tiers_evaluations_are_never_exceeded_and_populations_are_even(
    phase: Phase, tier: Tier, dimension: int, devices: int
) -> None:
    sizing = size(phase, tier, dimension, devices)
    nominal, resolved = sizing.nominal, sizing.resolved
    assert nominal == TIERS[phase, tier]
    assert resolved.evaluations <= nominal.evaluations
    assert resolved.seeds_per_candidate == nominal.seeds_per_candidate
    assert resolved.population % 2 == 0
    assert resolved.generations >= 2
    assert resolved.population <= (16 if phase == "phase1" else 24)
    assert sizing.reasons
    if resolved.population != nominal.population:
        assert resolved.population >= smallest_population(dimension)
        # one more generation would not fit
        assert resolved.evaluations + resolved.per_generation > nominal.evaluations


@pytest.mark.parametrize("population", [-2, 0, 2, 3, 7, 18])
def test_a_population_that_is_odd_too_small_or_beyond_the_tier_is_refused(population: int) -> None:
    with pytest.raises(ValueError, match=f"at most 16 .* got {population}"):
        size("phase1", "min", 10, 4, population)


@pytest.mark.parametrize(
    ("tier", "expected"),
    [("min", (12, 5, 1, 60)), ("target", (16, 15, 1, 240)), ("max", (24, 30, 1, 720))],
)
def test_more_knobs_have_one_seed_and_a_third_of_the_tiers_evaluations(
    tier: Tier, expected: tuple[int, int, int, int]
) -> None:
    sizing = size("phase2", tier, 19, expanded=True)
    assert shape(sizing.nominal) == shape(sizing.resolved) == expected
    (reason,) = sizing.reasons
    assert f"1 seed instead of 3: {expected[3]} of the tier's {3 * expected[3]}" in reason
