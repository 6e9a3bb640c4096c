"""What evaluations already paid for say of the knobs, and with what error."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from budgets.events import GenerationTold, Reserved, Settled, Status
from budgets.state import Generation, Try
from orchestrator.look.sensitivity import Coefficient, Estimate, KnobEstimate, estimate

Array = npt.NDArray[np.float64]
NAMES = ("a", "b", "c")
CENTRE = (0.5, 0.5, 0.5)


def told(
    number: int, points: Sequence[tuple[float, ...]], scores: Sequence[float | None]
) -> Generation:
    """A finished generation; a candidate without a score has failed."""
    tries: dict[tuple[int, int], tuple[Try, ...]] = {}
    for candidate, score in enumerate(scores):
        settled = Settled(
            generation=number,
            candidate=candidate,
            seed=5,
            attempt=1,
            status=Status.NAN if score is None else Status.OK,
            score=score,
            charged_ms=1,
            seconds=0.001,
        )
        reserved = Reserved(generation=number, candidate=candidate, seed=5, attempt=1, reserve_ms=1)
        tries[candidate, 5] = (Try(0, reserved, settled),)
    known = GenerationTold(
        generation=number, digest="", favourite=points[0], sigma=0.1, axis_ratio=1.0
    )
    return Generation(number, tuple(points), tries, seeds=(5,), told=known)


def searched(
    score: Callable[[Array], float],
    generations: int = 12,
    population: int = 8,
    noise: float = 0.0,
    seed: int = 1,
) -> list[Generation]:
    """Generations around a mean that wanders, each on seeds of its own."""
    rng = np.random.default_rng(seed)
    found = []
    for number in range(generations):
        mean, shared = rng.uniform(0.4, 0.6, 3), rng.normal()
        points = [
            tuple(float(u) for u in mean + 0.1 * rng.normal(size=3)) for _ in range(population)
        ]
        scores = [score(np.array(p)) + shared + noise * rng.normal() for p in points]
        found.append(told(number, points, scores))
    return found


def linear(x: Array) -> float:
    return float(2.0 * x[0] - 1.0 * x[1])


def found(generations: Sequence[Generation]) -> Estimate:
    result = estimate(NAMES, generations, CENTRE, 0.05)
    assert result is not None
    return result


def knob(result: Estimate, name: str) -> KnobEstimate:
    return next(k for k in result.knobs if k.knob == name)


def test_slopes_are_those_of_the_function_per_standard_deviation() -> None:
    result = found(searched(linear))
    for name, slope in (("a", 2.0), ("b", -1.0), ("c", 0.0)):
        assert knob(result, name).slope.value == pytest.approx(
            slope * knob(result, name).deviation, abs=1e-9
        )
    assert result.names(stand=True) == ("a", "b") or result.names(stand=True) == ("b", "a")
    assert 0.08 < knob(result, "a").deviation < 0.12


def test_a_knob_at_its_optimum_has_a_bend_and_no_slope() -> None:
    rng = np.random.default_rng(2)
    generations = []
    for number in range(8):
        half = 0.1 * rng.normal(size=(8, 3))
        points = [tuple(map(float, p)) for p in 0.5 + np.concatenate([half, -half])]
        scores = [3.0 * (p[0] - 0.5) ** 2 + 0.001 * rng.normal() for p in points]
        generations.append(told(number, points, scores))
    result = found(generations)
    first = knob(result, "a")
    assert first.bend is not None
    assert first.bend.value == pytest.approx(3.0 * first.deviation**2, rel=0.05)
    assert (first.bend.stands, first.slope.stands) == (True, False)
    assert result.names(stand=True) == ("a",)


def test_a_slope_that_changes_on_the_way_is_that_at_the_recommendation() -> None:
    result = found(searched(lambda x: float(2.0 * (x[0] - 0.45) ** 2)))
    first = knob(result, "a")
    assert first.bend is not None
    assert first.slope.value == pytest.approx(2.0 * 2 * 0.05 * first.deviation)
    assert first.bend.value == pytest.approx(2.0 * first.deviation**2)
    assert result.names(stand=True) == ("a",)


def test_what_a_generation_shares_does_not_matter() -> None:
    plain = searched(linear, noise=0.1)
    shifted = [
        told(g.number, g.points, [s + 100.0 * g.number for s in g.scores() if s is not None])
        for g in plain
    ]
    for one, other in zip(found(plain).knobs, found(shifted).knobs, strict=True):
        assert other.slope.value == pytest.approx(one.slope.value)
        assert other.slope.error == pytest.approx(one.slope.error)


def test_an_error_is_how_far_estimates_really_spread() -> None:
    slopes, errors = [], []
    for seed in range(150):
        first = knob(found(searched(linear, noise=0.1, seed=seed)), "a")
        slopes.append((first.slope.value - 2.0 * first.deviation) / first.slope.error)
        errors.append(first.slope.error)
    assert np.std(slopes) == pytest.approx(1.0, abs=0.2)
    assert abs(np.mean(slopes)) < 0.25


def test_noise_alone_seldom_stands_above_its_error() -> None:
    results = [found(searched(lambda _: 0.0, noise=1.0, seed=seed)) for seed in range(150)]
    assert sum(bool(r.names(stand=True)) for r in results) <= 15  # 7.5 are expected
    assert all(r.names(stand=False) for r in results)


def test_only_the_last_half_of_the_generations_counts() -> None:
    early = searched(lambda x: float(5.0 * x[2]), generations=10)
    late = [told(g.number + 10, g.points, g.scores()) for g in searched(linear, generations=10)]
    result = found([*early, *late])
    assert (result.first, result.last, result.evaluations) == (10, 19, 80)
    assert knob(result, "c").slope.value == pytest.approx(0.0, abs=1e-9)


def test_a_generation_that_is_not_told_does_not_count() -> None:
    *finished, last = searched(linear)
    last.told = None
    assert found([*finished, last]) == found(finished)


def test_a_generation_that_a_proxy_scored_does_not_count() -> None:
    *whole, last = searched(linear)
    last.changed = {"target_flops": 1e9}
    assert found([*whole, last]) == found(whole)


def test_failed_candidates_are_left_out() -> None:
    failing = [
        told(g.number, g.points, [None, *g.scores()[1:]]) for g in searched(linear, noise=0.01)
    ]
    result = found(failing)
    assert result.evaluations == 6 * 7
    assert knob(result, "a").slope.stands


def test_with_fewer_evaluations_there_are_no_bends_then_all_generations_then_nothing() -> None:
    half = found(searched(linear, generations=6, population=4, noise=0.1))
    assert (half.bends, half.first, half.freedom) == (False, 3, 9 - 3)
    whole = found(searched(linear, generations=2, population=5, noise=0.1))
    assert (whole.bends, whole.first, whole.freedom) == (False, 0, 8 - 3)
    assert (
        estimate(NAMES, searched(linear, generations=1, population=8, noise=0.1), CENTRE, 0.05)
        is None
    )
    assert estimate(NAMES, [], CENTRE, 0.05) is None


def test_points_that_do_not_span_the_knobs_give_no_estimate() -> None:
    flat = [
        told(g.number, [(p[0], p[0], p[2]) for p in g.points], g.scores())
        for g in searched(linear, noise=0.1)
    ]
    assert estimate(NAMES, flat, CENTRE, 0.05) is None
    still = [
        told(g.number, [(p[0], 0.5, p[2]) for p in g.points], g.scores())
        for g in searched(linear, noise=0.1)
    ]
    assert estimate(NAMES, still, CENTRE, 0.05) is None


def test_the_surest_knob_comes_first_and_t_is_the_value_in_errors() -> None:
    result = found(searched(linear, noise=0.2))
    assert [k.knob for k in result.knobs][:2] == ["a", "b"]
    slope = result.knobs[0].slope
    assert slope.t == pytest.approx(slope.value / slope.error)
    assert (slope.sureness > result.t_limit) == slope.stands


@pytest.mark.parametrize(("value", "sureness"), [(0.1, float("inf")), (0.0, 0.0)])
def test_without_an_error_a_value_is_sure_unless_it_is_0(value: float, sureness: float) -> None:
    coefficient = Coefficient(value, 0.0, t=None, chance=0.0, stands=bool(value))
    assert coefficient.sureness == sureness
