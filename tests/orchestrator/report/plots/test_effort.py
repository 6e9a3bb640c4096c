"""Time and memory against what was expected."""

from typing import TYPE_CHECKING

from budgets.events import Status
from budgets.terms import Limits
from orchestrator.charts.chart import Plot, Points, Rule
from orchestrator.report.plots.effort import memory, times

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def rules(plot: Plot | None) -> dict[str, float]:
    assert plot is not None
    return {m.label: m.value for m in plot.charts[0].marks if isinstance(m, Rule)}


def groups(plot: Plot | None) -> dict[str, list[float | None]]:
    assert plot is not None
    return {m.label: list(m.y) for m in plot.charts[0].marks if isinstance(m, Points)}


def test_times_stand_against_the_calibration_and_the_limit(made: "Made") -> None:
    plot = times(made.report([made.evaluation(0, 0), made.evaluation(0, 1, seconds=1.5)]))
    assert rules(plot) == {
        "calibrated median": 1.0,
        "calibrated 90th percentile": 1.1,
        "limit": 2.0,
    }
    assert groups(plot) == {"": [1.0, 1.5]}
    assert plot is not None
    assert plot.charts[0].y.label == "wall clock (s)"
    assert "Calibrated median: 1 s." in plot.description


def test_a_limit_far_above_is_said_and_does_not_flatten_the_times(made: "Made") -> None:
    far = Limits(wall_seconds=600.0)
    plot = times(made.report([made.evaluation(0, 0)], limits=far))
    assert "limit" not in rules(plot)
    assert plot is not None
    assert "The limit, 10 min, lies far above the plot." in plot.caption


def test_what_takes_otherwise_long_is_marked_otherwise(made: "Made") -> None:
    own = [
        made.evaluation(0, 0),
        made.evaluation(0, 1, is_short=True, seconds=0.3),
        made.evaluation(0, 2, panel="winner", arm="mean", seconds=1.1),
        made.evaluation(0, 3, panel="winner", arm="plain attention", seconds=1.4),
        made.evaluation(0, 4, panel="rung", arm="mean", seconds=4.0),
        made.evaluation(0, 5, status=Status.TIMEOUT, seconds=2.0),
    ]
    assert groups(times(made.report(own))) == {
        "evaluation": [1.0],
        "evaluation by a proxy": [0.3],
        "compared on fresh seeds": [1.1],
        "with other FLOPs or settings": [1.4, 4.0],
        "failed or lost": [2.0],
    }


def test_times_of_many_sizes_are_on_a_logarithmic_scale(made: "Made") -> None:
    own = [made.evaluation(0, 0, seconds=0.01), made.evaluation(0, 1, seconds=100.0)]
    plot = times(made.report(own))
    assert plot is not None
    assert plot.charts[0].y.scale == "log"


def test_memory_is_in_the_unit_that_its_size_asks_for(made: "Made") -> None:
    small = memory(made.report([made.evaluation(0, 0)]))
    large = memory(made.report([made.evaluation(0, 0, peak_memory_bytes=6 << 30)]))
    assert small is not None
    assert large is not None
    assert (small.charts[0].y.label, groups(small)) == ("peak memory (MiB)", {"": [300.0]})
    assert (large.charts[0].y.label, groups(large)) == ("peak memory (GiB)", {"": [6.0]})
    assert rules(small) == {"most in the calibration": 290.0, "limit": 400.0}


def test_nearly_the_same_memory_is_nearly_a_line(made: "Made") -> None:
    own = [made.evaluation(0, c, peak_memory_bytes=(300 << 20) + c) for c in range(3)]
    plot = memory(made.report(own, noise=None, limits=None))
    assert plot is not None
    low, high = plot.charts[0].y.low, plot.charts[0].y.high
    assert low is not None
    assert high is not None
    assert high - low > 20


def test_nothing_measured_is_no_plot(made: "Made") -> None:
    assert times(made.report()) is None
    assert memory(made.report([made.evaluation(0, 0, peak_memory_bytes=0)])) is None
