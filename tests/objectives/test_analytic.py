"""Analytic objectives: what they promise about optimum, noise, failures and cost."""

import statistics
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.analytic import AnalyticObjective
from objectives.api import Context, DivergedError, Objective, ObjectiveError
from objectives.registry import ANALYTIC, load

Point = tuple[float, ...]
BOWLS = ("sphere", "ellipsoid", "cliff", "idle")
ELLIPSOID_V1 = 2.109104401080945
FINGERPRINT_V1 = "287b44641475e3362a8265d088ee1bac5e3ea7c71dc72c7736b4f76887125593"


def context() -> Context:
    return Context(directory=Path(), device="cpu", threads=1, heartbeat=lambda _: None)


def objective(name: str = "sphere", **settings: object) -> AnalyticObjective:
    return AnalyticObjective.from_settings(name, {"dimension": 2, **settings})


def score(o: Objective, z: Point = (0.0, 0.0), seed: int = 1) -> float:
    """At z, one coordinate a knob: 0 is the baseline, 1 the optimum."""
    knobs = {f"x{i}": -0.5 * v if i % 2 else 0.5 * v for i, v in enumerate(z)}
    return o.evaluate(knobs, seed, context()).score


def sd(o: Objective) -> float:
    return statistics.stdev(score(o, seed=seed) for seed in range(2000))


@pytest.mark.parametrize("name", ANALYTIC)
def test_the_baseline_scores_one_and_the_optimum_what_is_promised(name: str) -> None:
    for dimension in (2, 3, 10):
        o = objective(name, dimension=dimension, noise=0)
        assert score(o, (0.0,) * dimension) == pytest.approx(1.0, abs=1e-12)
        best = score(o, (1.0,) * dimension)
        assert best == pytest.approx(1.0 if name == "noise" else 0.5, abs=1e-12)
        assert load(o.spec) == o


@pytest.mark.parametrize("name", BOWLS)
@given(point=st.tuples(*[st.floats(-2.0, 2.0)] * 4))
def test_no_point_of_the_box_beats_the_optimum(name: str, point: Point) -> None:
    o = objective(name, dimension=4)
    try:
        assert score(o, point) >= 0.5 - 1e-12
    except DivergedError:
        assert name == "cliff"
        assert point[0] > 1.2


def test_a_score_of_this_code_version_stays() -> None:
    """If this fails on purpose, raise its version: old runs must not mix."""
    o = objective("ellipsoid", noise=0.01)
    knobs = o.space.decode((0.6, 0.7))
    measured = o.evaluate(knobs, 7, context())
    assert measured.score == pytest.approx(ELLIPSOID_V1, rel=1e-12)
    assert o.fingerprint == FINGERPRINT_V1


def test_noise_depends_on_seed_and_point_but_not_on_the_idle_knob() -> None:
    o = objective("noise")
    scores = {score(o, point, seed) for point in ((0.1, 0.2), (0.2, 0.1)) for seed in (1, 2, 3)}
    assert len(scores) == 6
    idle = objective("idle", dimension=3, noise=0.05)
    assert score(idle, (0.2, 0.3, 0.0)) == score(idle, (0.2, 0.3, 1.0))
    assert score(idle, (0.2, 0.3, 0.0)) != score(idle, (0.2, 0.4, 0.0))


def test_noise_has_the_standard_deviations_that_are_set() -> None:
    assert sd(objective(noise=0.02)) == pytest.approx(0.02, rel=0.06)
    assert sd(objective("noise")) == pytest.approx(0.01, rel=0.06)
    assert sd(objective(noise=0.02, effort=4.0)) == pytest.approx(0.01, rel=0.06)


def test_some_points_fail_as_they_are_set_to() -> None:
    assert score(objective("cliff"), (1.2, 1.0)) < 0.52
    with pytest.raises(DivergedError):
        score(objective("cliff"), (1.22, 1.0))

    def fails(seed: int) -> bool:
        try:
            score(objective(failure_rate=0.1), seed=seed)
        except ObjectiveError:
            return True
        return False

    failed = [seed for seed in range(2000) if fails(seed)]
    assert len(failed) == pytest.approx(200, abs=40)
    assert all(map(fails, failed))


@pytest.mark.parametrize(
    ("effort", "persists", "optimum"),
    [(0.5, 0.0, 0.9), (2.0, 0.0, 0.95), (4.0, 0.0, 1.0), (4.0, 0.5, 0.95), (4.0, -0.5, 1.05)],
)
def test_a_gain_persists_as_far_as_it_is_set_to(
    effort: float, persists: float, optimum: float
) -> None:
    o = objective(available=0.1, effort=effort, persists=persists)
    assert score(o, (1.0, 1.0)) == pytest.approx(optimum)
    assert score(o) == pytest.approx(1.0)
    assert score(o, (-1.0, -1.0)) == pytest.approx(1.3)  # a loss stays what it is
    assert o.scaled(4.1 / effort) is None
