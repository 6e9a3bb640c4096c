"""Who gains how much over whom, by the panels so far."""

from typing import TYPE_CHECKING

import pytest

from budgets.events import Status
from budgets.plan import Calibration
from budgets.verdict import (
    average_gain,
    baseline_mean,
    baseline_scores,
    control_gains,
    gain_over_incumbent,
    incumbent_gain,
    picking_gains,
    rung_gain,
    winner_gain,
    winner_means,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, MakeStory, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
TEN = tuple(1.0 + 0.1 * n for n in range(11))  # a baseline whose seeds differ


def test_before_anything_was_compared_nobody_gains(tell: "Tell") -> None:
    state = tell(generations=()).state
    assert not picking_gains(state)
    assert not control_gains(state)
    assert winner_gain(state) is incumbent_gain(state) is rung_gain(state) is None
    assert average_gain(state) is None


def test_finalists_gain_on_the_picking_seeds_alone(tell: "Tell") -> None:
    story = tell(baseline=(1.0, 1.0, 1.0, *8 * (9.0,)), finalists={"average": 0.9, "mean": 1.1})
    found = {arm.name: (gain.mean, gain.pairs) for arm, gain in picking_gains(story.state)}
    assert found == {"average": pytest.approx((0.1, 3)), "mean": pytest.approx((-0.1, 3))}


def test_the_winner_gains_on_the_seeds_that_nobody_was_picked_on(tell: "Tell") -> None:
    story = tell(baseline=(9.0, 9.0, 9.0, *8 * (1.0,)), winner=8 * (0.9,))
    found = winner_gain(story.state)
    assert found is not None
    assert (found.mean, found.pairs) == pytest.approx((0.1, 8))


def test_the_means_are_of_the_seeds_that_the_gain_is_seen_on(tell: "Tell") -> None:
    assert winner_means(tell(generations=()).state) is None
    story = tell(baseline=(9.0, 9.0, 9.0, 9.0, *7 * (1.0,)), winner=(NAN, *7 * (0.9,)))
    means, found = winner_means(story.state), winner_gain(story.state)
    assert means == pytest.approx((1.0, 0.9))
    assert found is not None
    assert found.pairs == 7


def test_a_winner_that_failed_throughout_has_no_means(tell: "Tell") -> None:
    assert winner_means(tell(winner=8 * (NAN,)).state) is None


def test_pairs_are_seed_by_seed(tell: "Tell") -> None:
    story = tell(baseline=TEN, winner=tuple(score - 0.1 for score in TEN[3:]))
    found = winner_gain(story.state)
    assert found is not None
    assert found.sd == pytest.approx(0.0, abs=1e-12)


def test_the_mean_that_won_is_judged_on_the_further_seeds(tell: "Tell") -> None:
    compared = {"average": 0.8, "mean": 0.9}
    before, after = tell(finalists=compared), tell(finalists=compared, winner=8 * (0.95,))
    picked, judged = average_gain(before.state), average_gain(after.state)
    assert picked is not None
    assert judged is not None
    assert (picked.pairs, judged.pairs) == (3, 8)
    assert judged.mean == pytest.approx(0.05)


def test_a_mean_that_did_not_win_is_judged_on_the_picking_seeds(tell: "Tell") -> None:
    compared = {"average": 0.9, "mean": 0.8}
    found = average_gain(tell(finalists=compared, winner=8 * (0.5,), best="mean").state)
    assert found is not None
    assert (found.mean, found.pairs) == pytest.approx((0.1, 3))


def test_an_earlier_winner_is_held_against_the_baseline_and_gained_over(tell: "Tell") -> None:
    before, after = tell(incumbent=8 * (0.9,)), tell(incumbent=8 * (0.9,), winner=8 * (0.81,))
    own, over = incumbent_gain(before.state), gain_over_incumbent(after.state)
    assert own is not None
    assert over is not None
    assert (own.mean, own.pairs) == pytest.approx((0.1, 8))
    assert (over.mean, over.pairs) == pytest.approx((0.1, 8))
    assert gain_over_incumbent(before.state) is None
    assert incumbent_gain(tell().state) is None


def test_an_earlier_winner_that_fails_has_no_pairs(tell: "Tell") -> None:
    own = incumbent_gain(tell(incumbent=8 * (NAN,)).state)
    assert own is not None
    assert (own.pairs, own.mean) == (0, None)


def test_controls_gain_over_the_baseline_and_are_gained_over(tell: "Tell") -> None:
    story = tell(control=5 * (0.9,), winner=8 * (0.8,), equal=5 * (0.75,))
    found = control_gains(story.state)
    assert [name for name, _, _ in found] == [
        "synapses off",
        "synapses off at equal seconds (1.5 x FLOPs)",
    ]
    own, over = [gain.mean for _, gain, _ in found], [gain.mean for _, _, gain in found]
    assert own == pytest.approx([0.1, 0.25])
    assert over == pytest.approx([0.1 / 0.9, -0.05 / 0.75])
    assert {gain.pairs for _, *gains in found for gain in gains} == {5}


def test_a_control_is_known_before_the_winner(tell: "Tell") -> None:
    ((_, own, over),) = control_gains(tell(control=5 * (0.9,)).state)
    assert (own.pairs, over.pairs, over.mean) == (5, 0, None)


def test_on_the_rung_the_winner_meets_a_baseline_of_its_own(tell: "Tell") -> None:
    found = rung_gain(tell(winner=8 * (0.9,), rung=((0.5, 0.5), (0.4, 0.4))).state)
    assert found is not None
    assert (found.mean, found.pairs) == pytest.approx((0.2, 2))


def test_the_baselines_score_is_the_calibrated_one_if_there_is_one(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    assert baseline_mean(tell(baseline=11 * (2.0,)).state) == pytest.approx(1.0)
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    assert baseline_mean(tell(plan, baseline=11 * (2.0,)).state) == 2.0
    assert baseline_mean(tell(plan, baseline=11 * (NAN,)).state) is None


def test_a_baseline_that_nobody_measured_has_no_score(make_story: "MakeStory") -> None:
    story = make_story(calibration=None)
    assert baseline_scores(story.state) == {}
    assert baseline_mean(story.state) is None


def test_a_baseline_that_failed_has_fewer_scores(tell: "Tell") -> None:
    story = tell(baseline=(1.0, NAN, 1.0, NAN, *7 * (1.0,)), winner=8 * (0.9,))
    assert len(baseline_scores(story.state)) == 9
    found = winner_gain(story.state)
    assert found is not None
    assert found.pairs == 7
