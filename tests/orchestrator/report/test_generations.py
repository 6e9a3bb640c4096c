"""Generations with their scores, and the time of the run shared among them and what is beside."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean, stdev

import pytest

from budgets.calibration import best_of_noise
from budgets.events import Status
from budgets.terms import Caps, Envelope
from orchestrator.records.recorded import Result
from orchestrator.report.collect import report
from orchestrator.report.model import Beside, GenerationView
from tests.budgets.conftest import Story, settled, small_plan
from tests.orchestrator.report.conftest import KNOBS, reported


def test_scores_of_a_generation_are_those_of_its_candidates(finished_run: Path) -> None:
    found = report(finished_run)

    for view in found.generations:
        scores = [
            one.score
            for one in found.evaluations
            if one.generation == view.number and one.score is not None
        ]
        assert view.best == min(scores)
        assert view.mean == pytest.approx(fmean(scores))
        assert view.sd == pytest.approx(stdev(scores))
        assert (view.candidates, view.healthy) == (8, len(scores))
        assert view.failed == 8 - len(scores)


def test_the_best_so_far_never_rises_and_luck_falls_with_it(finished_run: Path) -> None:
    found = report(finished_run)
    first, second = found.generations

    assert first.best_so_far == first.best
    assert first.best is not None
    assert second.best is not None
    assert second.best_so_far == min(first.best, second.best)
    assert found.noise is not None
    assert found.noise.sd is not None
    expected = found.noise.mean - best_of_noise(first.healthy) * found.noise.sd
    assert first.luck_so_far == pytest.approx(expected)
    assert second.luck_so_far is not None
    assert second.luck_so_far < expected


def test_time_is_shared_without_a_gap(confirmed_run: Path) -> None:
    found = report(confirmed_run)

    names = [part.name for part in found.beside]
    assert names == ["start-up", "comparison", "rung"]
    parts: list[GenerationView | Beside] = [*found.beside, *found.generations]
    whole = sum(
        part.useful_device_hours + part.wasted_device_hours + part.idle_device_hours
        for part in parts
    )
    assert whole == pytest.approx(found.budget.slot_hours)
    assert found.generations[0].ended == found.generations[1].began
    startup, comparison, _ = found.beside
    assert startup.useful_device_hours == startup.wasted_device_hours == 0
    assert comparison.useful_device_hours > 0


def test_without_a_comparison_the_last_generation_has_all_that_is_left(finished_run: Path) -> None:
    found = report(finished_run)

    assert [part.name for part in found.beside] == ["start-up"]
    assert found.generations[-1].ended <= found.identity.sessions[-1].ended


def test_a_generation_is_planned_by_the_calibration(finished_run: Path) -> None:
    found = report(finished_run)

    assert found.noise is not None
    expected = 8 * found.noise.median_seconds / 3600
    assert [view.planned_device_hours for view in found.generations] == [expected, expected]


def test_short_evaluations_are_told_apart_and_are_no_best(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    directory = run_search(
        tmp_path,
        settings={"noise": 0.001},
        proxy=0.25,
        tier="target",
        population=16,
        max_evals=64,
        assumed_seconds=1.0,
        thresholds={"go_seeds": 2},
    ).directory

    found = report(directory)

    short = [view for view in found.generations if view.is_short]
    assert short, "the proxy was certified"
    for view in short:
        before = found.generations[view.number - 1]
        assert view.best_so_far == before.best_so_far
        assert view.luck_so_far == before.luck_so_far
    by_place = {(one.panel, one.generation): one.is_short for one in found.evaluations}
    assert by_place["proxy", 0]
    assert not by_place[None, 0]
    assert by_place[None, short[0].number]


def test_what_gave_no_score_is_wasted_and_the_rest_of_its_slots_idle() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}))
    story.ask()
    outcomes: tuple[float | Status, ...] = (1.0, Status.ERROR, Status.TIMEOUT)
    for candidate, outcome in enumerate(outcomes):
        reservation = story.reserve(candidate)
        story.elapsed_ms += 2000
        story.say(settled(reservation, outcome, charged_ms=2000))

    (view,) = reported(story).generations

    assert 3600 * view.useful_device_hours == pytest.approx(2)
    assert 3600 * view.wasted_device_hours == pytest.approx(4)
    assert 3600 * view.idle_device_hours == pytest.approx(6)  # two slots, one after the other used


def test_luck_is_less_where_a_candidate_is_scored_on_more_seeds() -> None:
    shape = Envelope(population=4, generations=2, seeds_per_candidate=4)
    plan = small_plan(space={"knobs": KNOBS}, resolved=shape, caps=Caps(evaluations=32))
    story = Story(plan)
    story.ask(seeds=(5, 6, 7, 8))
    for candidate in range(4):
        for seed in (5, 6, 7, 8):
            story.evaluate(candidate, 1.0, seed=seed)

    (view,) = reported(story).generations

    assert view.luck_so_far == pytest.approx(1.0 - best_of_noise(4) * 0.1 / 2)


def test_a_generations_device_time_is_that_of_its_own_evaluations(confirmed_run: Path) -> None:
    found = report(confirmed_run)

    def charged(panels: set[str | None], number: int | None = None) -> float:
        return sum(
            one.charged_seconds
            for one in found.evaluations
            if one.panel in panels and number in (None, one.generation)
        )

    for view in found.generations:
        used = view.useful_device_hours + view.wasted_device_hours
        assert 3600 * used == pytest.approx(charged({None}, view.number))
    by_name = {one.name: one for one in found.beside}
    for name, panels in (
        ("comparison", {"reference", "finalists", "winner"}),
        ("rung", {"rung"}),
    ):
        used = by_name[name].useful_device_hours + by_name[name].wasted_device_hours
        assert 3600 * used == pytest.approx(charged(set(panels)))
