"""Who is compared on fresh seeds, and who wins there."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Guided, Status
from budgets.plan import Envelope
from budgets.verdict import (
    average,
    finalists,
    has_winner,
    luckiest,
    stood_for,
    winner,
)

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, Outcome, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
FLAT = (1.0, 1.0, 1.0, 1.0)


@pytest.fixture
def searched(make_confirmed_plan: "MakePlan", tell: "Tell") -> "Callable[..., Story]":
    """A search of so many generations, each with its outcomes, whose mean moves to (n / 10, 0)."""

    def make(*generations: "Sequence[Outcome]", **fields: Any) -> "Story":
        shape = Envelope(population=4, generations=max(7, len(generations)), seeds_per_candidate=1)
        story = tell(make_confirmed_plan(resolved=shape, caps={"evaluations": 99}), generations=())
        for number, outcomes in enumerate(generations):
            story.ask(**fields)
            for candidate, outcome in enumerate(outcomes):
                story.evaluate(candidate, outcome)
            story.tell((number / 10, 0.0))
        return story

    return make


# Who


@pytest.mark.parametrize(
    ("count", "expected"), [(1, 0.0), (2, 0.1), (3, 0.2), (4, 0.25), (6, 0.45), (7, 0.5)]
)
def test_the_average_is_over_the_last_third_of_generations(
    searched: "Callable[..., Story]", count: int, expected: float
) -> None:
    story = searched(*(FLAT for _ in range(count)))
    assert average(story.state) == pytest.approx((expected, 0.0))


def test_what_stands_is_the_average_unless_a_model_put_the_mean(
    searched: "Callable[..., Story]",
) -> None:
    story = searched(*(FLAT for _ in range(6)))
    assert stood_for(story.state) == average(story.state) == pytest.approx((0.45, 0.0))
    story.ask()
    for candidate in range(4):
        story.evaluate(candidate)
    guided = Guided(centre=(0.9, 0.9), sigma=None, signal=0.1, noise=0.1)
    last = story.state.completed[-1].told
    assert last is not None
    told = replace(last, generation=6, mean=(0.9, 0.9), guided=guided)
    story.say(told)
    assert stood_for(story.state) == (0.9, 0.9)


def test_before_a_generation_was_told_there_is_no_average(
    searched: "Callable[..., Story]",
) -> None:
    assert average(searched().state) is None


def test_finalists_are_both_means_and_the_luckiest(searched: "Callable[..., Story]") -> None:
    story = searched(FLAT, FLAT, FLAT, (3.0, 1.0, 2.0, 4.0))
    found = {arm.name: arm.point for arm in finalists(story.state)}
    assert found == {
        "average": pytest.approx((0.25, 0.0)),
        "mean": (0.3, 0.0),
        "luckiest 1": story.state.completed[3].points[1],
        "luckiest 2": story.state.completed[3].points[2],
    }


def test_of_one_generation_the_average_is_the_mean_and_is_compared_once(
    searched: "Callable[..., Story]",
) -> None:
    names = [arm.name for arm in finalists(searched((3.0, 1.0, 2.0, 4.0)).state)]
    assert names == ["average", "luckiest 1", "luckiest 2"]


def test_no_point_is_compared_twice(searched: "Callable[..., Story]") -> None:
    same = ((0.2, 0.0), (0.2, 0.0), (0.7, 0.7), (0.9, 0.9))
    story = searched(FLAT, FLAT, (1.0, 1.1, 2.0, 3.0), points=same)
    found = finalists(story.state)
    assert [arm.name for arm in found] == ["average"]  # the mean, and both luckiest, are there too
    assert found[0].point == (0.2, 0.0)


# The luckiest


def test_the_luckiest_stand_out_of_their_generation_whatever_its_seed(
    searched: "Callable[..., Story]",
) -> None:
    """The sixth generation had an easy seed."""
    story = searched(*(FLAT for _ in range(4)), (9.5, 9.0, 9.5, 10.0), (1.2, 1.1, 1.0, 1.1))
    fifth, sixth = story.state.completed[4:]
    assert luckiest(story.state, 2) == [fifth.points[1], sixth.points[2]]


def test_candidates_of_an_early_generation_that_spread_widely_are_not_the_luckiest(
    searched: "Callable[..., Story]",
) -> None:
    """The best of the first is far below its mean, and no better than the worst of the last."""
    story = searched((2.0, 3.0, 4.0, 5.0), (2.0, 2.1, 2.2, 2.3), (1.00, 1.01, 1.02, 1.03))
    assert luckiest(story.state, 2) == list(story.state.completed[2].points[:2])


def test_the_failed_are_never_lucky(searched: "Callable[..., Story]") -> None:
    story = searched((1.0, NAN, 2.0, NAN))
    points = story.state.completed[0].points
    assert luckiest(story.state, 4) == [points[0], points[2]]


def test_a_generation_that_failed_altogether_has_nobody_lucky(
    searched: "Callable[..., Story]",
) -> None:
    assert luckiest(searched((NAN, NAN, NAN, NAN)).state, 2) == []


def test_equal_ones_come_in_the_order_of_generation_and_candidate(
    searched: "Callable[..., Story]",
) -> None:
    story = searched(*(FLAT for _ in range(4)))
    third, fourth = story.state.completed[2:]
    assert luckiest(story.state, 5) == [*third.points, fourth.points[0]]


# Who wins


def won(tell: "Tell", compared: "Mapping[str, Sequence[Outcome]]") -> str | None:
    best = winner(tell(finalists=compared).state)
    return None if best is None else best.name


def test_nobody_has_won_before_all_are_settled(tell: "Tell") -> None:
    story = tell()
    assert winner(story.state) is None
    assert has_winner(story.state)  # there may be one yet


def test_the_best_mean_wins(tell: "Tell") -> None:
    compared = {"average": (1.0, 1.0, 1.0), "mean": (0.8, 1.0, 1.1), "luckiest 1": (1.1, 0.9, 1.0)}
    assert won(tell, compared) == "mean"


def test_of_equal_ones_the_one_likelier_to_be_good_wins(tell: "Tell") -> None:
    assert won(tell, {"average": (1.0, 0.9, 0.8), "mean": (0.8, 0.9, 1.0)}) == "average"


def test_who_failed_on_a_seed_does_not_win_against_who_did_not(tell: "Tell") -> None:
    assert won(tell, {"average": (0.1, 0.1, NAN), "mean": (9.0, 9.0, 9.0)}) == "mean"
    assert won(tell, {"average": (0.1, NAN, NAN), "mean": (9.0, 9.0, Status.OOM)}) == "mean"


def test_who_failed_on_the_hardest_seed_is_not_better_for_it(tell: "Tell") -> None:
    """The third seed is hard. On the one that both have a score on, the second is better."""
    assert won(tell, {"average": (1.0, 1.1, NAN), "mean": (0.9, NAN, 2.0)}) == "mean"


def test_with_no_seed_in_common_each_is_taken_by_its_own(tell: "Tell") -> None:
    assert won(tell, {"average": (1.0, NAN, NAN), "mean": (NAN, 0.9, NAN)}) == "mean"


def test_where_all_failed_nobody_wins(tell: "Tell") -> None:
    story = tell(finalists={"average": (NAN, NAN, NAN), "mean": (NAN, NAN, NAN)})
    assert winner(story.state) is None
    assert not has_winner(story.state)
