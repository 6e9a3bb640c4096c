"""What to do next, after every verdict."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Status
from budgets.plan import Confirmation
from budgets.stats import detectable
from budgets.verdict.advice import MOST_SEEDS, advice, enough_seeds
from budgets.verdict.decision import decide
from budgets.verdict.gains import winner_gain

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import MakePlan, Outcome, Story

    Tell = Callable[..., Story]

NAN = Status.NAN
KEPT, LESS, GONE = (((1.0, 1.0), (s, s)) for s in (0.98, 0.995, 1.02))
ALIVE = 3 * ((1.0, 1.2, 1.1, 1.3),)
STAYS = "Next: "
FOLLOW = "Next: `python -m orchestrator phase2 --variant robust --tier min --from judged`"
LARGER = f"{STAYS}search with longer evaluations: "
LONGER = f"{STAYS}train the winner and the baseline longer, on more seeds: "


def noisy(score: float, noise: float, count: int = 8) -> "tuple[Outcome, ...]":
    return tuple(score + noise * (-1) ** place for place in range(count))


def advised(story: "Story") -> str:
    fired, decided = decide(story.state)
    story.say(*fired, decided)
    said = advice(story.state)
    assert said is not None
    return said


def test_before_the_decision_there_is_none(tell: "Tell") -> None:
    assert advice(tell(winner=8 * (0.98,)).state) is None


# After a Go


@pytest.mark.parametrize(
    ("rung", "expected"),
    [
        (KEPT, FOLLOW),
        (LESS, f"{LARGER}on more FLOPs too little of the gain was kept."),
        (
            ((1.0, 1.0), (0.99, 0.97)),
            f"{LONGER}what was kept of the gain on more FLOPs may be chance.",
        ),
        (None, f"{LARGER}the gain was not tried on more FLOPs."),
        (((NAN, NAN), (0.98, 0.98)), f"{LARGER}the gain on more FLOPs could not be measured."),
    ],
    ids=["kept", "less", "by chance", "not tried", "not measured"],
)
def test_a_go_is_followed_where_it_lasts_and_else_searched_for_there(
    tell: "Tell", rung: Any, expected: str
) -> None:
    assert advised(tell(winner=8 * (0.98,), rung=rung)) == expected


def test_after_a_phase_2_the_recommendation_is_used(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    plan = make_confirmed_plan(phase="phase2")
    assert advised(tell(plan, winner=8 * (0.98,), rung=KEPT)) == (
        "Next: train with the recommendation (best.json)."
    )


# After a No-Go


def test_a_dead_space_wants_other_knobs(tell: "Tell") -> None:
    near = 3 * (6 * (1.0, 1.0001, 1.0002, 1.0),)
    said = advised(tell(generations=near, winner=noisy(1.0, 0.01)))
    assert said.startswith(f"{STAYS}tune other knobs: `python -m orchestrator check knobs`")


@pytest.mark.parametrize(("settings", "is_said"), [({}, False), ({"space": "muon"}, True)])
def test_where_knobs_come_in_groups_another_group_is_advised(
    tell: "Tell", settings: dict[str, Any], is_said: bool
) -> None:
    outcomes: dict[str, Any] = {"generations": 3 * (6 * (1.0,),), "winner": 8 * (1.0,)}
    objective = {"name": "nanochat", "settings": settings}
    plan = tell(**outcomes).state.plan.model_copy(update={"objective": objective})
    said = advised(tell(plan=plan, **outcomes))
    assert ("and --set space=GROUP chooses others" in said) == is_said


def test_below_noise_more_seeds_are_counted(tell: "Tell") -> None:
    """And they really are enough, by the noise there was."""
    story = tell(generations=ALIVE, winner=noisy(0.995, 0.02))
    said = advised(story)
    found = winner_gain(story.state)
    assert found is not None
    assert found.sd is not None
    seeds = int(said.split("verdict.confirm_seeds = ")[1].split()[0])
    assert said.startswith(f"{STAYS}more seeds: on about {seeds}, by the noise of these, a gain of")
    assert detectable(found.sd, seeds, found.level) <= 0.01
    assert detectable(found.sd, seeds - 1, found.level) > 0.01
    assert "with another evaluation.seed and --run-id, for these seeds have been looked at" in said


def test_more_seeds_are_enough_only_where_these_were_not(tell: "Tell") -> None:
    assert enough_seeds(tell().state) is None  # nothing is compared yet
    assert enough_seeds(tell(winner=8 * (1.0,)).state) is None
    assert enough_seeds(tell(winner=noisy(0.995, 0.05)).state) is None
    assert enough_seeds(tell(winner=noisy(0.995, 0.02)).state) == 49


def test_noise_that_no_sensible_number_of_seeds_overcomes_is_said(tell: "Tell") -> None:
    said = advised(tell(generations=ALIVE, winner=noisy(0.995, 0.05)))
    assert said.startswith(f"{LARGER}the noise hides a gain of 1%, and seeds differ less there")
    assert str(MOST_SEEDS) not in said


@pytest.mark.parametrize(
    "winner",
    [8 * (1.0,), noisy(1.05, 0.02)],
    ids=["without noise", "noisy, and much worse"],
)
def test_where_a_gain_would_have_been_seen_more_seeds_do_not_help(
    tell: "Tell", winner: "tuple[Outcome, ...]"
) -> None:
    said = advised(tell(generations=ALIVE, finalists={"average": 1.05}, winner=winner))
    assert said.startswith(
        f"{STAYS}a gain of 1% would have been seen, so more seeds will not help; tune other"
    )


@pytest.mark.parametrize("winner", [(0.98, 0.98, 0.98), (0.98, 0.981, 0.979)])
def test_where_fewer_seeds_than_a_go_needs_were_planned_it_needs_them(
    tell: "Tell", make_confirmed_plan: "MakePlan", winner: "tuple[Outcome, ...]"
) -> None:
    few = Confirmation(seeds=3, picking_seeds=3, luckiest=2, control_seeds=0)
    plan = make_confirmed_plan(confirmation=few)
    assert "more seeds: on about 5," in advised(tell(plan, baseline=6 * (1.0,), winner=winner))


def test_without_a_pair_other_knobs_are_all_that_is_left(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    said = advised(tell(baseline=11 * (0.0,), winner=8 * (0.98,)))
    assert said.startswith(f"{STAYS}tune other knobs")


def test_a_small_gain_is_there_to_be_taken(tell: "Tell") -> None:
    said = advised(tell(generations=ALIVE, winner=8 * (0.995,)))
    assert said.startswith(f"{STAYS}search longer (--tier max): the gain is smaller than asked")
    assert said.endswith("who takes it all the same finds the winner's knobs in best.json.")


def test_a_gain_that_is_lost_on_more_flops_is_searched_for_there(tell: "Tell") -> None:
    said = advised(tell(winner=8 * (0.98,), rung=GONE))
    assert said == f"{LARGER}what wins on a short training is lost there."


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"target_flops": 3e11}, "a larger target_flops"),
        ({"budget": 100}, "a larger budget"),
        ({"budget": None}, "longer evaluations"),
    ],
)
def test_a_longer_training_is_called_as_the_settings_call_it(
    settings: dict[str, Any], expected: str, tell: "Tell"
) -> None:
    outcomes: dict[str, Any] = {"generations": ALIVE, "winner": noisy(0.995, 0.05)}
    objective = {"name": "command", "settings": settings}
    plan = tell(**outcomes).state.plan.model_copy(update={"objective": objective})
    said = advised(tell(plan=plan, **outcomes))
    assert f"search with {expected}: the noise hides a gain of 1%" in said


def test_a_gain_that_is_one_candidates_wants_a_longer_search(tell: "Tell") -> None:
    finalists = {"average": 1.1, "luckiest 1": 0.9}
    said = advised(tell(finalists=finalists, winner=8 * (0.98,), best="luckiest 1"))
    assert said.startswith(f"{STAYS}search longer (--tier max): the distribution's mean did not")


@pytest.mark.parametrize(
    "fields",
    [
        {"winner": (NAN, NAN, *6 * (0.98,))},
        {"generations": ((1.0, 1.1, NAN, 1.2), (1.0, 1.1, 1.2, 1.3)), "winner": 8 * (0.98,)},
        {"finalists": {"average": (NAN, NAN, NAN)}},
        {"baseline": (*3 * (1.0,), *8 * (NAN,)), "winner": 8 * (0.98,)},
    ],
    ids=["pathological", "unstable", "nothing found", "no baseline"],
)
def test_failures_are_to_be_looked_into(tell: "Tell", fields: Any) -> None:
    assert advised(tell(**fields)).startswith(f"{STAYS}look into the failures (progress.csv, and")


def test_the_largest_tier_is_not_advised_to_be_larger(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    plan, finalists = make_confirmed_plan(tier="max"), {"average": 1.1, "luckiest 1": 0.9}
    small = advised(tell(plan, generations=ALIVE, winner=8 * (0.995,)))
    lone = advised(tell(plan, finalists=finalists, winner=8 * (0.98,), best="luckiest 1"))
    assert small.startswith(f"{STAYS}the gain is smaller than asked")
    assert "tune other knobs" in small
    assert lone.startswith(f"{STAYS}search longer: the distribution's mean did not get better")
