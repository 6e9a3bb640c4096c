"""CMA-ES itself."""

from typing import TYPE_CHECKING

import pytest

from orchestrator.charts.chart import Bars, Cells, Line, Points, Rule
from orchestrator.report.plots.distribution import axes, correlations, spread

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def test_sigma_axis_ratio_and_deviations_are_courses_over_generations(made: "Made") -> None:
    plot = spread(made.whole())
    assert plot is not None
    sigma, ratio, deviations = plot.charts
    assert [list(m.y) for m in sigma.marks if isinstance(m, Line)] == [
        pytest.approx([0.2, 0.17, 0.14])
    ]
    assert [list(m.y) for m in ratio.marks if isinstance(m, Line)] == [[1.0, 2.0, 3.0]]
    assert [m.label for m in deviations.marks if isinstance(m, Line)] == ["lr", "depth"]
    assert [m.value for m in deviations.marks if isinstance(m, Rule)] == [0.2]
    assert all(chart.y.scale == "log" for chart in plot.charts)
    assert "After generation 2: sigma 0.14, axis ratio 3" in plot.description


def test_more_knobs_than_lines_can_be_told_apart_have_a_chart_each(made: "Made") -> None:
    knobs = made.report().knobs * 6
    report = made.whole().model_copy(
        update={"knobs": knobs, "distribution": made.distribution(knobs=12)}
    )
    plot = spread(report)
    assert plot is not None
    assert len(plot.charts) == 14


def test_one_generation_is_a_mark_and_no_line(made: "Made") -> None:
    report = made.whole().model_copy(update={"distribution": made.distribution(1)})
    plot = spread(report)
    assert plot is not None
    for chart in plot.charts:
        assert [m for m in chart.marks if isinstance(m, Points)]
        assert not [m for m in chart.marks if isinstance(m, Line)]


def test_correlations_leave_out_those_of_a_knob_with_itself(made: "Made") -> None:
    plot = correlations(made.whole())
    assert plot is not None
    (cells,) = plot.charts[0].marks
    assert isinstance(cells, Cells)
    assert cells.values == [[None, -0.75], [-0.75, None]]
    assert "beyond 0.40" in plot.caption
    assert "depth with lr -0.75" in plot.description
    assert "1 beyond 0.40, which chance shows." in plot.description


def test_axes_are_shares_of_the_variance_and_what_they_consist_of(made: "Made") -> None:
    plot = axes(made.whole())
    assert plot is not None
    shares, loadings = (chart.marks[0] for chart in plot.charts)
    assert isinstance(shares, Bars)
    assert list(shares.top) == pytest.approx([200 / 3, 100 / 3])
    assert isinstance(loadings, Cells)
    assert loadings.values == [[1.0, 0.0], [0.0, 1.0]]
    assert "The widest variance is 2 times the narrowest; on pure noise" in plot.caption
    assert "Axis 1, 66.7% of the variance: lr +1.00" in plot.description


@pytest.mark.parametrize(
    ("chance", "said"), [(1.5, "this is more."), (3.0, "this is not: these axes may be chance.")]
)
def test_axes_that_chance_makes_as_narrow_are_not_read(
    made: "Made", chance: float, said: str
) -> None:
    own = made.whole()
    assert own.distribution is not None
    other = own.distribution.model_copy(update={"condition_by_chance": chance})
    plot = axes(own.model_copy(update={"distribution": other}))
    assert plot is not None
    assert plot.caption.endswith(said)


def test_without_a_distribution_or_with_one_knob_there_is_nothing_to_go_together(
    made: "Made",
) -> None:
    none = made.report([made.evaluation(0, 0)])
    one = made.whole().model_copy(
        update={"knobs": made.report().knobs[:1], "distribution": made.distribution(knobs=1)}
    )
    assert (spread(none), correlations(none), axes(none)) == (None, None, None)
    assert (correlations(one), axes(one)) == (None, None)
    assert spread(one) is not None
