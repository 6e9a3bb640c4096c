"""Gains with their intervals, and the scores behind them."""

from typing import TYPE_CHECKING

from budgets.verdict.findings import Findings
from orchestrator.charts.chart import Intervals, Line, Note, Points, Rule
from orchestrator.report.model import ArmScores, Comparison
from orchestrator.report.plots.gains import confirmations, pairs

if TYPE_CHECKING:
    from tests.orchestrator.report.plots.conftest import Made


def compared(
    made: "Made", *rows: tuple[str, float | None, float | None, float | None, int]
) -> tuple[Comparison, ...]:
    """The first is decisive."""
    return tuple(
        Comparison(
            name=name, against="baseline", gain=made.gain(mean, low, high, n), is_decisive=not place
        )
        for place, (name, mean, low, high, n) in enumerate(rows)
    )


def test_a_gain_that_is_shown_is_filled_and_one_that_may_be_chance_is_hollow(made: "Made") -> None:
    own = compared(made, ("winner", 0.03, 0.01, 0.05, 8), ("luckiest", 0.02, -0.01, 0.05, 8))
    plot = confirmations(made.report(comparisons=own))
    assert plot is not None
    found = [m for m in plot.charts[0].marks if isinstance(m, Intervals)]
    assert [(m.is_filled, list(m.at), m.role) for m in found] == [
        (True, [0], "winner"),
        (False, [1], "series1"),
    ]
    assert [list(m.low) for m in found] == [[1.0], [-1.0]]
    assert (
        "winner against baseline: 3% better (gain +1 to +5%) on 8 pairs, beyond chance."
        in plot.description
    )


def test_a_loss_that_is_more_than_chance_is_not_called_chance(made: "Made") -> None:
    own = compared(made, ("winner", 0.03, 0.01, 0.05, 8), ("off", -0.015, -0.027, -0.004, 5))
    plot = confirmations(made.report(comparisons=own))
    assert plot is not None
    found = [m for m in plot.charts[0].marks if isinstance(m, Intervals)]
    assert [m.is_filled for m in found] == [True, True]
    said = "off against baseline: 1.5% worse (gain -2.7 to -0.4%) on 5 pairs, beyond chance."
    assert said in plot.description


def test_the_gain_that_is_asked_is_a_line_beside_no_gain(made: "Made") -> None:
    own = compared(made, ("winner", 0.03, 0.01, 0.05, 8))
    findings = Findings.model_construct(asked=0.01)  # type: ignore[call-arg]  # no plot asks more
    report = made.report(comparisons=own)
    budget = report.budget.model_copy(update={"findings": findings})
    plot = confirmations(report.model_copy(update={"budget": budget}))
    assert plot is not None
    rules = [m for m in plot.charts[0].marks if isinstance(m, Rule)]
    assert [(m.value, m.label) for m in rules] == [(0.0, ""), (1.0, "asked of a Go: 1%")]


def test_what_is_not_compared_with_the_baseline_says_with_what(made: "Made") -> None:
    own = Comparison(
        name="winner", against="incumbent", gain=made.gain(0.0, None, None, 1), is_decisive=False
    )
    plot = confirmations(made.report(comparisons=(own,)))
    assert plot is not None
    assert plot.charts[0].y.categories == ["winner over incumbent, n = 1"]


def test_an_interval_of_two_seeds_does_not_hide_the_others(made: "Made") -> None:
    own = compared(made, ("winner", 0.03, 0.01, 0.05, 8), ("rung", 0.02, -9.0, 9.0, 2))
    plot = confirmations(made.report(comparisons=own))
    assert plot is not None
    x = plot.charts[0].x
    assert x.low is not None
    assert x.high is not None
    assert -2 < x.low < 0
    assert 5 < x.high < 10


def test_a_comparison_without_a_pair_says_so(made: "Made") -> None:
    own = compared(made, ("winner", None, None, None, 0))
    plot = confirmations(made.report(comparisons=own))
    assert plot is not None
    assert [m.text for m in plot.charts[0].marks if isinstance(m, Note)] == ["no pair with a score"]
    assert not [m for m in plot.charts[0].marks if isinstance(m, Intervals)]


def test_without_a_comparison_there_is_no_plot(made: "Made") -> None:
    assert confirmations(made.report()) is None
    assert pairs(made.report()) is None


def test_scores_of_one_seed_are_joined_from_arm_to_arm(made: "Made") -> None:
    plot = pairs(made.whole())
    assert plot is not None
    (chart,) = plot.charts
    assert chart.title == "Winner on fresh seeds"
    assert chart.x.categories == ["baseline", "winner (mean)"]
    lines = [list(m.y) for m in chart.marks if isinstance(m, Line)]
    assert lines == [[1.0, 0.9], [1.01, 0.92], [0.99, 0.88]]
    (mean,) = [m for m in chart.marks if isinstance(m, Points) and m.label == "mean over seeds"]
    assert list(mean.y) == [1.0, 0.9]


def test_arms_without_a_seed_in_common_are_not_joined(made: "Made") -> None:
    arms = (
        ArmScores(panel="rung", number=0, name="baseline", scores={1: 1.0}),
        ArmScores(panel="rung", number=0, name="mean", scores={1: None, 2: 1.0}),
    )
    assert pairs(made.report(arms=arms)) is None
