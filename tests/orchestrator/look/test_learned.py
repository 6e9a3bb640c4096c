"""What evaluations already paid for say of the knobs, and with what error."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from budgets.events import Reserved, Settled, Status
from budgets.state import Batch, Try
from orchestrator.look.learned import Effect, effects

Array = npt.NDArray[np.float64]
CENTRE = (0.5, 0.5, 0.5)
SPREAD = 0.1


def generation_of(
    number: int, points: Sequence[tuple[float, ...]], scores: Sequence[float | None]
) -> Generation:
    """A candidate without a score has failed."""
    tries: dict[tuple[int, int], tuple[Try, ...]] = {}
    for candidate, score in enumerate(scores):
        reserved = Reserved(generation=number, candidate=candidate, seed=5, attempt=1, reserve_ms=1)
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
        tries[candidate, 5] = (Try(0, reserved, settled),)
    return Generation(number, tuple(points), tries, seeds=(5,))


def searched(
    score: Callable[[Array], float],
    generations: int = 12,
    population: int = 8,
    noise: float = 0.0,
    seed: int = 1,
) -> list[Batch]:
    """Generations around a mean that wanders, each with an offset of its own."""
    rng, found = np.random.default_rng(seed), []
    for number in range(generations):
        mean, shared = rng.uniform(0.4, 0.6, 3), rng.normal()
        points = mean + SPREAD * rng.normal(size=(population, 3))
        scores = [score(point) + shared + noise * rng.normal() for point in points]
        found.append(generation_of(number, [tuple(map(float, one)) for one in points], scores))
    return found


def linear(x: Array) -> float:
    return float(2.0 * x[0] - 1.0 * x[1])


def known(generations: Sequence[Batch]) -> list[Effect]:
    found = effects(generations, CENTRE, 0.05)
    assert found is not None
    return found


def test_slopes_are_those_of_the_function_per_standard_deviation() -> None:
    a, b, c = known(searched(linear))
    assert a.slope == pytest.approx(2.0 * SPREAD, rel=0.2)
    assert b.slope == pytest.approx(-1.0 * SPREAD, rel=0.2)
    assert c.slope == pytest.approx(0.0, abs=1e-9)
    assert (a.stands, b.stands, c.stands) == (True, True, False)


def test_a_knob_at_its_optimum_stands_without_a_slope() -> None:
    rng, generations = np.random.default_rng(2), []
    for number in range(8):
        half = SPREAD * rng.normal(size=(8, 3))
        points = [tuple(map(float, p)) for p in 0.5 + np.concatenate([half, -half])]
        scores = [3.0 * (p[0] - 0.5) ** 2 + 0.001 * rng.normal() for p in points]
        generations.append(generation_of(number, points, scores))
    a, b, _ = known(generations)
    assert abs(a.slope) < 3 * a.error
    assert (a.stands, b.stands) == (True, False)


def test_what_a_generation_shares_does_not_matter() -> None:
    plain = searched(linear, noise=0.1)
    shifted = [
        generation_of(g.number, g.points, [s + 100.0 * g.number for s in g.scores() if s])
        for g in plain
    ]
    np.testing.assert_allclose(known(plain), known(shifted), rtol=1e-6)


def test_an_error_is_how_far_estimates_really_spread() -> None:
    found = [known(searched(lambda _: 0.0, noise=0.1, seed=seed))[0] for seed in range(150)]
    slopes = [one.slope / one.error for one in found]
    assert np.std(slopes) == pytest.approx(1.0, abs=0.2)
    assert abs(np.mean(slopes)) < 0.25


def test_noise_alone_seldom_stands_above_its_error() -> None:
    found = (known(searched(lambda _: 0.0, noise=1.0, seed=seed)) for seed in range(150))
    assert sum(any(one.stands for one in knobs) for knobs in found) <= 15  # 7.5 are expected


def test_only_the_last_half_of_the_generations_counts() -> None:
    early = searched(lambda x: float(5.0 * x[2]), generations=10)
    late = [generation_of(g.number + 10, g.points, g.scores()) for g in searched(linear, 10)]
    assert known([*early, *late])[2].slope == pytest.approx(0.0, abs=1e-9)


def test_failed_candidates_are_left_out() -> None:
    failing = [
        generation_of(g.number, g.points, [None, *g.scores()[1:]])
        for g in searched(linear, noise=0.01)
    ]
    assert known(failing)[0].slope == pytest.approx(2.0 * SPREAD, rel=0.3)


@pytest.mark.parametrize(
    ("generations", "population", "is_enough"),
    [(6, 4, True), (2, 5, True), (1, 8, False), (0, 8, False)],
)
def test_few_evaluations_give_slopes_only_then_nothing(
    generations: int, population: int, is_enough: bool
) -> None:
    found = effects(searched(linear, generations, population, noise=0.1), CENTRE, 0.05)
    assert (found is not None) == is_enough


@pytest.mark.parametrize("second", [None, 0.5])  # like the first knob; not moved
def test_points_that_do_not_span_the_knobs_give_no_estimate(second: float | None) -> None:
    flat = [
        generation_of(
            g.number,
            [(p[0], p[0] if second is None else second, p[2]) for p in g.points],
            g.scores(),
        )
        for g in searched(linear, noise=0.1)
    ]
    assert effects(flat, CENTRE, 0.05) is None
