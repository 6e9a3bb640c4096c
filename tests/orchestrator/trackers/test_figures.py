"""Named figures from a ledger's records: nothing is written, nothing is read twice."""

from collections.abc import Callable
from itertools import pairwise
from math import isfinite
from pathlib import Path
from statistics import stdev

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from budgets.calibration import best_of_noise
from budgets.events import Status
from budgets.terms import Caps, Envelope
from orchestrator.planning.request import Confirm
from orchestrator.records.metrics import METRICS
from orchestrator.records.recorded import Result, load_state
from orchestrator.trackers.figures import Figures, Reading, plain_name
from tests.budgets.conftest import Story, confirmed_plan

AllFigures = Callable[[Path], list[Figures]]
CurvesOf = Callable[[list[Figures]], dict[str, dict[int, float]]]


def test_an_evaluation_has_the_figures_of_its_line_in_metrics(
    finished_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found = curves(all_figures(finished_run))
    for line in map(orjson.loads, (finished_run / METRICS).read_bytes().splitlines()):
        own = {name: values.get(line["evaluations"]) for name, values in found.items()}
        assert own["score"] == line["score"]
        assert own["seconds"] == line["seconds"]
        assert own["elapsed_seconds"] == line["elapsed_seconds"]
        for name in (name for name in line if "/" in name):
            assert own[name] == line[name]


def test_steps_are_evaluations_that_are_over_and_never_run_backwards(
    confirmed_run: Path, all_figures: AllFigures
) -> None:
    state, said = load_state(confirmed_run), all_figures(confirmed_run)
    assert {one.step for one in said} == set(
        range(1, state.accounts.evaluations + state.accounts.apart + 1)
    )
    assert all(a.step <= b.step and a.at <= b.at for a, b in pairwise(said))


def test_a_generation_is_told_as_its_report_has_it(
    finished_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found, state = curves(all_figures(finished_run)), load_state(finished_run)
    best = None
    for number, generation in enumerate(state.told):
        step = 8 * (number + 1)
        healthy = [score for score in generation.scores() if score is not None]
        best = min(healthy) if best is None else min(best, *healthy)
        assert generation.told is not None
        assert {
            name: values[step] for name, values in found.items() if name.startswith("generation/")
        } == {
            "generation/number": number,
            "generation/best": min(healthy),
            "generation/mean": sum(healthy) / len(healthy),
            "generation/sd": stdev(healthy),
            "generation/best_so_far": best,
            "generation/healthy": len(healthy),
            "generation/failed": 8 - len(healthy),
            "generation/sigma": generation.told.sigma,
            "generation/axis_ratio": generation.told.axis_ratio,
            "generation/descent": 0,
            "generation/eval_seconds": pytest.approx(0.0, abs=1.0),
        }


def test_the_baseline_is_a_line_with_its_noise(
    finished_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found, plan = curves(all_figures(finished_run)), load_state(finished_run).plan
    assert plan.calibration is not None
    mean, sd = plan.calibration.mean_score, plan.calibration.sd_score
    assert mean is not None
    assert sd is not None
    assert set(found["baseline/score"].values()) == {mean}
    assert found["baseline/noise_low"][8] == pytest.approx(mean - 2 * sd)
    assert found["baseline/noise_high"][8] == pytest.approx(mean + 2 * sd)
    assert found["baseline/best_by_luck"][16] < found["baseline/best_by_luck"][8] < mean


def test_noise_and_luck_are_those_of_candidates_that_they_stand_beside() -> None:
    plan = confirmed_plan(
        resolved=Envelope(population=4, generations=3, seeds_per_candidate=4),
        caps=Caps(evaluations=48),
    )
    story, reading = Story(plan), Reading()
    story.ask(seeds=(5, 6, 7, 8))
    for candidate in range(4):
        for seed in (5, 6, 7, 8):
            story.evaluate(candidate, 1.0, seed=seed)
    story.tell()
    found = reading.figures(story.state, story.records[-1])
    assert found is not None
    one_candidate = 0.005 / 2  # a mean over 4 seeds
    assert found.values["baseline/noise_low"] == pytest.approx(1.0 - 2 * one_candidate)
    assert found.values["baseline/noise_high"] == pytest.approx(1.0 + 2 * one_candidate)
    expected = 1.0 - one_candidate * best_of_noise(4)
    assert found.values["baseline/best_by_luck"] == pytest.approx(expected)


def test_failures_are_counted_by_status_and_have_no_score(
    finished_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found = curves(all_figures(finished_run))
    assert len(found["score"]) == 15
    assert found["status/ok"][16] + found["status/nan"][16] == 16
    assert found["status/nan"][16] == 1
    assert set(found) >= {f"status/{status}" for status in Status if status.final}


def test_what_is_spent_reserved_and_free_adds_up_to_the_cap(
    finished_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found = curves(all_figures(finished_run))
    for step in range(1, 17):
        parts = (
            found[f"budget/{part}/evaluations"][step] for part in ("spent", "reserved", "free")
        )
        assert sum(parts) == found["budget/cap/evaluations"][step] == 16
    assert "budget/spent/cost" not in found  # where money has no price
    assert found["budget/idle_device_hours"][16] >= 0


def test_scores_on_fresh_seeds_are_curves_of_their_own(
    confirmed_run: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    found, state = curves(all_figures(confirmed_run)), load_state(confirmed_run)
    assert len(found["score"]) == state.accounts.evaluations
    assert {name.split("/")[0] for name in found if "/score/" in name} == {
        *("reference", "finalists", "winner", "rung"),
    }
    assert state.decided is not None
    assert list(found["verdict/gain"].values()) == [state.decided.gain]


def test_short_evaluations_never_share_a_curve_with_full_ones(
    run_search: Callable[..., Result], tmp_path: Path, all_figures: AllFigures, curves: CurvesOf
) -> None:
    few = {"tier": "target", "population": 8, "max_evals": 24, "confirm": Confirm(seeds=0)}
    settings = {"dimension": 4}
    result = run_search(tmp_path, settings=settings, proxy=0.25, assumed_seconds=1.0, **few)
    found, told = curves(all_figures(result.directory)), result.state.told
    by_length = {is_full: [g for g in told if g.is_full is is_full] for is_full in (True, False)}
    for is_full, score, best in (
        (True, "score", "generation/best"),
        (False, "short/score", "short/best"),
    ):
        scores = [[s for s in g.scores() if s is not None] for g in by_length[is_full]]
        assert sorted(found[score].values()) == sorted(s for own in scores for s in own)
        assert list(found[best].values()) == [min(own) for own in scores]
    assert len(by_length[False]) == 1
    assert len(found["generation/sigma"]) == 3


def test_every_figure_is_a_finite_number_under_a_name_that_is_no_other_ones_path(
    confirmed_run: Path, all_figures: AllFigures
) -> None:
    said = all_figures(confirmed_run)
    assert all(isfinite(value) for one in said for value in one.values.values())
    names = {name for one in said for name in one.values}
    paths = {name[: at + 1] for name in names for at, c in enumerate(name) if c == "/"}
    assert not {f"{name}/" for name in names} & paths


def test_conditions_whose_names_differ_at_their_end_are_told_apart() -> None:
    long = "n_layer4_" * 10
    assert plain_name(f"{long}tau_c0.85") != plain_name(f"{long}tau_c0.9")


@given(st.text())
def test_any_text_becomes_one_plain_part_of_a_name(text: str) -> None:
    name = plain_name(text)
    assert name
    assert len(name) <= 101
    assert name.strip(".")
    assert name.isascii()
    assert not set(name) & set("/\\:%?# ")
