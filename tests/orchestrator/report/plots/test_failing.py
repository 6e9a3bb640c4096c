"""Failures by cause."""

from typing import TYPE_CHECKING

from orchestrator.charts.chart import Bars
from orchestrator.report.model import FailureGroup
from orchestrator.report.plots.failing import MOST_CAUSES, failures

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def group(what: str, attempts: int, final: int, whose: str = "configuration") -> FailureGroup:
    return FailureGroup(
        whose=whose,
        what=what,
        attempts=attempts,
        final=final,
        places=(),
        example="",
        log=(),
        log_from="",
    )


def test_a_bar_is_final_failures_and_those_that_were_tried_again(made: "Made") -> None:
    own = (group("out of memory", 5, 2), group("the worker died", 3, 0, "infrastructure"))
    plot = failures(made.report(failures=own))
    assert plot is not None
    (chart,) = plot.charts
    assert chart.y.categories == ["out of memory", "the worker died"]
    found = {m.label: m for m in chart.marks if isinstance(m, Bars)}
    assert list(found) == ["final: the configuration's doing", "retried"]
    assert list(found["final: the configuration's doing"].top) == [2.0]
    again = found["retried"]
    assert (list(again.x), list(again.base), list(again.top)) == (
        [0.0, 1.0],
        [2.0, 0.0],
        [5.0, 3.0],
    )
    assert "the worker died (infrastructure): 3 attempts, 0 of them final." in plot.description


def test_rare_causes_are_counted_where_there_are_too_many(made: "Made") -> None:
    own = tuple(group(f"cause {n}", 1, 1) for n in range(MOST_CAUSES + 2))
    plot = failures(made.report(failures=own))
    assert plot is not None
    assert len(plot.charts[0].y.categories) == MOST_CAUSES
    assert "2 rarer causes left out." in plot.caption


def test_a_run_without_failures_has_no_such_plot(made: "Made") -> None:
    assert failures(made.report()) is None
