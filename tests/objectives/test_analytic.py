"""Analytic objectives: what they promise about optimum, noise, failures, cliff and cost."""

import json
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.analytic import AnalyticObjective, InjectedError
from objectives.api import Context, DivergedError, Objective, ObjectiveSpec, SetupError
from objectives.registry import ANALYTIC, load

BOWLS = ("sphere", "ellipsoid", "rosenbrock", "cliff")
ROSENBROCK_V1 = 46.74910584107948
FINGERPRINT_V1 = "acaf7274d03dd997d3534a7d77684bce1e9a841a5a6171bfed9618cda941a6e7"


def context(heartbeat: Callable[[Mapping[str, float]], None] = lambda _: None) -> Context:
    return Context(directory=Path(), device="cpu", threads=1, heartbeat=heartbeat)


def objective(name: str = "sphere", **settings: object) -> AnalyticObjective:
    return AnalyticObjective.from_settings(name, settings)


def score(o: Objective, point: tuple[float, ...] | None = None, seed: int = 1) -> float:
    knobs = o.space.decode(o.space.baseline if point is None else point)
    return o.evaluate(knobs, seed, context()).score


def fails(o: AnalyticObjective, seed: int) -> bool:
    try:
        score(o, seed=seed)
    except InjectedError:
        return True
    return False


@pytest.mark.parametrize("name", ANALYTIC)
def test_scores_one_at_the_baseline(name: str) -> None:
    assert score(objective(name, noise=0)) == pytest.approx(1.0, abs=1e-12)


@pytest.mark.parametrize("dimension", [2, 3, 10])
@pytest.mark.parametrize("name", ANALYTIC)
def test_scores_the_promised_optimum_at_the_optimum(name: str, dimension: int) -> None:
    o = objective(name, dimension=dimension, noise=0)
    assert score(o, o.optimum) == pytest.approx(o.optimum_score, abs=1e-12)


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "rosenbrock"])
@given(point=st.tuples(*[st.floats(0.0, 1.0)] * 4))
def test_no_point_of_the_cube_beats_the_optimum(name: str, point: tuple[float, ...]) -> None:
    o = objective(name, dimension=4)
    assert score(o, point) >= o.optimum_score


@pytest.mark.parametrize("name", BOWLS)
def test_every_knob_matters_at_the_optimum(name: str) -> None:
    o = objective(name, dimension=5)
    for i in range(5):
        moved = tuple(u - 0.05 if j == i else u for j, u in enumerate(o.optimum))
        assert score(o, moved) > o.optimum_score


def test_the_optimum_is_inside_the_box_and_away_from_the_baseline() -> None:
    o = objective(dimension=3)
    assert o.optimum == pytest.approx((0.75, 0.25, 0.75))
    assert o.space.baseline == (0.5, 0.5, 0.5)


def test_a_score_of_this_code_version_stays() -> None:
    """If this fails on purpose, raise VERSION in objectives/analytic.py: old runs must not mix."""
    o = objective("rosenbrock", dimension=2, noise=0.01)
    assert score(o, (0.6, 0.7), seed=7) == pytest.approx(ROSENBROCK_V1, rel=1e-12)
    assert o.fingerprint == FINGERPRINT_V1


def test_a_fresh_process_gives_the_same_score() -> None:
    o = objective("ellipsoid", dimension=3, noise=0.05)
    knobs = o.space.decode((0.1, 0.2, 0.3))
    code = (
        "import json, sys; from pathlib import Path\n"
        "from objectives.api import Context, ObjectiveSpec\n"
        "from objectives.registry import load\n"
        "spec, knobs = json.loads(sys.argv[1])\n"
        "context = Context(Path(), 'cpu', 1, lambda metrics: None)\n"
        "print(load(ObjectiveSpec(**spec)).evaluate(knobs, 5, context).score.hex())"
    )
    argument = json.dumps([o.spec.model_dump(), knobs])
    done = subprocess.run(
        [sys.executable, "-c", code, argument], capture_output=True, text=True, check=True
    )
    assert float.fromhex(done.stdout.strip()) == o.evaluate(knobs, 5, context()).score


def test_noise_depends_on_the_seed_and_on_the_point() -> None:
    o = objective("noise", dimension=2)
    scores = {score(o, point, seed) for point in ((0.1, 0.2), (0.2, 0.1)) for seed in (1, 2, 3)}
    assert len(scores) == 6


def test_the_last_knob_of_idle_changes_nothing_not_even_the_noise() -> None:
    o = objective("idle", dimension=3, noise=0.05)
    assert score(o, (0.2, 0.3, 0.0)) == score(o, (0.2, 0.3, 1.0))
    assert score(o, (0.2, 0.3, 0.0)) != score(o, (0.2, 0.4, 0.0))


def test_noise_has_the_standard_deviation_asked_for() -> None:
    o = objective(dimension=2, noise=0.02)
    scores = [score(o, seed=seed) for seed in range(2000)]
    assert statistics.stdev(scores) == pytest.approx(0.02, rel=0.06)
    assert statistics.fmean(scores) == pytest.approx(1.0, abs=0.002)


def test_noise_is_reported_beside_the_noise_free_score() -> None:
    o = objective(noise=0.02)
    measured = o.evaluate(o.space.decode(o.optimum), 1, context())
    assert measured.metrics == {"noise_free_score": pytest.approx(0.5)}
    assert measured.score != pytest.approx(0.5, abs=1e-6)


def test_only_the_noise_objective_is_noisy_by_default() -> None:
    assert {name: objective(name).settings.noise for name in ANALYTIC} == {
        **dict.fromkeys((*BOWLS, "idle"), 0.0),
        "noise": 0.01,
    }


def test_failures_come_at_the_rate_asked_for() -> None:
    o = objective(dimension=2, failure_rate=0.1)
    assert sum(fails(o, seed) for seed in range(2000)) == pytest.approx(200, abs=40)


def test_the_same_seed_and_point_fail_again() -> None:
    o = objective(dimension=2, failure_rate=0.5)
    assert [fails(o, seed) for seed in range(20)] == [fails(o, seed) for seed in range(20)]


def test_the_cliff_diverges_past_its_edge_only() -> None:
    o = objective("cliff", dimension=2)
    at_edge = {"x0": 0.6, "x1": -0.5}
    assert o.evaluate(at_edge, 1, context()).score < 0.52
    with pytest.raises(DivergedError, match=r"x0 = 0.61 lies past the cliff's edge at 0.6"):
        o.evaluate({**at_edge, "x0": 0.61}, 1, context())


@pytest.mark.parametrize("busy", [False, True])
def test_an_evaluation_takes_its_seconds_with_heartbeats(busy: bool) -> None:
    beats: list[float] = []
    o = objective(seconds=0.25, busy=busy)
    cpu = time.thread_time()
    measured = o.evaluate(
        o.space.decode(o.optimum), 1, context(lambda m: beats.append(m["elapsed_seconds"]))
    )
    cpu = time.thread_time() - cpu
    assert measured.train_seconds >= 0.25
    assert len(beats) >= 3
    assert beats == sorted(beats)
    assert cpu >= 0.25 if busy else cpu < 0.2


@pytest.mark.parametrize("name", ANALYTIC)
def test_a_spec_loads_an_equal_objective(name: str) -> None:
    o = objective(name, dimension=3, noise=0.03, seconds=1)
    spec = ObjectiveSpec.model_validate_json(o.spec.model_dump_json())
    assert load(spec) == o
    assert load(spec).fingerprint == o.fingerprint


def test_fingerprints_differ_when_anything_that_decides_a_score_differs() -> None:
    variants = (objective(), objective(dimension=9), objective(noise=0.01), objective("cliff"))
    assert len({o.fingerprint for o in variants}) == len(variants)


def test_a_flat_objective_without_noise_is_warned_about() -> None:
    assert objective().preflight() == ()
    assert objective("noise").preflight() == ()
    assert objective("noise", noise=0).preflight() != ()


def test_a_missing_knob_is_a_setup_error() -> None:
    with pytest.raises(SetupError, match="knobs x1, x2 are missing"):
        objective(dimension=3).evaluate({"x0": 0.0}, 1, context())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dimensions": 3}, r"unknown sphere setting 'dimensions'.*Did you mean 'dimension'\?"),
        ({"xyz": 3}, "unknown sphere setting 'xyz'. Expected one of dimension, noise, seconds"),
        ({"dimension": 1}, "settings: dimension: .*greater than or equal to 2, got 1"),
        ({"dimension": "many"}, "settings: dimension: .*valid integer.*got 'many'"),
        ({"noise": -0.1}, "settings: noise: .*greater than or equal to 0, got -0.1"),
        ({"noise": 0.2}, "settings: noise: .*less than or equal to 0.1, got 0.2"),
        ({"seconds": float("inf")}, "settings: seconds: .*finite number, got inf"),
        ({"failure_rate": 2, "busy": 7}, "settings: busy: .*; failure_rate: .*got 2"),
    ],
)
def test_a_wrong_setting_is_refused_in_words(settings: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        AnalyticObjective.from_settings("sphere", settings)


def test_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(ValueError, match=r"unknown objective 'spere'.*Did you mean 'sphere'\?"):
        load(ObjectiveSpec(name="spere"))


def test_an_unknown_name_far_from_all_lists_the_known() -> None:
    with pytest.raises(ValueError, match=r"Expected one of nanochat, command, .*noise$"):
        load(ObjectiveSpec(name="qqq"))
