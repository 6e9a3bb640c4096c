"""What each device did when."""

from typing import TYPE_CHECKING

from budgets.events import Status
from orchestrator.charts.chart import Points, Rule, Spans
from orchestrator.report.model import InFlight, Report
from orchestrator.report.plots.devices import MOST_ROWS, by_host, natural, stragglers, timeline

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def spans(report: Report) -> dict[str, Spans]:
    plot = timeline(report)
    assert plot is not None
    return {m.label: m for m in plot.charts[0].marks if isinstance(m, Spans)}


def rows(report: Report) -> list[str]:
    plot = timeline(report)
    assert plot is not None
    return list(plot.charts[0].y.categories)


def test_an_attempt_is_a_bar_in_its_devices_row(made: "Made") -> None:
    own = [made.evaluation(0, c, device=f"worker {2 - c % 2}") for c in range(3)]
    report = made.report(own)
    assert rows(report) == ["worker 1", "worker 2"]
    healthy = spans(report)["healthy"]
    assert list(healthy.row) == [1.0, 0.0, 1.0]
    assert list(healthy.start) == [0.0, 1.0, 2.0]
    assert list(healthy.end) == [1.0, 2.0, 3.0]


def test_failed_lost_and_compared_attempts_are_told_apart(made: "Made") -> None:
    own = [
        made.evaluation(0, 0),
        made.evaluation(0, 1, status=Status.OOM),
        made.evaluation(0, 2, status=Status.LOST, is_final=False),
        made.evaluation(0, 3, panel="winner", arm="mean"),
    ]
    found = spans(made.report(own))
    assert [(label, len(m.row)) for label, m in found.items()] == [
        ("healthy", 1),
        ("healthy, of the comparison", 1),
        ("failed", 1),
        ("lost or cancelled", 1),
    ]
    assert found["failed"].tips == ["generation 0, candidate 1, seed 7: oom in 1 s"]


def test_a_straggler_took_over_twice_the_median_of_its_like(made: "Made") -> None:
    own = [made.evaluation(0, c) for c in range(6)]
    slow = made.evaluation(0, 6, seconds=2.5, ended=9.0)
    longer = [
        made.evaluation(0, c, panel="rung", arm="mean", seconds=4.0, began=20.0) for c in range(4)
    ]
    assert stragglers([*own, slow, *longer]) == [slow]
    plot = timeline(made.report([*own, slow, *longer]))
    assert plot is not None
    (mark,) = [m for m in plot.charts[0].marks if isinstance(m, Points)]
    assert (list(mark.x), mark.label) == ([9.0], "took over 2 x the median")
    assert "1 straggler" in plot.description


def test_what_is_in_flight_reaches_beyond_the_last_record(made: "Made") -> None:
    flight = InFlight(
        panel=None,
        generation=1,
        candidate=2,
        arm="",
        seed=7,
        attempt=1,
        began=5.0,
        reserved_seconds=60.0,
    )
    report = made.report([made.evaluation(0, 0)], in_flight=(flight,))
    assert rows(report) == ["worker 1", "generation 1, candidate 2"]
    (end,) = spans(report)["in flight"].end
    assert end > 30.0  # when its session ended
    assert timeline(made.report(in_flight=(flight,))) is not None


def test_of_hundreds_of_devices_those_with_failures_and_the_most_idle_are_shown(
    made: "Made",
) -> None:
    own = [
        made.evaluation(0, n, device=f"gpu {n}", began=0.0, ended=100.0 - n % 2) for n in range(200)
    ]
    own[150] = made.evaluation(0, 150, device="gpu 150", began=0.0, ended=100.0, status=Status.NAN)
    report = made.report(own)
    shown = rows(report)
    assert len(shown) == MOST_ROWS
    assert "gpu 150" in shown
    assert all(int(name.split()[1]) % 2 for name in shown if name != "gpu 150")
    assert shown == sorted(shown, key=by_host)
    plot = timeline(report)
    assert plot is not None
    assert "140 more devices are left out" in plot.caption


def test_a_session_that_took_the_run_up_again_is_a_rule(made: "Made") -> None:
    sessions = (made.session(0, 0.0), made.session(1, 30.0), made.session(2, 50.0))
    report = made.report([made.evaluation(0, 0)], identity=made.identity(sessions=sessions))
    plot = timeline(report)
    assert plot is not None
    rules = [(m.value, m.label) for m in plot.charts[0].marks if isinstance(m, Rule)]
    assert rules == [(30.0, "resumed"), (50.0, "")]


def test_names_are_in_the_order_of_their_numbers() -> None:
    assert sorted(["w10", "w2", "a", "2 on h"], key=natural) == ["2 on h", "a", "w2", "w10"]


def test_rows_are_by_host_and_leave_out_the_domain_that_all_share(made: "Made") -> None:
    hosts = ("n10.example.org", "n9.example.org")
    own = [made.evaluation(0, n, device=f"{n} on {host}") for host in hosts for n in (0, 1)]
    assert rows(made.report(own)) == ["0 on n9", "1 on n9", "0 on n10", "1 on n10"]


def test_a_run_without_an_attempt_has_no_such_plot(made: "Made") -> None:
    assert timeline(made.report()) is None
