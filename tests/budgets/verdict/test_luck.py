"""What luck alone makes of a search's scores."""

from math import sqrt
from statistics import stdev, variance
from typing import TYPE_CHECKING

import pytest

from budgets.calibration import best_of_noise
from budgets.events import Status
from budgets.plan import Calibration, Caps, Envelope
from budgets.verdict import luck, noise, promise, spread, spread_freedom

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
WIDE, NARROW = 6 * (1.0, 1.1, 1.2, 1.3), 6 * (1.00, 1.01, 1.02, 1.03)


# How far candidates differ


def test_the_spread_is_within_generations_of_the_first_third(tell: "Tell") -> None:
    story = tell(generations=(WIDE, NARROW, NARROW))
    assert spread(story.state) == pytest.approx(stdev(WIDE))


def test_generations_on_easy_and_hard_seeds_do_not_differ_by_that(tell: "Tell") -> None:
    harder = tuple(score + 5.0 for score in NARROW)
    story = tell(generations=(NARROW, harder, WIDE, WIDE))
    assert spread(story.state) == pytest.approx(stdev(NARROW))


def test_failed_candidates_have_no_part_in_it(tell: "Tell") -> None:
    story = tell(generations=((*WIDE, NAN), (*NARROW, NAN), (*NARROW, NAN)))
    assert spread(story.state) == pytest.approx(stdev(WIDE))


@pytest.mark.parametrize("healthy", [2, 20, 24])
def test_a_spread_is_known_with_one_degree_of_freedom_less_than_candidates(
    tell: "Tell", healthy: int
) -> None:
    own = (*WIDE[:healthy], *(24 - healthy) * (NAN,))
    assert spread_freedom(tell(generations=(own, WIDE, WIDE)).state) == healthy - 1
    assert spread_freedom(tell(generations=4 * (own,)).state) == 2 * (healthy - 1)


def test_one_healthy_candidate_spreads_over_nothing(tell: "Tell") -> None:
    assert spread(tell(generations=((1.0, *23 * (NAN,)),)).state) is None
    assert spread(tell(generations=()).state) is None


# How far they would if they were equally good


def test_noise_is_what_is_left_beside_seed_and_configuration(tell: "Tell") -> None:
    """Of the winner's panel alone: half the variance of its differences to the baseline."""
    seeds = (0.9, 1.1, 1.3, 0.8, 1.0, 1.2, 0.7, 1.4)
    scores = tuple(s - 0.02 + 0.001 * (-1) ** place for place, s in enumerate(seeds))
    story = tell(
        baseline=(*3 * (1.0,), *seeds), finalists={"average": (0.98, NAN, NAN)}, winner=scores
    )
    differences = [a - b for a, b in zip(seeds, scores, strict=True)]
    assert noise(story.state) == pytest.approx(stdev(differences) / 2**0.5)


def test_finalists_tell_too_before_the_winner_was_compared(tell: "Tell") -> None:
    baseline, one, other = (1.0, 1.1, 1.2), (1.0, 1.1, 1.2), (1.0, 1.1, 1.5)
    story = tell(baseline=(*baseline, *8 * (1.0,)), finalists={"average": one, "mean": other})
    residuals = (
        0.1 / 3,
        0.1 / 3,
        -0.2 / 3,
        0.1 / 3,
        0.1 / 3,
        -0.2 / 3,
        -0.2 / 3,
        -0.2 / 3,
        0.4 / 3,
    )
    expected = (sum(r**2 for r in residuals) / 4) ** 0.5
    assert noise(story.state) == pytest.approx(expected)


def test_panels_count_by_their_degrees_of_freedom(tell: "Tell") -> None:
    """2 of the finalists' panel without noise, 7 of the winner's."""
    flat = {"average": 1.0}
    alone = tell(finalists={"average": (1.0, NAN, NAN)}, winner=8 * (0.98,))
    noisy = (0.98, 0.99, 0.97, 0.98, 0.99, 0.97, 0.98, 0.98)
    with_finalists, without = (
        noise(tell(finalists=finalists, winner=noisy).state)
        for finalists in (flat, {"average": (1.0, NAN, NAN)})
    )
    assert with_finalists is not None
    assert without is not None
    assert with_finalists**2 * 9 == pytest.approx(without**2 * 7)
    assert noise(alone.state) == pytest.approx(0.0)


def test_a_finalist_that_failed_everywhere_does_not_hide_the_others(tell: "Tell") -> None:
    one, other = (1.0, 1.1, 1.2), (1.0, 1.1, 1.5)
    healthy = {"average": one, "mean": other}
    sick = {**healthy, "luckiest 1": (NAN, NAN, NAN)}
    assert noise(tell(finalists=sick).state) == noise(tell(finalists=healthy).state)


def test_a_control_is_another_objective(tell: "Tell") -> None:
    winner = (0.98, 0.99, 0.97, 0.98, 0.99, 0.97, 0.98, 0.98)
    plain = tell(finalists={"average": 0.98}, winner=winner)
    held = tell(
        control=5 * (1.0,),
        finalists={"average": 0.98},
        winner=winner,
        equal=(1.0, 2.0, 3.0, 4.0, 5.0),
    )
    assert noise(held.state) == noise(plain.state)


def test_candidates_on_three_seeds_have_less_of_it(
    make_confirmed_plan: "MakePlan", tell: "Tell"
) -> None:
    shape = Envelope(population=4, generations=1, seeds_per_candidate=3)
    plan = make_confirmed_plan(phase="phase2", resolved=shape, caps=Caps(evaluations=12))
    noisy = (0.98, 0.99, 0.97, 0.98, 0.99, 0.97, 0.98, 0.98)
    one = noise(tell(finalists={"average": 0.98}, winner=noisy).state)
    three = noise(tell(plan, generations=(), finalists={"average": 0.98}, winner=noisy).state)
    assert one is not None
    assert three == pytest.approx(one / 3**0.5)


def test_without_panels_nothing_tells(tell: "Tell") -> None:
    assert noise(tell().state) is None


# The best score


def test_the_best_score_promises_a_gain_over_the_baseline(tell: "Tell") -> None:
    assert promise(tell(generations=((1.0, 0.97, NAN, 1.2),)).state) == pytest.approx(0.03)
    assert promise(tell(generations=((1.0, 1.1, 1.2, 1.3),)).state) == pytest.approx(0.0)
    assert promise(tell(generations=()).state) is None


def test_without_a_calibration_the_baseline_is_that_of_the_fresh_seeds(
    make_confirmed_plan: "MakePlan", tell: "Tell"
) -> None:
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    story = tell(plan, baseline=11 * (2.0,), generations=((1.0, 1.5, 1.2, 1.3),))
    assert promise(story.state) == pytest.approx(0.5)
    assert luck(story.state) is None


def test_below_zero_lower_is_better_too(make_confirmed_plan: "MakePlan", tell: "Tell") -> None:
    plan = make_confirmed_plan(calibration=Calibration(assumed_seconds=2.0))
    story = tell(plan, baseline=11 * (-2.0,), generations=((-2.2, -2.1, -2.0, -1.0),))
    assert promise(story.state) == pytest.approx(0.1)


def test_luck_is_that_of_as_many_baselines_as_candidates_were_healthy(tell: "Tell") -> None:
    story = tell(generations=((1.0, 1.1, NAN, 1.2), (1.0, 1.1, 1.0, NAN)))
    assert luck(story.state) == pytest.approx(best_of_noise(6) * 0.005)


def test_luck_knows_that_candidates_were_on_three_seeds_each(
    make_confirmed_plan: "MakePlan", tell: "Tell"
) -> None:
    shape = Envelope(population=4, generations=1, seeds_per_candidate=3)
    plan = make_confirmed_plan(phase="phase2", resolved=shape, caps=Caps(evaluations=12))
    story = tell(plan, generations=(4 * (1.0,),))
    assert luck(story.state) == pytest.approx(best_of_noise(4) * 0.005 / 3**0.5)


def test_one_calibrated_seed_does_not_tell_what_luck_is(
    make_confirmed_plan: "MakePlan", tell: "Tell"
) -> None:
    calibration = make_confirmed_plan().calibration
    assert calibration is not None
    plan = make_confirmed_plan(calibration=Calibration(samples=calibration.samples[:1]))
    assert luck(tell(plan).state) is None


def test_of_a_baseline_that_scores_nothing_no_share_is_luck(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    measured = make_confirmed_plan().calibration
    assert measured is not None
    around = zip(measured.samples, (-0.5, 0.0, 0.5), strict=True)
    samples = tuple(one.model_copy(update={"score": score}) for one, score in around)
    plan = make_confirmed_plan(calibration=measured.model_copy(update={"samples": samples}))
    assert luck(tell(plan).state) is None
    assert luck(tell().state) is not None


def test_generations_count_by_their_freedom(tell: "Tell") -> None:
    far, near = (1.0, 1.4, 1.8, 1.2), (1.0, 1.1, NAN, NAN)
    story = tell(generations=(far, near, *4 * (NARROW[:4],)))
    assert spread(story.state) == pytest.approx(
        sqrt((3 * variance(far) + variance((1.0, 1.1))) / 4)
    )
