"""Loss curves."""

from typing import TYPE_CHECKING

from orchestrator.charts.chart import Line, Points
from orchestrator.report.model import Curve
from orchestrator.report.plots.losses import MOST_STEPS, curves

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def curve(name: str, steps: int = 3, seed: int = 1, quantity: str = "train loss") -> Curve:
    return Curve(
        name=name,
        seed=seed,
        quantity=quantity,
        steps=tuple(float(n) for n in range(1, steps + 1)),
        values=tuple(3.0 - n / steps for n in range(steps)),
    )


def test_each_configuration_is_a_line_named_once(made: "Made") -> None:
    own = (curve("baseline"), curve("baseline", seed=2), curve("recommended"), curve("best of all"))
    plot = curves(made.report(curves=own))
    assert plot is not None
    lines = [m for m in plot.charts[0].marks if isinstance(m, Line)]
    assert [(m.label, m.role) for m in lines] == [
        ("baseline", "baseline"),
        ("", "baseline"),
        ("recommended", "winner"),
        ("best of all", "best"),
    ]
    assert list(lines[0].x) == [1.0, 2.0, 3.0]
    assert "baseline, seed 2: train loss from 3 at step 1 to 2.3333 at step 3" in plot.description


def test_conditions_of_a_campaign_are_told_apart(made: "Made") -> None:
    plot = curves(made.report(curves=tuple(curve(f"condition {n}") for n in range(6))))
    assert plot is not None
    lines = [m for m in plot.charts[0].marks if isinstance(m, Line)]
    assert len({line.role for line in lines}) == 6


def test_each_quantity_has_a_chart_and_many_steps_a_logarithmic_scale(made: "Made") -> None:
    own = (curve("baseline"), curve("baseline", 500, quantity="val bpb"))
    plot = curves(made.report(curves=own))
    assert plot is not None
    assert [(c.y.label, c.x.scale) for c in plot.charts] == [
        ("train loss", "linear"),
        ("val bpb", "log"),
    ]


def test_a_long_curve_is_thinned_and_a_single_value_is_a_mark(made: "Made") -> None:
    plot = curves(made.report(curves=(curve("baseline", 5000), curve("recommended", 1))))
    assert plot is not None
    line, mark = plot.charts[0].marks
    assert isinstance(line, Line)
    assert len(line.x) <= MOST_STEPS
    assert isinstance(mark, Points)


def test_a_run_that_left_no_curve_has_no_such_plot(made: "Made") -> None:
    assert curves(made.report()) is None
