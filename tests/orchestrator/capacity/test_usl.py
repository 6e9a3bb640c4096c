"""What the law says of throughput, and what measured levels say of the law."""

from math import inf, isinf, sqrt

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.capacity.fitted import Fit, Level
from orchestrator.capacity.least_squares import fit
from orchestrator.capacity.usl import NEAR_MOST, Law

WORKERS = (1, 2, 4, 8, 16, 32)
laws = st.builds(
    Law,
    one=st.floats(0.5, 5000),
    contention=st.floats(0, 0.6),
    coherency=st.one_of(st.just(0.0), st.floats(1e-4, 0.2)),
)
counts = st.lists(st.integers(1, 64), min_size=3, max_size=8, unique=True)


def measured(law: Law, workers: tuple[int, ...] | list[int], *factors: float) -> list[Level]:
    each = factors or (1.0,) * len(workers)
    return [Level(n, law.throughput(n) * f) for n, f in zip(workers, each, strict=True)]


def test_the_law_is_gunthers() -> None:
    law = Law(100.0, 0.1, 0.01)
    assert law.throughput(1) == 100.0
    assert law.throughput(4) == pytest.approx(400 / (1 + 0.3 + 0.12))
    assert law.optimum == pytest.approx(sqrt(0.9 / 0.01))
    assert law.efficiency(4) == pytest.approx(1 / 1.42)


@given(laws, st.integers(1, 200))
def test_no_number_of_workers_does_more_than_the_optimum(law: Law, workers: int) -> None:
    assert law.throughput(workers) <= law.most * (1 + 1e-9)


@pytest.mark.parametrize(
    ("law", "workers", "regime"),
    [
        (Law(60, 0.0, 0.0), 64, "linear"),
        (Law(60, 0.02, 0.0), 4, "linear"),
        (Law(60, 0.2, 0.0), 4, "contended"),
        (Law(60, 1.0, 0.0), 1, "optimal"),
        (Law(60, 0.0, 0.01), 10, "optimal"),
        (Law(60, 0.0, 0.01), 3, "linear"),
        (Law(60, 0.0, 0.01), 40, "retrograde"),
        (Law(60, 0.0, 2.0), 1, "optimal"),
        (Law(60, 0.0, 2.0), 2, "retrograde"),
    ],
)
def test_a_number_of_workers_has_one_regime(law: Law, workers: int, regime: str) -> None:
    assert law.regime(workers) == regime


@given(laws, counts)
def test_noiseless_levels_give_the_law_back(law: Law, workers: list[int]) -> None:
    found = fit(measured(law, workers)).law
    assert found is not None
    for n in workers:
        assert found.throughput(n) == pytest.approx(law.throughput(n), rel=1e-5)
    assert found.contention == pytest.approx(law.contention, abs=2e-3, rel=0.02)
    assert found.coherency == pytest.approx(law.coherency, abs=2e-3, rel=0.02)


noises = st.lists(st.floats(0.9, 1.1), min_size=len(WORKERS), max_size=len(WORKERS))


@given(laws, noises)
@example(Law(1.0, 0.0, 0.1171875), [1.09375, 1.09375, 1.013671875, 1.046875, 1.0, 1.0])
def test_no_law_nearby_has_smaller_residuals(law: Law, factors: list[float]) -> None:
    levels = measured(law, WORKERS, *factors)
    found = fit(levels).law
    assert found is not None
    assert found.contention >= 0
    assert found.coherency >= 0
    least = squares(found, levels)
    for one in (0.99, 1, 1.01):
        for more in (-1e-3, 0, 1e-3):
            for pairs in (-1e-4, 0, 1e-4):
                other = Law(
                    found.one * one,
                    max(0.0, found.contention + more),
                    max(0.0, found.coherency + pairs),
                )
                assert least <= squares(other, levels) + 1e-9


def squares(law: Law, levels: list[Level]) -> float:
    return sum((law.throughput(x.workers) / x.throughput - 1) ** 2 for x in levels)


@given(laws, noises, st.integers(1, 64))
def test_no_recommendation_is_beyond_the_optimum_or_what_there_is(
    law: Law, factors: list[float], most: int
) -> None:
    found = fit(measured(law, WORKERS, *factors))
    assert found.optimum is not None
    assert 1 <= found.recommended(most) <= max(1, min(most, found.optimum))
    assert found.recommended() <= max(WORKERS)


@given(laws, noises)
def test_the_recommended_workers_do_as_much_as_any_but_for_noise(
    law: Law, factors: list[float]
) -> None:
    found = fit(measured(law, WORKERS, *factors))
    assert found.law is not None
    highest = max(
        found.law.throughput(n) for n in range(1, 33) if n <= (found.optimum or 1) or n == 1
    )
    own = found.law.throughput(found.recommended())
    assert own >= (1 - found.noise) * highest * (1 - 1e-9)


def test_fewer_workers_are_preferred_where_more_gain_no_more_than_noise() -> None:
    nearly_flat = measured(Law(100, 0.9, 0.0), (1, 2, 4, 8))
    sure = fit(nearly_flat).recommended()
    doubtful = [Level(x.workers, x.throughput, noise=0.2) for x in nearly_flat]
    assert fit(doubtful).recommended() == 1 < sure


@given(laws, noises)
def test_a_level_is_retrograde_where_fewer_workers_were_measured_to_do_more(
    law: Law, factors: list[float]
) -> None:
    levels = measured(law, WORKERS, *factors)
    found = fit(levels)
    for place, level in enumerate(levels):
        before = max((x.throughput for x in levels[:place]), default=0.0)
        if level.throughput < NEAR_MOST * before:
            assert found.regime(level.workers) == "retrograde"


def test_two_levels_tell_no_optimum_and_say_so() -> None:
    found = fit([Level(1, 100), Level(2, 185)])
    assert found.optimum is None
    assert "two levels cannot tell" in found.untold[0]
    assert found.recommended() == 2
    assert found.law is not None
    assert found.law.throughput(2) == pytest.approx(185)
    assert found.regime(2) == "linear"


def test_two_levels_tell_that_throughput_falls() -> None:
    found = fit([Level(1, 100), Level(2, 80)])
    assert found.regime(2) == "retrograde"
    assert found.recommended() == 1
    assert found.law is not None
    assert found.law.contention == 0 < found.law.coherency


def test_one_level_tells_nothing_of_others() -> None:
    found = fit([Level(2, 100), Level(2, 120)])
    assert found.law is None
    assert found.recommended() == 2
    assert "2 workers alone" in found.untold[0]
    with pytest.raises(ValueError, match="say nothing of 4"):
        found.regime(4)


def test_three_levels_say_that_nothing_checks_the_law() -> None:
    found = fit(measured(Law(100, 0.1, 0.02), (1, 2, 4)))
    assert found.residual == pytest.approx(0, abs=1e-6)
    assert "a fourth would show" in found.untold[0]


def test_workers_that_help_each_other_are_taken_as_linear() -> None:
    found = fit([Level(1, 100), Level(2, 220), Level(4, 460)])
    assert found.law is not None
    assert found.law.contention == found.law.coherency == 0
    assert isinf(found.optimum or 0)
    assert found.recommended() == 4
    assert found.regime(4) == "linear"


def test_an_optimum_out_of_reach_is_infinite() -> None:
    found: Fit = fit(measured(Law(10, 0.05, 0.0), (1, 2, 4, 8)))
    assert found.optimum is not None
    assert found.optimum > 100 or found.optimum == inf


@pytest.mark.parametrize("level", [Level(0, 5), Level(1, 0), Level(1, inf)])
def test_what_is_no_throughput_is_refused(level: Level) -> None:
    with pytest.raises(ValueError, match="expected a throughput above 0"):
        fit([level])


def test_nothing_measured_is_refused() -> None:
    with pytest.raises(ValueError, match="no throughput was measured"):
        fit([])
