"""Every plot of every kind of run: drawn both ways, said in words, always the same."""

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

import pytest

from orchestrator.charts.chart import Plot
from orchestrator.charts.figure import picture
from orchestrator.charts.svg import svg
from orchestrator.records.recorded import Result
from orchestrator.report import collect
from orchestrator.report.model import Report
from orchestrator.report.plots import PLOTS, plots

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made

GOLDEN = Path(__file__).parents[3] / "golden"

LEDGERS = sorted(path.name for path in GOLDEN.glob("schema_*"))

HOSTILE = "</svg><script>alert(1)</script>\x1b[2J $x^2$ \u202e %s {0} \ud800 & \"'"

OF_ANY_RUN = {"budget", "currencies", "timeline", "times"}


def is_drawn(plot: Plot) -> None:
    """Whole, on a page."""
    ET.fromstring(svg(plot))  # noqa: S314 - what was just written here


def is_a_picture(plot: Plot) -> None:
    """A file, without a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert picture(plot).startswith(b"\x89PNG")


def in_order(report: Report) -> list[str]:
    """Names of the plots that the run has, each checked to be drawn and said."""
    found = plots(report)
    for plot in found:
        assert plot.title
        assert plot.caption
        assert len(plot.description) > 20
        is_drawn(plot)
    return [plot.name for plot in found]


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("name", PLOTS)
def test_each_plot_of_a_search_is_a_picture_too(made: "Made", name: str) -> None:
    plot = PLOTS[name].draw(made.whole())
    if plot is not None:
        is_a_picture(plot)


@pytest.mark.slow
@pytest.mark.parametrize("name", LEDGERS)
def test_each_plot_of_every_stored_ledger_is_a_picture_too(name: str) -> None:
    for plot in plots(collect.report(GOLDEN / name)):
        is_a_picture(plot)


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("name", ["schema_1_check", "schema_5_campaign"])
def test_what_a_check_and_a_campaign_found_are_pictures_too(name: str) -> None:
    for plotted in ("liveness", "conditions", "effects"):
        plot = PLOTS[plotted].draw(collect.report(GOLDEN / name))
        if plot is not None:
            is_a_picture(plot)


def test_a_search_that_is_over_has_every_plot_of_a_search(made: "Made") -> None:
    names = in_order(made.whole())
    others = {"conditions", "effects", "liveness", "baseline"}
    assert names == [name for name in PLOTS if name not in others]


def test_plots_are_named_as_they_are_asked_for(made: "Made") -> None:
    report = made.whole()
    for name, kind in PLOTS.items():
        plot = kind.draw(report)
        assert plot is None or plot.name == name


def test_a_plan_of_which_nothing_has_begun_shows_its_budget_alone(made: "Made") -> None:
    assert in_order(made.report()) == ["currencies"]


def test_a_search_of_one_candidate_is_drawn(made: "Made") -> None:
    report = made.report([made.evaluation(0, 0)])
    assert in_order(report) == [
        *("scores", "budget", "currencies", "paths", "parallel", "timeline", "times", "memory"),
    ]


@pytest.mark.parametrize("name", LEDGERS)
def test_every_stored_ledger_has_plots(name: str) -> None:
    names = in_order(collect.report(GOLDEN / name))
    assert set(names) >= OF_ANY_RUN


def test_a_search_with_every_panel_has_plots(confirmed_run: Path) -> None:
    assert {"scores", "confirmations", "pairs", "spread"} <= set(
        in_order(collect.report(confirmed_run))
    )


def test_a_search_of_failures_only_has_plots(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    settings = {"failure_rate": 1.0}
    run = run_search(tmp_path, settings=settings, assumed_seconds=1.0)
    names = in_order(collect.report(run.directory))
    assert set(names) >= OF_ANY_RUN | {"scores", "failures"}
    assert "parallel" not in names


@pytest.mark.needs("matplotlib")
def test_whatever_names_hold_steers_nothing(made: "Made") -> None:
    report = made.whole(HOSTILE)
    knobs = tuple(k.model_copy(update={"name": f"{k.name}{HOSTILE}"}) for k in report.knobs)
    own = tuple(
        e.model_copy(update={"device": HOSTILE, "arm": HOSTILE}) for e in report.evaluations
    )
    failures = tuple(f.model_copy(update={"what": HOSTILE}) for f in report.failures)
    arms = tuple(a.model_copy(update={"name": HOSTILE}) for a in report.arms[1:])
    comparisons = tuple(c.model_copy(update={"name": HOSTILE}) for c in report.comparisons)
    curves = tuple(c.model_copy(update={"name": HOSTILE}) for c in report.curves)
    marginals = tuple(
        m.model_copy(update={"knob": k.name}) for m, k in zip(report.marginals, knobs, strict=True)
    )
    update = {
        "knobs": knobs,
        "evaluations": own,
        "failures": failures,
        "arms": (report.arms[0], *arms),
        "comparisons": comparisons,
        "curves": curves,
        "marginals": marginals,
    }
    found = plots(report.model_copy(update=update))
    assert len(found) == len(plots(report))
    for plot in found:
        is_drawn(plot)
        assert "<script" not in svg(plot)
        assert "\x1b" not in svg(plot)
    for plot in found[:3]:
        is_a_picture(plot)


def test_the_same_run_is_the_same_plots(confirmed_run: Path) -> None:
    first, second = ([svg(plot) for plot in plots(collect.report(confirmed_run))] for _ in range(2))
    assert first == second


def test_descriptions_hold_the_numbers_that_the_plots_show(confirmed_run: Path) -> None:
    report = collect.report(confirmed_run)
    said = {plot.name: plot.description for plot in plots(report)}
    last = next(g for g in reversed(report.generations) if g.best_so_far is not None)
    assert f"Best so far: {last.best_so_far:.5g}." in said["scores"]
    assert f"{len(report.evaluations)} attempts" in said["timeline"]
    assert all(view.name in said["paths"] for view in report.knobs)
    decisive = next(c for c in report.comparisons if c.is_decisive)
    assert f"on {decisive.gain.pairs} pairs" in said["confirmations"]


def test_plots_of_thousands_of_evaluations_are_no_megabytes(made: "Made") -> None:
    own = [made.evaluation(g, c) for g in range(90) for c in range(24)]
    report = made.whole().model_copy(
        update={"evaluations": tuple(own), "generations": made.report(own).generations}
    )
    assert sum(len(svg(plot)) for plot in plots(report)) < 700_000
