import numpy as np
import pytest

from scripts.bench.coco import CocoProblem, _optimum
from scripts.bench.draws import keyed

pytest.importorskip("cocoex")


def mine(x: np.ndarray) -> tuple[float, ...]:
    return tuple(((x + 5) / 10).tolist())


@pytest.mark.parametrize("function", [1, 8, 15, 21])
def test_regret_is_zero_at_the_optimum_and_one_at_the_default(function: int) -> None:
    problem = CocoProblem("bbob", function, 2)
    assert problem.regret(problem.default) == 1
    assert problem.regret(mine(_optimum(problem._clean))) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("function", [101, 104, 117, 119, 130])
def test_the_truth_about_a_noisy_problem_has_no_noise(function: int) -> None:
    problem = CocoProblem("bbob-noisy", function, 3)
    point = tuple(keyed("coco").uniform(0.3, 0.7, 10).tolist())
    assert problem.regret(point) == problem.regret(point)
    assert len({problem.score(point, 1) for _ in range(60)}) > 1
    assert problem.regret(mine(_optimum(problem._clean))) == pytest.approx(0, abs=1e-6)


@pytest.mark.parametrize("function", range(101, 131, 3))
def test_its_median_is_the_truth(function: int) -> None:
    problem = CocoProblem("bbob-noisy", function, 3)
    start, scale = problem._true(problem.default), 10 if function == 125 else 1
    looks = [problem.score(problem.default, 0) or 0.0 for _ in range(400)]
    share = (np.median(looks) - problem._best) / (start - problem._best) * scale
    assert share == pytest.approx(1, abs=0.2)
