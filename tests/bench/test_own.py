import numpy as np
import pytest

from scripts.bench.draws import keyed
from scripts.bench.noise import SHARES, Kind, noise
from scripts.bench.own import OwnProblem, reflected
from scripts.bench.suites import SUITES, Key, keys, load

CENTRE = (0.5,) * 10


def test_the_default_has_regret_one_and_the_optimum_none() -> None:
    problem = OwnProblem("rotated", 3)
    assert problem.regret(problem.default) == 1
    optimum = tuple(problem.setting.optimum.tolist())
    assert problem.regret(optimum) == pytest.approx(0, abs=1e-12)


def test_a_score_is_its_point_s_and_seed_s_whoever_asks_and_when() -> None:
    first, second = (OwnProblem("sphere", 1, "1/3", "shared") for _ in range(2))
    expected = [first.score(CENTRE, seed) for seed in range(5)]
    assert [second.score(CENTRE, seed) for seed in reversed(range(5))] == expected[::-1]
    assert len(set(expected)) == 5


@pytest.mark.parametrize(("level", "sd"), [("0", 0), ("0.1", 0.1), ("1/3", 1 / 3), ("1", 1)])
@pytest.mark.parametrize("kind", ["white", "shared"])
def test_the_noise_is_a_share_of_the_available_improvement(
    level: str, sd: float, kind: Kind
) -> None:
    problem = OwnProblem("steep", 2, level, kind)
    scores = [problem.score(problem.default, seed) for seed in range(2000)]
    told = np.array([score for score in scores if score is not None])
    assert told.mean() == pytest.approx(1, abs=4 * sd / 2000**0.5)
    assert told.std() == pytest.approx(sd, rel=0.08)


def test_noise_is_shared_by_a_seed_s_candidates_more_the_nearer_they_are() -> None:
    def correlation(distance: float) -> float:
        other = tuple(unit + distance for unit in CENTRE)
        pairs = [[noise("k", "shared", p, seed) for p in (CENTRE, other)] for seed in range(2000)]
        return float(np.corrcoef(np.array(pairs).T)[0, 1])

    common, smooth, _ = SHARES["shared"]
    assert correlation(1e-3) == pytest.approx(common + smooth, abs=0.04)
    assert correlation(0.4) == pytest.approx(common, abs=0.06)


def test_instances_differ_and_all_lie_in_the_box() -> None:
    settings = [OwnProblem("sphere", seed).setting for seed in range(30)]
    assert len({tuple(s.optimum) for s in settings}) == 30
    for setting in settings:
        assert (setting.optimum >= 0).all()
        assert (setting.optimum <= 1).all()


def test_reflection_folds_at_the_faces() -> None:
    assert reflected(np.array([-0.25, 0.5, 1.25, 2.75])) == pytest.approx([0.25, 0.5, 0.75, 0.75])


def test_a_problem_s_name_builds_it_again() -> None:
    key = Key("own", "bowl", 4, "1/3", "shared")
    assert Key.parse(str(key)) == key
    point = tuple(keyed("p").uniform(size=10).tolist())
    assert load(key).score(point, 9) == OwnProblem("bowl", 4, "1/3", "shared").score(point, 9)


def test_a_suite_has_every_problem_once_for_each_seed() -> None:
    for suite, every in SUITES.items():
        names = [str(key) for key in keys(suite, range(1, 4))]
        assert len(set(names)) == len(names) == 3 * len(every)
