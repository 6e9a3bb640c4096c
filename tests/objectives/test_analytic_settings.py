"""What can be asked of an analytic objective beyond its first settings: traps for a verdict."""

import statistics
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import pytest

from objectives import analytic
from objectives.analytic import AnalyticObjective
from objectives.analytic_settings import MOST_HALVINGS, AnalyticSettings
from objectives.api import Context, DivergedError, Objective, OutOfMemoryError, Variant
from objectives.registry import ANALYTIC, load, varied

Point = tuple[float, ...]
FIRST = {"dimension", "noise", "seconds", "busy", "failure_rate"}


def objective(name: str = "sphere", **settings: object) -> AnalyticObjective:
    return AnalyticObjective.from_settings(name, {"dimension": 2, **settings})


def score(o: Objective, z: Point = (0.0, 0.0), seed: int = 1) -> float:
    knobs = {"x0": 0.5 * z[0], "x1": -0.5 * z[1]}
    return o.evaluate(knobs, seed, Context(Path(), "cpu", 1, lambda _: None)).score


def variant(o: Objective, chosen: Variant | None) -> Objective:
    assert chosen is not None
    return load(varied(o.spec, chosen.settings))


def points(count: int = 200) -> list[Point]:
    draws = Random(0)  # noqa: S311 - no secret hangs on it
    return [(draws.uniform(-2, 2), draws.uniform(-2, 2)) for _ in range(count)]


def rank_correlation(one: Objective, other: Objective) -> float:
    """Spearman's, of the scores at random points of the box."""

    def ranks(o: Objective) -> list[float]:
        scores = [score(o, z) for z in points()]
        order = sorted(scores)
        return [order.index(value) for value in scores]

    return statistics.correlation(ranks(one), ranks(other))


@pytest.mark.parametrize("name", ANALYTIC)
def test_what_was_not_asked_for_is_not_written_down(name: str) -> None:
    assert set(objective(name).spec.settings) == FIRST
    later = set(AnalyticSettings.model_fields) - FIRST
    defaults = {field: getattr(AnalyticSettings(), field) for field in later}
    assert objective(name, **defaults).fingerprint == objective(name).fingerprint


OTHERS: dict[str, Any] = {
    "available": 0.02,
    "seed_noise": 0.01,
    "traps": 0.1,
    "nan_radius": 0.3,
    "effort": 0.5,
    "bias": 0.5,
    "persists": 0.0,
    "memory_steps": 1,
    "halvings": 1,
}


@pytest.mark.parametrize("name", OTHERS)
def test_what_was_asked_for_is_written_down_and_another_objective(name: str) -> None:
    o = objective(**{name: OTHERS[name]})
    assert o.spec.settings[name] == OTHERS[name]
    assert load(o.spec) == o
    assert o.fingerprint != objective().fingerprint


def test_every_later_setting_is_tried_here() -> None:
    assert set(OTHERS) | FIRST == set(AnalyticSettings.model_fields)


@pytest.mark.parametrize("name", ["sphere", "ellipsoid", "rosenbrock", "cliff", "idle"])
@pytest.mark.parametrize("available", [0.001, 0.02, 0.5])
def test_the_optimum_gains_what_is_available(name: str, available: float) -> None:
    o = objective(name, available=available)
    assert score(o) == pytest.approx(1.0, abs=1e-12)
    assert score(o, (1.0, 1.0)) == pytest.approx(1.0 - available, abs=1e-12) == o.optimum_score


def test_a_seed_moves_all_points_alike_by_the_standard_deviation_asked_for() -> None:
    o = objective(seed_noise=0.02)
    offsets = [score(o, seed=seed) - 1.0 for seed in range(2000)]
    assert statistics.stdev(offsets) == pytest.approx(0.02, rel=0.06)
    elsewhere = [score(o, (1.0, 1.0), seed) - 0.5 for seed in range(2000)]
    assert elsewhere == pytest.approx(offsets, abs=1e-12)


def test_pairing_leaves_only_the_noise_of_the_points() -> None:
    o = objective(seed_noise=0.05, noise=0.005)
    differences = [score(o, (0.1, 0.0), seed) - score(o, seed=seed) for seed in range(1000)]
    assert statistics.stdev(differences) == pytest.approx(0.005 * 2**0.5, rel=0.1)


def test_traps_are_as_frequent_and_as_deep_as_asked_for() -> None:
    honest, lucky = objective(noise=0.01), objective(noise=0.01, traps=0.1)
    depths = [score(honest, z) - score(lucky, z) for z in points(1000)]
    deep = [depth for depth in depths if depth]
    assert len(deep) == pytest.approx(100, abs=30)
    assert deep == pytest.approx([0.05] * len(deep))


def test_a_trap_is_one_seeds_luck() -> None:
    honest, lucky = objective(noise=0.01), objective(noise=0.01, traps=0.1)
    trapped = [seed for seed in range(100) if score(honest, seed=seed) > score(lucky, seed=seed)]
    assert 0 < len(trapped) < 30


def test_traps_without_noise_are_warned_about() -> None:
    assert objective(traps=0.1, noise=0.01).preflight() == ()
    assert "there are none" in objective(traps=0.1).preflight()[0]


def test_points_near_the_optimum_diverge_within_the_radius() -> None:
    o = objective(nan_radius=0.3)
    assert score(o, (0.7, 0.7)) == pytest.approx(0.5 + 0.5 * 0.3**2)
    assert score(o, (2.0, -2.0)) > 1.0
    with pytest.raises(DivergedError, match=r"the optimum is 0.283 away, nearer than 0.3"):
        score(o, (1.0, 0.6))


def test_the_last_knob_of_idle_does_not_lead_out_of_the_region() -> None:
    with pytest.raises(DivergedError):
        score(objective("idle", nan_radius=0.3), (1.0, -2.0))


def test_effort_buys_less_noise() -> None:
    long, short = objective(noise=0.02, effort=4.0), objective(noise=0.02, effort=0.25)
    for o, sd in ((long, 0.01), (short, 0.04)):
        scores = [score(o, seed=seed) for seed in range(2000)]
        assert statistics.stdev(scores) == pytest.approx(sd, rel=0.06)


def test_each_effort_has_noise_of_its_own() -> None:
    efforts = (objective(noise=0.02, seed_noise=0.02, effort=effort) for effort in (0.5, 2.0))
    one, other = ([score(o, seed=seed) for seed in range(500)] for o in efforts)
    assert abs(statistics.correlation(one, other)) < 0.15


def test_effort_costs_time(monkeypatch: pytest.MonkeyPatch) -> None:
    slept: list[float] = []
    clock = SimpleNamespace(sleep=slept.append, perf_counter=lambda: sum(slept))
    monkeypatch.setattr(analytic, "time", clock)
    score(objective(seconds=1.0, effort=0.05))
    assert sum(slept) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("bias", "least", "most"), [(0.0, 1.0, 1.0), (0.5, 0.8, 0.99), (-1.0, 0.3, 0.7), (-3.0, -1, 0)]
)
def test_a_short_evaluation_ranks_points_as_well_as_its_bias_lets_it(
    bias: float, least: float, most: float
) -> None:
    found = rank_correlation(objective(), objective(effort=0.25, bias=bias))
    assert least - 1e-9 <= found <= most + 1e-9


def test_the_bias_is_gone_at_full_effort() -> None:
    for effort in (1.0, 2.0):
        assert score(objective(bias=1.0, effort=effort), (1.0, 1.0)) == 0.5
    short = objective(bias=1.0, effort=0.5)
    assert score(short, (1.5, 1.5)) == 0.5
    assert score(short, (1.0, 1.0)) == short.optimum_score > 0.5


@pytest.mark.parametrize(
    ("effort", "persists", "optimum"),
    [
        (0.5, 0.0, 0.9),
        (1.0, 0.0, 0.9),
        (2.0, 0.0, 0.95),
        (4.0, 0.0, 1.0),
        (4.0, 0.5, 0.95),
        (4.0, 1.0, 0.9),
        (4.0, -0.5, 1.05),
    ],
)
def test_a_gain_persists_as_far_as_asked_for(
    effort: float, persists: float, optimum: float
) -> None:
    o = objective(available=0.1, effort=effort, persists=persists)
    assert o.optimum_score == score(o, (1.0, 1.0)) == pytest.approx(optimum)
    assert score(o) == pytest.approx(1.0)
    assert score(o, (-1.0, -1.0)) == pytest.approx(1.3)  # a loss stays what it is


def test_a_rung_is_as_much_more_effort() -> None:
    o = objective(available=0.1, persists=0.5, effort=0.5)
    rung = o.rung(8.0)
    assert rung == Variant(label="8 x effort", settings={"effort": 4.0}, length=8.0)
    assert score(variant(o, rung), (1.0, 1.0)) == pytest.approx(0.95)
    assert variant(o, rung).space == o.space


def test_effort_ends_at_four() -> None:
    assert objective(effort=2.0).rung(2.1) is None
    with pytest.raises(ValueError, match=r"effort: .*less than or equal to 4"):
        objective(effort=5.0)


def test_a_rung_needs_a_positive_factor() -> None:
    with pytest.raises(ValueError, match="factor must be positive and finite, got 0"):
        objective().rung(0.0)


def test_memory_suffices_after_as_many_halvings_as_asked_for() -> None:
    o: Objective = objective(memory_steps=2, noise=0.01)
    for missing in (2, 1):
        with pytest.raises(OutOfMemoryError, match=f"{missing} halvings too few"):
            score(o)
        o = variant(o, o.lighter())
    assert score(o) == score(objective(noise=0.01))


def test_nothing_is_lighter_without_end_or_unasked() -> None:
    assert objective().lighter() is None
    assert objective(memory_steps=9, halvings=MOST_HALVINGS).lighter() is None


def test_an_analytic_objective_has_no_controls() -> None:
    assert objective().controls() == ()
