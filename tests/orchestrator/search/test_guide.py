"""A model's advice: where to put the mean, and when to keep the step."""

from collections.abc import Callable, Sequence

import numpy as np
import numpy.typing as npt
import pytest

from budgets.events import GenerationTold, Guided
from budgets.plan import SearchPlan
from budgets.state import Batch
from orchestrator.search import Search
from orchestrator.search.surrogate import LARGEST_HELD, REACH, Distribution, Point, guided
from tests.orchestrator.search.conftest import closed, evaluated

Score = Callable[[npt.NDArray[np.float64]], float | None]

LOWEST = np.array([0.6, 0.45, 0.5])
SIGMA = 0.1


def bowl(point: npt.NDArray[np.float64]) -> float:
    return float(((point - LOWEST) ** 2).sum())


MIDDLE = Distribution((0.5,) * 3, SIGMA, SIGMA**2 * np.eye(3))
"""Around the middle of a cube of three dimensions."""


def draw(count: int, score: Score = bowl) -> list[Batch]:
    """Generations of 6 candidates around the middle, whatever their scores."""
    rng, found = np.random.default_rng(7), []
    for number in range(count):
        drawn = np.clip(0.5 + SIGMA * rng.standard_normal((6, 3)), 0, 1)
        points = tuple(tuple(map(float, point)) for point in drawn)
        found.append(closed(number, points, [score(np.array(point)) for point in points]))
    return found


def whitened(point: Sequence[float], where: Distribution) -> float:
    """How many standard deviations of the distribution the point is from its mean."""
    step = np.array(point) - where.mean
    return float(np.sqrt(step @ np.linalg.solve(where.covariance, step)))


def advised(generations: Sequence[Batch], where: Distribution, before: float = SIGMA) -> Guided:
    advice = guided(generations, where, before)
    assert advice is not None
    return advice


# Where


def test_the_mean_is_put_where_the_function_is_lowest() -> None:
    advice = advised(draw(6), MIDDLE)
    centre = np.array([0.5] * 3)
    lowest_in_reach = centre + (LOWEST - centre) * min(
        1.0, REACH * np.sqrt(3) * SIGMA / np.linalg.norm(LOWEST - centre)
    )
    assert advice.centre == pytest.approx(lowest_in_reach, abs=0.01)


@pytest.mark.parametrize("start", [(0.5, 0.5, 0.5), (0.02, 0.98, 0.5), (1e-9, 1e-9, 1e-9)])
@pytest.mark.parametrize("slope", [1.0, -1.0])
def test_the_mean_stays_within_reach_and_in_the_cube(start: Point, slope: float) -> None:
    search = Search(SearchPlan(method="plain", seed=1, sigma0=SIGMA, start=start), 6)
    for _ in range(5):  # no sphere any more
        search.tell(evaluated(search, score=lambda point: bowl(np.array(point))))
    where = search.distribution
    advice = advised(draw(6, lambda point: slope * float(point.sum())), where)
    assert all(0 <= u <= 1 for u in advice.centre)
    assert 0 < whitened(advice.centre, where) <= REACH * np.sqrt(3) * (1 + 1e-9)


# Followed


def told(generations: int, score: Callable[[Point], float]) -> list[GenerationTold]:
    search = Search(SearchPlan(method="guided", seed=7, sigma0=0.15, start=(0.4,) * 4), 8)
    return [search.tell(evaluated(search, score=score)) for _ in range(generations)]


def test_a_search_in_nothing_but_noise_keeps_its_step_and_one_without_any_does_not() -> None:
    rng = np.random.default_rng(3)
    hidden = told(8, lambda _: float(rng.standard_normal()))
    clear = told(8, lambda point: sum((u - 0.6) ** 2 for u in point))
    held = [record.guided.sigma for record in hidden if record.guided is not None]
    assert any(step is not None and step <= LARGEST_HELD for step in held)
    assert all(record.guided is None or record.guided.sigma is None for record in clear)
    assert hidden[-1].sigma > 2 * clear[-1].sigma
    for record in hidden:
        if record.guided is not None and record.guided.sigma is not None:
            assert record.sigma == record.guided.sigma
