"""Effects against numbers worked out by hand."""

from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from budgets.effects import CampaignReport, Effect, campaign_report
from budgets.events import Status
from budgets.matrix import Matrix
from budgets.plan import CampaignTerms
from budgets.stats import detectable

if TYPE_CHECKING:
    from tests.budgets.campaign.conftest import Campaigns

AB = {"A": ("a0", "a1"), "B": ("b0", "b1")}
TWO_BY_TWO = {
    "a0,b0": (10.0, 11.0, 12.0),
    "a0,b1": (9.0, 10.5, 11.5),
    "a1,b0": (8.0, 9.0, 10.0),
    "a1,b1": (5.0, 7.5, 8.5),
}
"""By seed: A -3, -2.5, -2.5; B -2, -1, -1; AB -2, -1, -1. The means are 11, 10 1/3, 9, 7."""

LOOSE = 0.2
"""Of what is found may be luck: enough for three seeds to show anything."""


def report_of(matrix: Matrix, rate: float = LOOSE, *, is_over: bool = True) -> CampaignReport:
    return campaign_report(matrix, rate, is_over=is_over)


def effect(report: CampaignReport, *levels: str) -> Effect:
    """The one of these levels."""
    return next(own for own in report.effects if own.levels == levels)


def test_a_main_effect_is_the_difference_of_the_levels_means(campaigns: "Campaigns") -> None:
    own = effect(report_of(campaigns.of(TWO_BY_TWO, AB)), "a1").difference
    assert own.mean == pytest.approx(-8 / 3)
    assert own.sd == pytest.approx(0.288675, abs=1e-6)
    # error sd / sqrt(3) = 1/6; Student's t of 2 degrees of freedom: 4.302653
    assert own.lower == pytest.approx(-8 / 3 - 4.302653 / 6, abs=1e-6)
    assert own.upper == pytest.approx(-8 / 3 + 4.302653 / 6, abs=1e-6)


def test_an_interaction_is_the_difference_of_differences(campaigns: "Campaigns") -> None:
    both = effect(report_of(campaigns.of(TWO_BY_TWO, AB)), "a1", "b1")
    assert both.is_interaction
    assert both.difference.mean == pytest.approx(-4 / 3)  # of -2, -1, -1
    assert both.difference.sd == pytest.approx(0.577350, abs=1e-6)
    assert both.difference.chance == pytest.approx(0.0572, abs=1e-4)  # t = -4 on 2


def test_a_two_by_two_has_two_main_effects_and_one_interaction(campaigns: "Campaigns") -> None:
    report = report_of(campaigns.of(TWO_BY_TWO, AB))
    assert [own.levels for own in report.effects] == [("a1",), ("b1",), ("a1", "b1")]


def test_percents_are_of_the_controls_mean(campaigns: "Campaigns") -> None:
    rows = {**TWO_BY_TWO, "default_base": (19.0, 20.0, 21.0)}
    report = report_of(campaigns.of(rows, AB, controls=["default_base"]))
    assert (report.reference, report.reference_of) == (20.0, "default_base")
    assert effect(report, "a1").difference.percent == pytest.approx(-100 * 8 / 3 / 20)


def test_percents_without_a_control_are_of_the_mean_of_all_conditions(
    campaigns: "Campaigns",
) -> None:
    report = report_of(campaigns.of(TWO_BY_TWO, AB))
    assert report.reference == pytest.approx((11 + 31 / 3 + 9 + 7) / 4)
    assert report.reference_of == "all conditions"


def test_percents_are_of_the_next_control_where_the_first_has_no_score(
    campaigns: "Campaigns",
) -> None:
    rows = {"x": (1.0, 1.1), "a_base": (Status.OOM, Status.OOM), "b_base": (2.0, 2.2)}
    report = report_of(campaigns.of(rows, controls=["a_base", "b_base"]))
    assert (report.reference, report.reference_of) == (2.1, "b_base")


def test_of_three_levels_each_is_compared_with_the_first(campaigns: "Campaigns") -> None:
    rows = {"a0": (4.0, 4.0), "a1": (3.0, 2.0), "a2": (4.5, 5.5)}
    report = report_of(campaigns.of(rows, {"A": ("a0", "a1", "a2")}))
    assert [(own.levels, own.against) for own in report.effects] == [
        (("a1",), ("a0",)),
        (("a2",), ("a0",)),
    ]
    assert [own.difference.mean for own in report.effects] == [-1.5, 1.0]


def test_three_levels_are_averaged_over_the_other_factor(campaigns: "Campaigns") -> None:
    rows = {
        "a0,b0": (4.0,), "a0,b1": (6.0,),
        "a1,b0": (3.0,), "a1,b1": (3.0,),
        "a2,b0": (5.0,), "a2,b1": (9.0,),
    }  # fmt: skip
    report = report_of(campaigns.of(rows, {"A": ("a0", "a1", "a2"), "B": ("b0", "b1")}))
    assert effect(report, "a1").difference.mean == -2.0  # 3 - 5
    assert effect(report, "a2").difference.mean == 2.0  # 7 - 5
    assert effect(report, "b1").difference.mean == 2.0  # 6 - 4
    assert effect(report, "a2", "b1").difference.mean == 2.0  # (9 - 6) - (5 - 4)


def test_a_combination_with_a_failed_condition_is_left_out_on_both_sides(
    campaigns: "Campaigns",
) -> None:
    rows = {**TWO_BY_TWO, "a1,b1": (Status.OOM, Status.OOM, Status.OOM)}
    report = report_of(campaigns.of(rows, AB))
    own = effect(report, "a1")
    assert (own.averaged, own.combinations) == (1, 2)
    assert own.difference.mean == -2.0  # with b0 alone
    both = effect(report, "a1", "b1")
    assert (both.averaged, both.difference.mean) == (0, None)


def test_a_condition_that_nobody_planned_is_as_one_that_failed(campaigns: "Campaigns") -> None:
    rows = {name: scores for name, scores in TWO_BY_TWO.items() if name != "a1,b1"}
    own = effect(report_of(campaigns.of(rows, AB)), "b1")
    assert (own.averaged, own.combinations) == (1, 2)
    assert own.difference.mean == pytest.approx((-1 - 0.5 - 0.5) / 3)


def test_a_seed_that_one_condition_failed_on_is_left_out(campaigns: "Campaigns") -> None:
    rows = {**TWO_BY_TWO, "a1,b1": (5.0, Status.NAN, 8.5)}
    own = effect(report_of(campaigns.of(rows, AB)), "a1").difference
    assert (own.seeds, own.mean) == (2, -2.75)


def test_a_condition_that_mostly_fails_does_not_take_the_seeds_of_all_effects(
    campaigns: "Campaigns",
) -> None:
    rows = {**TWO_BY_TWO, "a1,b1": (5.0, Status.NAN, Status.NAN)}
    own = effect(report_of(campaigns.of(rows, AB)), "a1")
    assert (own.averaged, own.difference.seeds, own.difference.mean) == (1, 3, -2.0)


def test_one_seed_gives_effects_without_interval_or_chance(campaigns: "Campaigns") -> None:
    rows = {name: scores[:1] for name, scores in TWO_BY_TWO.items()}
    own = effect(report_of(campaigns.of(rows, AB)), "a1").difference
    assert (own.mean, own.lower, own.upper, own.chance) == (-3.0, None, None, None)
    assert not own.is_found


def test_conditions_that_tie_have_no_effect(campaigns: "Campaigns") -> None:
    rows = dict.fromkeys(TWO_BY_TWO, (1.5, 1.25, 1.75))
    report = report_of(campaigns.of(rows, AB))
    assert {own.difference.mean for own in report.effects} == {0.0}
    assert {own.difference.chance for own in report.effects} == {1.0}
    assert report.found == ()


def test_what_rounding_leaves_of_a_tie_is_no_effect(campaigns: "Campaigns") -> None:
    rows = {"a0": (0.1 + 0.2, 0.7), "a1": (0.3, 0.1 * 7)}
    report = report_of(campaigns.of(rows, {"A": ("a0", "a1")}))
    assert report.effects[0].difference.chance == 1.0


def test_what_rounding_adds_to_an_effect_is_no_spread(campaigns: "Campaigns") -> None:
    rows = {"a0": (0.1, 0.2, 0.3), "a1": (0.1 + 0.1, 0.2 + 0.1, 0.3 + 0.1)}
    own = report_of(campaigns.of(rows, {"A": ("a0", "a1")})).effects[0].difference
    assert own.sd == 0.0
    assert own.lower == own.upper == pytest.approx(0.1)


def test_an_effect_the_same_on_every_seed_is_sure(campaigns: "Campaigns") -> None:
    rows = {"a0": (2.0, 3.0), "a1": (1.0, 2.0)}
    own = report_of(campaigns.of(rows, {"A": ("a0", "a1")})).effects[0].difference
    assert (own.mean, own.lower, own.upper, own.chance, own.is_found) == (-1, -1, -1, 0, True)


def test_effects_are_believed_together_only(campaigns: "Campaigns") -> None:
    """By hand: chances 0.0039 (A), 0.0572 (B and AB); Benjamini-Hochberg at 5 % asks 0.0167,
    0.0333, 0.05, at 10 % takes all three."""
    strict = report_of(campaigns.of(TWO_BY_TWO, AB), 0.05)
    assert [own.levels for own in strict.found] == [("a1",)]
    assert len(report_of(campaigns.of(TWO_BY_TWO, AB), 0.1).found) == 3


def test_nothing_is_found_before_the_campaign_is_over(campaigns: "Campaigns") -> None:
    report = report_of(campaigns.of(TWO_BY_TWO, AB), is_over=False)
    assert report.found == ()
    assert effect(report, "a1").difference.mean == pytest.approx(-8 / 3)


def test_a_row_has_mean_sd_and_interval_over_its_healthy_seeds(campaigns: "Campaigns") -> None:
    rows = {"x": (1.0, 2.0, Status.NAN, 3.0), "y": (None, None, 5.0, None)}
    x, y = report_of(campaigns.of(rows), is_over=False).rows
    assert (x.healthy, x.mean, x.sd, x.statuses) == (3, 2.0, 1.0, {"ok": 3, "nan": 1})
    assert x.scores == (1.0, 2.0, None, 3.0)
    assert x.upper == pytest.approx(2 + 4.302653 / 3**0.5, abs=1e-6)
    assert (y.healthy, y.mean, y.sd, y.lower) == (1, 5.0, None, None)


def test_a_condition_is_compared_with_each_control_on_the_seeds_both_have(
    campaigns: "Campaigns",
) -> None:
    rows = {
        "x": (8.0, 7.0, 5.0),
        "default_base": (10.0, 10.0, Status.ERROR),
        "off_base": (9.0, 9.0, 9.0),
    }
    report = report_of(campaigns.of(rows, controls=["default_base", "off_base"]))
    x, default, off = report.rows
    first, second = x.comparisons
    assert (first.control, first.difference.seeds, first.difference.mean) == (
        "default_base",
        2,
        -2.5,
    )
    assert first.difference.percent == -25.0
    assert second.difference.seeds == 3
    assert second.difference.mean == pytest.approx(-7 / 3)
    assert default.comparisons == ()
    assert [one.control for one in off.comparisons] == ["default_base"]


def test_a_campaign_without_a_score_reports_nothing(campaigns: "Campaigns") -> None:
    rows = dict.fromkeys(TWO_BY_TWO, (None, None))
    report = report_of(campaigns.of(rows, AB), is_over=False)
    assert (report.reference, report.unsettled, report.evaluations) == (None, 8, 8)
    assert {own.difference.seeds for own in report.effects} == {0}


def test_the_effect_that_would_be_seen_is_that_of_the_noisiest_main_effect(
    campaigns: "Campaigns",
) -> None:
    """B's sd is 0.57735 over 3 seeds; the power of a one-sided t test at 2.5 % is 80 % there for
    2.73 sd (by `detectable`, whose own tests compare it with published values)."""
    report = report_of(campaigns.of(TWO_BY_TWO, AB))
    assert report.detectable_percent is not None
    assert report.reference is not None
    in_sds = report.detectable_percent / 100 * report.reference / 0.57735
    assert 2.5 < in_sds < 4.5


scores = st.floats(0.5, 5.0)
tables = st.integers(2, 4).flatmap(
    lambda seeds: st.lists(st.lists(scores, min_size=seeds, max_size=seeds), min_size=4, max_size=4)
)


@settings(max_examples=40)
@given(tables, st.floats(-10, 10), st.data())
def test_what_a_seed_adds_to_every_score_changes_no_effect(
    campaigns: "Campaigns", table: list[list[float]], shift: float, data: st.DataObject
) -> None:
    seed = data.draw(st.integers(0, len(table[0]) - 1))
    moved = [[s + shift * (i == seed) for i, s in enumerate(row)] for row in table]
    before, after = (
        report_of(campaigns.of(dict(zip(TWO_BY_TWO, rows, strict=True)), AB))
        for rows in (table, moved)
    )
    for one, other in zip(before.effects, after.effects, strict=True):
        assert one.difference.mean == pytest.approx(other.difference.mean, abs=1e-6)
        assert one.difference.lower == pytest.approx(other.difference.lower, abs=1e-5)


def turned(matrix: Matrix) -> Matrix:
    """The same campaign with the levels of its first factor named in the other order."""
    first, *others = matrix.terms.factors
    levels = first.model_copy(update={"levels": first.levels[::-1]})
    terms = matrix.terms.model_copy(update={"factors": (levels, *others)})
    return Matrix(terms=CampaignTerms.model_validate(terms.model_dump()), rows=matrix.rows)


@settings(max_examples=40)
@given(tables)
def test_swapping_levels_flips_the_sign_of_the_effects_of_that_factor(
    campaigns: "Campaigns", table: list[list[float]]
) -> None:
    matrix = campaigns.of(dict(zip(TWO_BY_TWO, table, strict=True)), AB)
    before, after = report_of(matrix), report_of(turned(matrix))
    for one, other in zip(before.effects, after.effects, strict=True):
        sign = -1 if "A" in one.factors else 1
        assert one.difference.mean is not None
        assert other.difference.mean == pytest.approx(sign * one.difference.mean, abs=1e-9)


@settings(max_examples=40)
@given(tables)
def test_effects_of_two_levels_put_the_cells_together_again(
    campaigns: "Campaigns", table: list[list[float]]
) -> None:
    """Grand mean, main effects and interaction are four numbers that say all of four cells."""
    matrix = campaigns.of(dict(zip(TWO_BY_TWO, table, strict=True)), AB)
    a, b, both = (own.difference.mean or 0.0 for own in report_of(matrix).effects)
    means = [sum(row) / len(row) for row in table]
    corner = sum(means) / 4 + a / 2 + b / 2 + both / 4
    assert corner == pytest.approx(means[3], abs=1e-6)


def test_what_can_be_seen_is_of_the_main_effect_known_least(campaigns: "Campaigns") -> None:
    """Interactions are known less, and nobody asked how small one may be."""
    rows = {
        "a0,b0": (10.0, 11.0, 12.0),
        "a0,b1": (9.0, 10.1, 11.0),
        "a1,b0": (8.0, 9.0, 10.0),
        "a1,b1": (5.0, 7.5, 8.5),
    }
    report = report_of(campaigns.of(rows, AB))
    known = {own.levels: own.difference.sd or 0.0 for own in report.effects}
    least = max(known["a1",], known["b1",])
    assert known["a1", "b1"] > least
    assert report.detectable_percent == pytest.approx(
        100 * detectable(least, 3, 0.05 / 2) / (report.reference or 0.0)
    )


def test_of_a_control_that_scores_nothing_there_are_no_percents(campaigns: "Campaigns") -> None:
    rows = {**TWO_BY_TWO, "zero_base": (-1.0, 0.0, 1.0)}
    report = report_of(campaigns.of(rows, AB, controls=["zero_base"]))
    assert report.detectable_percent is None
    assert effect(report, "a1").difference.percent is None
