"""What checks and calibrations measured."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Status
from budgets.liveness import EndEffect, KnobFinding, Liveness
from orchestrator.charts.chart import Intervals, Note, Points, Rule, Stripe
from orchestrator.report.model import Report
from orchestrator.report.plots.checks import baseline, liveness

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def end(which: Any, difference: float | None, *, moves: bool = False) -> EndEffect:
    return EndEffect(
        end=which,
        statuses={"ok": 4},
        difference=difference,
        standard_error=None if difference is None else 0.01,
        in_noise=None if difference is None else difference / 0.02,
        t=None,
        same=False,
        chance=0.5,
        moves=moves,
    )


def checked(made: "Made", *ends: EndEffect, noise: float = 0.02) -> Report:
    knob = KnobFinding(knob="lr", verdict="alive", better=None, ends=ends, seeds_needed=None)
    own = Liveness(
        seeds=4,
        baseline=1.0,
        noise=noise,
        noise_from="check",
        t_limit=3.0,
        knobs=(knob,),
        pending=("depth",),
    )
    report = made.report()
    return report.model_copy(update={"budget": report.budget.model_copy(update={"check": own})})


def test_an_end_is_its_effect_in_sds_of_the_noise_with_its_limit(made: "Made") -> None:
    plot = liveness(checked(made, end("low", 0.1, moves=True), end("high", 0.01)))
    assert plot is not None
    (chart,) = plot.charts
    assert chart.y.categories == ["lr, low", "lr, high"]
    moving, still = [m for m in chart.marks if isinstance(m, Intervals)]
    assert (list(moving.mean), moving.is_filled) == ([5.0], True)
    assert (list(still.mean), still.is_filled) == ([0.5], False)
    assert list(still.low) == pytest.approx([-1.0])
    assert "lr, low: +5 sd of the noise, moves the score." in plot.description
    assert "Not measured yet: depth." in plot.description


def test_an_end_far_beyond_all_others_stands_at_the_edge_with_its_size(made: "Made") -> None:
    plot = liveness(checked(made, end("low", 100.0, moves=True), end("high", 0.01)))
    assert plot is not None
    marks = plot.charts[0].marks
    (edge,) = [m for m in marks if isinstance(m, Points)]
    assert list(edge.x) == [plot.charts[0].x.high]
    assert [m.text for m in marks if isinstance(m, Note)] == ["+5e+03"]


def test_an_end_without_two_healthy_seeds_says_so(made: "Made") -> None:
    plot = liveness(checked(made, end("low", None), end("high", 0.01)))
    assert plot is not None
    notes = [m for m in plot.charts[0].marks if isinstance(m, Note)]
    assert [(m.y, m.text) for m in notes] == [(0.0, "fewer than two healthy seeds")]


def test_without_noise_effects_are_in_the_scores_own_unit(made: "Made") -> None:
    plot = liveness(checked(made, end("low", 0.1, moves=True), noise=0.0))
    assert plot is not None
    assert "score's unit" in plot.charts[0].x.label
    assert not [m for m in plot.charts[0].marks if isinstance(m, Stripe)]


def test_a_search_is_no_check_and_no_calibration(made: "Made") -> None:
    report = made.report([made.evaluation(0, 0)])
    assert (liveness(report), baseline(report)) == (None, None)


def test_a_calibration_is_a_score_for_each_seed_about_their_mean(made: "Made") -> None:
    own = [made.evaluation(0, 0, seed=s, score=1.0 + s / 10) for s in (1, 2, 3)]
    own += [made.evaluation(0, 0, seed=4, status=Status.OOM)]
    plot = baseline(made.report(own, identity=made.identity(phase="calibration", tier=None)))
    assert plot is not None
    (chart,) = plot.charts
    assert chart.x.categories == ["1", "2", "3", "4"]
    (band,) = [m for m in chart.marks if isinstance(m, Stripe)]
    assert [band.low, band.high] == pytest.approx([1.0, 1.4])
    assert [m.value for m in chart.marks if isinstance(m, Rule)] == [pytest.approx(1.2)]
    scores, failed = [m for m in chart.marks if isinstance(m, Points)]
    assert list(scores.y) == [1.1, 1.2, 1.3]
    assert list(failed.x) == [3.0]
    assert "3 seeds: mean 1.2, standard deviation 0.1" in plot.description


def test_a_calibration_that_failed_whole_says_so(made: "Made") -> None:
    own = [made.evaluation(0, 0, seed=s, status=Status.OOM) for s in (1, 2)]
    plot = baseline(made.report(own, identity=made.identity(phase="calibration", tier=None)))
    assert plot is not None
    assert plot.charts[0].empty == "No score: 2 evaluations failed."
