"""A campaign's conditions and effects."""

import pytest

from budgets.campaign.effects import CampaignReport, campaign_report
from budgets.campaign.matrix import Cell, Matrix
from budgets.terms import CampaignTerms, Condition, Factor
from orchestrator.charts.chart import Intervals, Note, Plot, Points, Rule, Stripe
from orchestrator.report.bars import bars_of
from orchestrator.report.plots.campaigns import both_of, conditions_of, effects_of


def campaign(
    names: list[str], seeds: int = 5, levels: tuple[str, ...] = (), *, control: bool = True
) -> CampaignReport:
    """Conditions, of one factor if there are levels; the last is a control, the first is worse."""
    conditions = tuple(
        Condition(
            name=name,
            settings={},
            knobs={},
            control=control and number == len(names) - 1,
            levels={"width": levels[number]} if number < len(levels) else {},
        )
        for number, name in enumerate(names)
    )
    terms = CampaignTerms(
        name="drawn",
        conditions=conditions,
        seeds=tuple(range(1, seeds + 1)),
        factors=(Factor(name="width", levels=levels),) if levels else (),
    )
    rows = tuple(
        tuple(
            Cell(status="ok", score=1.0 + 0.05 * (not n) + 0.003 * ((s * 7 + n) % 5))
            for s in terms.seeds
        )
        for n in range(len(names))
    )
    return campaign_report(Matrix(terms=terms, rows=rows), 0.05, is_over=True)


THREE = campaign(["a", "b", "base"])


def forest(plot: Plot, chart: int = 0) -> list[Intervals]:
    return [m for m in plot.charts[chart].marks if isinstance(m, Intervals)]


def test_a_condition_is_its_scores_with_mean_and_interval_in_its_row() -> None:
    (chart,) = conditions_of(THREE, "score").charts
    assert chart.y.categories == ["a", "b", "base"]
    (scores,) = [m for m in chart.marks if isinstance(m, Points)]
    assert len(scores.x) == 15
    assert [m.mean for m in forest(conditions_of(THREE, "score"))] == [
        [row.mean for row in THREE.rows]
    ]


def test_the_control_is_a_band_behind_all_rows() -> None:
    (chart,) = conditions_of(THREE, "score").charts
    (band,) = [m for m in chart.marks if isinstance(m, Stripe)]
    (rule,) = [m for m in chart.marks if isinstance(m, Rule)]
    assert (band.low, band.high) == (THREE.rows[2].lower, THREE.rows[2].upper)
    assert rule.value == THREE.rows[2].mean


def test_what_is_found_is_filled_and_what_may_be_chance_is_hollow() -> None:
    """Told apart without colour."""
    expected = {place: bar.difference.is_found for place, bar in enumerate(bars_of(THREE))}
    assert len(set(expected.values())) == 2
    found = {int(at or 0): m.is_filled for m in forest(effects_of(THREE, "score")) for at in m.at}
    assert found == expected


def test_a_campaign_of_conditions_shows_each_against_its_control() -> None:
    (chart,) = effects_of(THREE, "score").charts
    assert chart.y.categories == ["a", "b"]
    assert chart.x.label == "difference (% of the mean of base), left is better"


def test_a_factors_levels_are_shown_against_its_first() -> None:
    own = campaign(["w32", "w64", "w96", "base"], levels=("32", "64", "96"))
    (chart,) = effects_of(own, "score").charts
    assert chart.y.categories == ["width: 64 against 32", "width: 96 against 32"]


def test_a_difference_that_no_seed_gives_is_said_not_to_be_estimated() -> None:
    row = THREE.rows[0].comparisons[0]
    none = row.difference.model_copy(
        update={"mean": None, "lower": None, "upper": None, "percent": None, "seeds": 0}
    )
    first = THREE.rows[0].model_copy(
        update={"comparisons": (row.model_copy(update={"difference": none}),)}
    )
    own = THREE.model_copy(update={"rows": (first, *THREE.rows[1:])})
    (chart,) = effects_of(own, "score").charts
    assert [m.text for m in chart.marks if isinstance(m, Note)] == ["not estimated"]


@pytest.mark.parametrize("is_control", [True, False])
def test_both_are_one_picture_with_a_word_where_nothing_compares(*, is_control: bool) -> None:
    plot = both_of(campaign(["a", "b"], control=is_control), "score")
    empty = "" if is_control else "no factor and no control to compare by"
    assert [chart.empty for chart in plot.charts] == ["", empty]
    assert plot.title == "drawn: 2 conditions, 5 seeds"
