"""The search's distribution, replayed; or why it cannot be."""

from collections.abc import Callable
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest

from budgets.terms import SearchTerms
from orchestrator.analysis.analyze import analyze
from orchestrator.planning.request import Confirm
from orchestrator.records.recorded import Result, load_state
from orchestrator.report.collect import report
from orchestrator.report.distribution import distribution
from tests.ledgers import state_of

GOLDEN = Path(__file__).parents[2] / "golden"


def test_the_replay_stands_where_each_generation_was_told(finished_run: Path) -> None:
    state = load_state(finished_run)
    found, why = distribution(state)

    assert found is not None
    assert why == ""
    for generation, spread in zip(state.told, found.history, strict=True):
        assert generation.told is not None
        assert spread.generation == generation.number
        assert spread.sigma == generation.told.sigma
        assert spread.favourite == generation.told.favourite
        scale = fmean(deviation**2 for deviation in spread.deviations) ** 0.5
        assert scale == pytest.approx(spread.sigma, rel=0.3)


def test_it_is_what_an_analysis_says(finished_run: Path) -> None:
    state = load_state(finished_run)
    found, _ = distribution(state)
    analysis = analyze(state)

    assert found is not None
    assert found.correlations == analysis.landscape.correlations
    assert found.first_deviations == analysis.first.deviations
    assert found.history[-1].deviations == analysis.landscape.deviations
    assert found.correlation_by_chance == analysis.by_chance.correlation


def test_after_a_search_has_begun_anew_it_is_that_of_the_descent_that_counts(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    """The next descent begins at once, with steps that nothing was learned by yet."""
    directory = run_search(
        tmp_path,
        settings={"dimension": 2},
        tier="max",
        confirm=Confirm(seeds=0),
        population=6,
        max_evals=144,
        assumed_seconds=1.0,
    ).directory
    state = load_state(directory)
    descents = [g.told.descent for g in state.told if g.told is not None]
    converged = descents.count(0) - 1
    assert 0 < converged < len(descents) - 1

    found, _ = distribution(state)

    assert found is not None
    widths = [max(spread.deviations) for spread in found.history]
    assert widths[converged] < 0.05 < widths[converged + 1]
    assert found.eigenvalues[0] < 0.05**2


def test_a_replay_that_diverges_breaks_nothing(run: Path, tamper: Callable[..., None]) -> None:
    """Generations say all the same where the search stood."""

    def moved(lines: list[dict[str, Any]]) -> None:
        asked = [line for line in lines if line["event"]["kind"] == "generation_asked"]
        asked[1]["event"]["points"][3][0] = 0.123

    tamper(run, moved)

    found = report(run)

    assert found.distribution is None
    assert "candidate 3 differs by" in found.no_distribution
    assert found.generations[-1].sigma is not None
    assert found.generations[-1].favourite is not None


def test_terms_that_no_search_can_have_break_nothing(finished_run: Path) -> None:
    state = state_of(finished_run)
    assert state.plan.search is not None
    shape = tuple(tuple(1.0 for _ in range(10)) for _ in range(10))  # of rank one
    search = SearchTerms.model_validate({**state.plan.search.model_dump(), "shape": shape})
    state.plan = state.plan.model_copy(update={"search": search})

    found, why = distribution(state)

    assert found is None
    assert "positive definite" in why


def test_what_searches_nothing_has_none() -> None:
    assert report(GOLDEN / "schema_1_check").no_distribution == "a check run searches nothing"


def test_the_axis_ratio_is_that_of_the_distribution_it_is_told_beside(finished_run: Path) -> None:
    found, _ = distribution(load_state(finished_run))

    assert found is not None
    widest, *_, narrowest = found.eigenvalues
    assert found.history[-1].axis_ratio == pytest.approx((widest / narrowest) ** 0.5)
