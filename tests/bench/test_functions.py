import numpy as np
import pytest

from scripts.bench.draws import keyed
from scripts.bench.functions import CLIFF, FUNCTIONS, Setting
from scripts.bench.own import OwnProblem

EVERY = pytest.mark.parametrize("name", FUNCTIONS)


def setting(dimension: int = 10) -> Setting:
    rng = keyed("test", dimension)
    default = rng.uniform(0.25, 0.75, dimension)
    return Setting(default, np.clip(default + 0.15 * rng.standard_normal(dimension), 0, 1), rng)


@EVERY
def test_the_best_value_is_zero_and_the_default_has_more(name: str) -> None:
    at = setting()
    function = FUNCTIONS[name](at)
    assert function(at.default) > 1e-3
    points = keyed("box").uniform(size=(500, 10))
    assert np.nanmin([function(x) for x in points]) > 0
    if name != "edge":
        assert function(at.optimum) == pytest.approx(0, abs=1e-12)


def test_the_edge_s_best_value_is_on_the_faces_it_binds_at() -> None:
    at = setting()
    function = FUNCTIONS["edge"](at)
    masks = [np.array([n >> k & 1 for k in range(10)], bool) for n in range(1024)]
    faces = np.round(at.default)
    values = [function(np.where(mask, faces, at.optimum)) for mask in masks]
    best = int(np.argmin(values))
    assert values[best] == pytest.approx(0, abs=1e-12)
    assert masks[best].sum() == 3


@EVERY
def test_it_has_any_dimension(name: str) -> None:
    at = setting(4)
    assert FUNCTIONS[name](at)(at.default) > 0


def test_the_cliff_fails_a_little_behind_its_optimum() -> None:
    problem = OwnProblem("cliff", 1)
    points = keyed("box").uniform(size=(300, 10)).tolist()
    failed = [problem.score(tuple(point), 1) is None for point in points]
    assert 0.1 < np.mean(failed) < 0.9
    assert problem.regret(tuple(points[failed.index(True)])) == 2
    assert problem.score(problem.default, 1) == 1
    beyond = problem.setting.optimum + CLIFF / 2
    assert problem.score(tuple(beyond.tolist()), 1) is not None
