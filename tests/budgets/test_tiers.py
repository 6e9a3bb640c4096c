"""How a tier's budget becomes P, G and S on the devices at hand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.plan import Envelope, Phase, Tier
from budgets.tiers import TIERS, size, size_expanded, smallest_population

phases: st.SearchStrategy[Phase] = st.sampled_from(["phase1", "phase2"])
tiers: st.SearchStrategy[Tier] = st.sampled_from(["min", "target", "max"])


def shape(envelope: Envelope) -> tuple[int, int, int, int]:
    return (
        envelope.population,
        envelope.generations,
        envelope.seeds_per_candidate,
        envelope.evaluations,
    )


@pytest.mark.parametrize(
    ("phase", "tier", "expected"),
    [
        ("phase1", "min", (8, 2, 1, 16)),
        ("phase1", "target", (12, 10, 1, 120)),
        ("phase1", "max", (16, 30, 1, 480)),
        ("phase2", "min", (12, 5, 3, 180)),
        ("phase2", "target", (16, 15, 3, 720)),
        ("phase2", "max", (24, 30, 3, 2160)),
    ],
)
def test_a_tier_without_a_device_count_is_as_written(
    phase: Phase, tier: Tier, expected: tuple[int, int, int, int]
) -> None:
    sizing = size(phase, tier, 10)
    assert shape(sizing.nominal) == shape(sizing.resolved) == shape(TIERS[phase, tier]) == expected
    assert sizing.reasons == ()


GENERATIONS = {8: 15, 10: 12, 12: 10, 14: 8, 16: 7}


@pytest.mark.parametrize(
    ("devices", "population"),  # P = 2 W, at least 8, up to a multiple of W, even, at most 16
    [*enumerate((8, 8, 12, 8, 10, 12, 14, 16, 16, 10, 16, 12, 16, 14, *6 * (16,)), start=1)],
)
def test_the_population_of_phase_1_target_on_so_many_devices(devices: int, population: int) -> None:
    resolved = size("phase1", "target", 10, devices).resolved
    assert shape(resolved)[:3] == (population, GENERATIONS[population], 1)


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


def test_a_population_asked_for_is_used_with_as_many_generations_as_the_tier_pays_for() -> None:
    sizing = size("phase1", "target", 10, 4, population=50)
    assert shape(sizing.resolved) == (50, 2, 1, 100)
    assert sizing.reasons == ("P = 50 was asked for",)
    assert shape(size("phase2", "min", 10, population=60).resolved) == (60, 1, 3, 180)


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
    sizing = size_expanded(tier, 19)
    assert shape(sizing.nominal) == shape(sizing.resolved) == expected
    (reason,) = sizing.reasons
    assert f"1 seed instead of 3: {expected[3]} of the tier's {3 * expected[3]}" in reason
