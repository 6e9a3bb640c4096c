"""Each knob by itself, and all of them at once."""

from typing import TYPE_CHECKING

import pytest

from orchestrator.charts.chart import Band, Chart, Intervals, Line, Points, Rule
from orchestrator.report.plots.knobs import MOST_POINTS, marginals, paths
from orchestrator.report.plots.parallel import MOST_BEST, MOST_REST, parallel

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def lines(chart: Chart) -> dict[str, Line]:
    return {m.label: m for m in chart.marks if isinstance(m, Line)}


def test_a_path_is_the_favourite_and_a_deviation_about_it(made: "Made") -> None:
    plot = paths(made.whole())
    assert plot is not None
    chart = plot.charts[0]
    (band,) = [m for m in chart.marks if isinstance(m, Band)]
    assert list(lines(chart)["favourite"].y) == [0.5, 0.5, 0.5]
    assert list(band.low) == pytest.approx([0.3, 0.33, 0.36])
    assert list(band.high) == pytest.approx([0.7, 0.67, 0.64])


def test_baseline_and_recommendation_stand_at_their_places(made: "Made") -> None:
    plot = paths(made.whole())
    assert plot is not None
    for chart, baseline, chosen in zip(plot.charts, (0.5, 0.375), (0.75, 0.125), strict=True):
        assert [m.value for m in chart.marks if isinstance(m, Rule)] == [baseline]
        (diamond,) = [m for m in chart.marks if isinstance(m, Points) and m.role == "winner"]
        assert list(diamond.y) == [chosen]
    assert (
        "lr: baseline 0.01 in 1e-4 to 1, favourite after generation 2 0.01, recommended 0.1."
        in (plot.description)
    )


def test_a_knobs_axis_is_named_by_its_own_values(made: "Made") -> None:
    plot = paths(made.whole())
    assert plot is not None
    lr, depth = (list(chart.y.ticks) for chart in plot.charts)
    assert [name for _, name in lr] == ["1e\N{MINUS SIGN}4", "0.001", "0.01", "0.1", "1"]
    assert [at for at, _ in lr] == pytest.approx([0, 0.25, 0.5, 0.75, 1])
    assert depth == [(0.125, "2"), (0.375, "4"), (0.625, "6"), (0.875, "8")]


def test_of_one_generation_the_favourite_is_a_mark(made: "Made") -> None:
    report = made.report([made.evaluation(0, 0)], distribution=made.distribution(1))
    plot = paths(report)
    assert plot is not None
    (favourite,) = [m for m in plot.charts[0].marks if isinstance(m, Intervals)]
    assert (list(favourite.mean), favourite.is_horizontal) == ([0.5], False)


def test_without_a_distribution_the_favourites_of_the_ledger_are_the_path(made: "Made") -> None:
    own = [made.evaluation(g, 0) for g in range(2)]
    plot = paths(made.report(own))
    assert plot is not None
    assert list(lines(plot.charts[1])["favourite"].y) == [0.25, 0.25]
    assert not [m for m in plot.charts[1].marks if isinstance(m, Band)]


def test_of_thousands_of_candidates_as_many_are_shown_as_a_page_can_hold(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(100) for c in range(50)]
    plot = paths(made.report(own))
    assert plot is not None
    counts = [
        len(m.x)
        for chart in plot.charts
        for m in chart.marks
        if isinstance(m, Points) and m.role == "candidate"
    ]
    assert sum(counts) <= MOST_POINTS
    assert f"{counts[0]} of 5000 are shown" in plot.caption


def test_a_marginal_shows_its_means_with_errors_and_whether_it_stands(made: "Made") -> None:
    plot = marginals(made.whole())
    assert plot is not None
    assert [chart.title for chart in plot.charts] == ["lr: stands", "depth"]
    assert "1 of 2 knobs stands above its error, the others may be chance." in plot.caption
    (bins,) = [m for m in plot.charts[0].marks if isinstance(m, Intervals)]
    assert list(bins.mean) == [-0.1, 0.1]
    assert list(bins.low) == pytest.approx([-0.11, 0.09])
    assert "lr: 0.1 ± 0.01 per standard deviation, stands." in plot.description


def test_charts_of_marginals_are_to_one_scale(made: "Made") -> None:
    plot = marginals(made.whole())
    assert plot is not None
    assert len({(chart.y.low, chart.y.high) for chart in plot.charts}) == 1


def test_without_paid_evaluations_there_is_no_marginal(made: "Made") -> None:
    assert marginals(made.report()) is None
    assert paths(made.report()) is None
    assert parallel(made.report()) is None


def test_the_best_tenth_is_drawn_over_the_others(made: "Made") -> None:
    own = [made.evaluation(0, c, point=(c / 20, 0.5)) for c in range(20)]
    plot = parallel(made.report(own))
    assert plot is not None
    found = lines(plot.charts[0])
    assert list(found["best tenth"].x) == [0.0, 0.5, None, 0.05, 0.5, None]
    assert list(found["best tenth"].y) == [0.0, 1.0, None, 0.0, 1.0, None]
    assert list(found).index("best tenth") > list(found).index("other candidates")
    assert found["other candidates"].is_faint
    assert plot.charts[0].y.categories == ["lr (1e-4 to 1)", "depth (2 to 8)"]


def test_baseline_and_recommendation_are_drawn_over_all_candidates(made: "Made") -> None:
    plot = parallel(made.whole())
    assert plot is not None
    found = lines(plot.charts[0])
    assert list(found["baseline"].x) == [0.5, 0.375]
    assert list(found["recommended"].x) == [0.75, 0.125]
    assert list(found)[-2:] == ["baseline", "recommended"]


def test_a_thousand_candidates_are_no_grey_sheet(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(20) for c in range(50)]
    plot = parallel(made.report(own))
    assert plot is not None
    found = lines(plot.charts[0])
    drawn = {name: list(found[name].x).count(None) for name in ("best tenth", "other candidates")}
    assert drawn["best tenth"] <= MOST_BEST
    assert drawn["other candidates"] <= MOST_REST
    assert f"Of 1000 candidates with a score {sum(drawn.values())} are shown." in plot.caption


def test_scores_of_a_proxy_do_not_compete_with_full_ones(made: "Made") -> None:
    own = [made.evaluation(0, 0, is_short=True, score=0.0), made.evaluation(0, 1)]
    plot = parallel(made.report(own))
    assert plot is not None
    assert "The best tenth is 1 candidate, from 1.01 to 1.01." in plot.description
