"""Each problem has a known optimum and a default of regret 1; noise is a share of the gain."""

import numpy as np
import pytest

from scripts.bench.problems import FUNCTIONS, SHARES, Kind, OwnProblem, Setting, keyed, noise
from scripts.bench.suites import SUITES, Key, keys, load

CENTRE = (0.5,) * 10


def setting(dimension: int = 10) -> Setting:
    rng = keyed("test", dimension)
    default = rng.uniform(0.25, 0.75, dimension)
    return Setting(default, np.clip(default + 0.15 * rng.standard_normal(dimension), 0, 1), rng)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_best_value_is_zero_and_the_default_has_more(name: str) -> None:
    at = setting()
    function = FUNCTIONS[name](at)
    assert function(at.default) > 1e-3
    points = keyed("box").uniform(size=(500, 10))
    assert np.nanmin([function(x) for x in points]) > 0
    if name != "edge":
        assert function(at.optimum) == pytest.approx(0, abs=1e-12)


def test_a_score_follows_from_point_and_seed_alone() -> None:
    first, second = (OwnProblem("sphere", 1, "1/3", "shared") for _ in range(2))
    expected = [first.score(CENTRE, seed) for seed in range(5)]
    assert [second.score(CENTRE, seed) for seed in reversed(range(5))] == expected[::-1]
    assert len(set(expected)) == 5


@pytest.mark.parametrize(("level", "sd"), [("0", 0), ("0.1", 0.1), ("1/3", 1 / 3), ("1", 1)])
@pytest.mark.parametrize("kind", SHARES)
def test_the_noise_is_a_share_of_the_possible_gain(level: str, sd: float, kind: Kind) -> None:
    problem = OwnProblem("steep", 2, level, kind)
    scores = np.array([problem.score(problem.default, seed) for seed in range(2000)], float)
    assert scores.mean() == pytest.approx(1, abs=4 * sd / 2000**0.5)
    assert scores.std() == pytest.approx(sd, rel=0.08)


def test_near_candidates_of_a_seed_share_more_noise() -> None:
    def correlation(distance: float) -> float:
        other = tuple(unit + distance for unit in CENTRE)
        pairs = [[noise("k", "shared", p, seed) for p in (CENTRE, other)] for seed in range(2000)]
        return float(np.corrcoef(np.array(pairs).T)[0, 1])

    common, smooth, _ = SHARES["shared"]
    assert correlation(1e-3) == pytest.approx(common + smooth, abs=0.04)
    assert correlation(0.4) == pytest.approx(common, abs=0.06)


def test_a_suite_has_every_problem_once_per_seed_and_names_can_be_loaded() -> None:
    for suite, every in SUITES.items():
        names = [str(key) for key in keys(suite, range(1, 4))]
        assert len(set(names)) == len(names) == 3 * len(every)
    key = Key("bowl", 4, "1/3", "shared")
    assert Key.parse(str(key)) == key
    assert load(key).score(CENTRE, 9) == OwnProblem("bowl", 4, "1/3", "shared").score(CENTRE, 9)
