"""Device time, and the currencies."""

from typing import TYPE_CHECKING

from budgets.report.model import Balance
from orchestrator.charts.chart import Bars, Line
from orchestrator.report.model import ArmScores, Beside, Report
from orchestrator.report.plots.spending import BESIDE, budget, currencies

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def bars(report: Report) -> dict[str, Bars]:
    plot = budget(report)
    assert plot is not None
    return {m.role: m for m in plot.charts[0].marks if isinstance(m, Bars)}


def test_useful_wasted_and_idle_time_stand_upon_each_other(made: "Made") -> None:
    own = [made.evaluation(g, 0) for g in range(2)]
    generations = tuple(
        made.generation(
            g,
            own[g : g + 1],
            useful_device_hours=4.0,
            wasted_device_hours=1.0,
            idle_device_hours=2.0,
        )
        for g in range(2)
    )
    found = bars(made.report(own, generations=generations))
    assert [(list(found[r].base), list(found[r].top)) for r in ("useful", "wasted", "idle")] == [
        ([0.0, 0.0], [4.0, 4.0]),
        ([4.0, 4.0], [5.0, 5.0]),
        ([5.0, 5.0], [7.0, 7.0]),
    ]


def test_start_up_and_comparison_stand_beside_the_generations_by_name(made: "Made") -> None:
    beside = tuple(
        Beside(name=n, useful_device_hours=u, wasted_device_hours=0.0, idle_device_hours=1.0)
        for n, u in (("start-up", 0.0), ("comparison", 3.0))
    )
    report = made.report([made.evaluation(0, 0)], beside=beside)
    plot = budget(report)
    assert plot is not None
    names = [name for _, name in plot.charts[0].x.ticks]
    assert names == ["0", "start-up", "comparison"]
    places = [place for place, _ in plot.charts[0].x.ticks]
    assert list(bars(report)["idle"].x) == places
    assert "Comparison: 4 device-hours." in plot.description


def test_what_was_planned_is_a_line_over_its_generations(made: "Made") -> None:
    plot = budget(made.report([made.evaluation(0, 0)]))
    assert plot is not None
    (line,) = [m for m in plot.charts[0].marks if isinstance(m, Line)]
    assert (line.label, list(line.x), list(line.y)) == ("planned", [-0.5, 0.5], [30.0, 30.0])
    assert plot.charts[0].y.label == "device-minutes"


def test_what_was_compared_beside_a_generation_is_not_in_its_plan(made: "Made") -> None:
    own = [made.evaluation(0, 0)]
    generations = (made.generation(0, own, planned_device_hours=2.0, useful_device_hours=3.0),)
    arm = ArmScores(panel="reference", number=0, name="baseline", scores={7: 1.0})
    alone, beside = (
        budget(made.report(own, generations=generations, arms=arms)) for arms in ((), (arm,))
    )
    assert alone is not None
    assert beside is not None
    assert BESIDE not in alone.caption
    assert BESIDE in beside.caption


def test_a_worst_case_in_flight_does_not_flatten_what_was_paid(made: "Made") -> None:
    own = [made.evaluation(0, 0)]
    one = made.generation(0, own, reserved_device_hours=100.0)
    plot = budget(made.report(own, generations=(one,)))
    assert plot is not None
    assert plot.charts[0].y.high is not None
    assert plot.charts[0].y.high < 2
    assert "What is reserved, 100 device-hours in the worst case" in plot.caption


def test_a_run_that_paid_nothing_has_no_such_plot(made: "Made") -> None:
    assert budget(made.report()) is None


def test_currencies_are_shares_of_their_caps_and_those_without_one_say_so(made: "Made") -> None:
    plot = currencies(made.report())
    assert plot is not None
    (chart,) = plot.charts
    assert chart.y.categories == ["evaluations: 12 of 20", "device-hours: 30 min, no cap"]
    found = {m.label: (list(m.base), list(m.top)) for m in chart.marks if isinstance(m, Bars)}
    assert found == {
        "spent": ([0.0], [60.0]),
        "reserved": ([60.0], [70.0]),
        "free": ([70.0], [100.0]),
    }
    assert "Device-hours: 30 min spent, 15 min reserved, no cap." in plot.description


def test_what_went_beyond_its_cap_is_seen_whole(made: "Made") -> None:
    report = made.report()
    over = (Balance(currency="hours open", spent=3.0, reserved=0.0, free=0.0, cap=2.0),)
    plot = currencies(
        report.model_copy(update={"budget": report.budget.model_copy(update={"balances": over})})
    )
    assert plot is not None
    assert plot.charts[0].x.high == 150.0


def test_without_any_cap_a_word_stands_in_place_of_the_bars(made: "Made") -> None:
    report = made.report()
    free = tuple(b for b in report.budget.balances if b.cap is None)
    plot = currencies(
        report.model_copy(update={"budget": report.budget.model_copy(update={"balances": free})})
    )
    assert plot is not None
    assert plot.charts[0].empty == "No currency has a cap."
    assert "Device-hours: 30 min spent" in plot.description
