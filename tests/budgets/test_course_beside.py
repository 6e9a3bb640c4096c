"""What a run with a confirmation does next, what it sets aside for that, and what cannot follow."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import (
    Amended,
    Decided,
    Event,
    Fired,
    GenerationAsked,
    ComparisonAsked,
    Reserved,
    Settled,
    Status,
)
from budgets.plan import Arm, Caps
from budgets.rules import judge, refusal_of
from budgets.schedule import (
    open_batches,
    blocking_batches,
    next_action,
    search_is_over,
    left_for_the_verdict,
)
from budgets.state import ImpossibleEventError
from budgets.verdict import decide

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, Story

    Tell = Callable[..., Story]

HOUR = 3600.0
GO: dict[str, Any] = {
    "finalists": None, "winner": 8 * (0.9,), "rung": (2 * (1.0,), 2 * (0.9,)),
}  # fmt: skip
NO_GENERATION: dict[str, Any] = {"generations": ()}


def arm(name: str = "baseline", at: float = 0.5) -> Arm:
    return Arm(name=name, point=(at, at))


def reference(*seeds: int) -> ComparisonAsked:
    return ComparisonAsked(comparison="reference", configurations=(arm(),), seeds=(seeds,))


def reserved(seed: int, **fields: Any) -> Reserved:
    values = {"panel": "reference", "generation": 0, "candidate": 0, "attempt": 1, **fields}
    return Reserved(seed=seed, reserve_ms=12_000, **values)


def settled(event: Reserved, status: Status = Status.OK) -> Settled:
    return Settled(
        comparison=event.comparison,
        generation=event.generation,
        candidate=event.candidate,
        seed=event.seed,
        attempt=event.attempt,
        status=status,
        score=1.0 if status is Status.OK else None,
        charged_ms=2000,
        seconds=2.0,
    )


def budget_stop(generation: int = 1) -> Fired:
    return Fired(
        rule="budget", generation=generation, decision="stop", observed=2, limit=1, evidence="spent"
    )


# What comes next


def test_a_confirmed_search_goes_from_panel_to_panel(
    tell: "Tell", make_confirmed_plan: "MakePlan", make_story: Callable[..., "Story"]
) -> None:
    assert next_action(make_story(make_confirmed_plan()).state) == "reference"
    assert next_action(tell(**NO_GENERATION).state) == "generation"
    assert next_action(tell().state) == "finalists"
    assert next_action(tell(finalists={"average": 0.9}).state) == "winner"
    assert next_action(tell(winner=8 * (0.9,)).state) == "rung"
    assert next_action(tell(winner=8 * (1.0,)).state) == "decide"  # is not worth the rung
    assert next_action(tell(**GO).state) == "decide"
    assert next_action(tell(finalists={"average": Status.NAN}).state) == "decide"  # nobody won
    story = tell(**GO)
    fired, decided = decide(story.state)
    story.say(*fired, decided)
    assert next_action(story.state) == "over"
    assert judge(story.state).decision == "done"


@pytest.mark.parametrize("settled_ones", [0, 5, 10])
def test_neither_winner_nor_decision_before_the_reference_is_closed(
    tell: "Tell", settled_ones: int
) -> None:
    story = tell(finalists={"average": 0.9}, winner=8 * (1.0,))
    open_ones = story.state.comparison("reference")
    assert open_ones is not None
    for key in list(open_ones.attempts)[settled_ones:]:
        del open_ones.attempts[key]
    assert next_action(story.state) == "reference"
    assert blocking_batches(story.state) == [open_ones]


def test_a_rung_that_was_asked_is_waited_for_whatever_else_is_known(tell: "Tell") -> None:
    story = tell(winner=8 * (1.0,))
    story.say(
        ComparisonAsked(
            comparison="rung", configurations=(arm(), arm("average", 0.4)), seeds=((9,), (9,))
        )
    )
    assert next_action(story.state) == "rung"


def test_a_stop_leaves_a_search_that_was_told_something_over_and_another_one_not(
    tell: "Tell",
) -> None:
    begun = tell(**NO_GENERATION)
    begun.say(budget_stop(0))
    assert not search_is_over(begun.state)
    story = tell(generations=(4 * (1.0,),))
    story.ask(seeds=(5,))
    story.evaluate(0)
    story.say(budget_stop())
    assert search_is_over(story.state)
    assert next_action(story.state) == "finalists"
    assert story.state.current not in open_batches(story.state)  # its half a generation is left


def test_an_amendment_lets_a_search_go_on_that_is_not_compared_yet(tell: "Tell") -> None:
    story = tell(generations=(4 * (1.0,),))
    story.say(budget_stop())
    story.say(Amended(caps=Caps(evaluations=12, hours=9), generations=3, reason="so"))
    assert next_action(story.state) == "generation"


# What is set aside


def seconds(needs: float) -> float:
    return round(HOUR * needs, 6)


LAST, LAST_OF_RUNG = 10 + 2 * 1, 4 * 10 + 2 * 1
"""What is reserved for one evaluation: its limit and twice the grace; the rung's is longer."""


def test_every_panel_that_is_planned_is_set_aside_and_the_last_ones_whole_reservation(
    make_story: Callable[..., "Story"], make_confirmed_plan: "MakePlan"
) -> None:
    needs = left_for_the_verdict(make_story(make_confirmed_plan()).state)
    assert needs.evaluations == (11 + 5) + 12 + (8 + 5) + 4
    assert seconds(needs.device_hours) == 2 * (16 + 12 + 13 + 4 * 4) + LAST
    assert seconds(needs.hours) == 2 * (8 + 6 + 7 + 4 * 2) + LAST  # on two devices


def test_what_is_settled_needs_nothing_more(tell: "Tell") -> None:
    """The reference has no control here: it was asked without, so five fewer are owed."""
    counts = [
        left_for_the_verdict(tell(**fields).state).evaluations
        for fields in (NO_GENERATION, {"finalists": {"average": 0.9}}, {"winner": 8 * (1.0,)}, GO)
    ]
    assert counts == [12 + 13 + 4, 13 + 4, 4, 0]


def test_nothing_is_set_aside_for_what_is_decided_or_has_no_time_or_is_not_compared(
    tell: "Tell", make_story: Callable[..., "Story"], make_confirmed_plan: "MakePlan"
) -> None:
    story = tell(finalists={"average": Status.NAN})
    assert left_for_the_verdict(story.state).evaluations == 13 + 4
    story.say(decide(story.state)[1])
    untimed = make_story(make_confirmed_plan(calibration=None))
    for state in (story.state, untimed.state, make_story().state):
        assert left_for_the_verdict(state) == (0, 0.0, 0.0)


@pytest.mark.parametrize(("spare_ms", "fits"), [(0, True), (-1, False)])
def test_an_attempt_of_the_search_starts_only_beside_all_that_is_set_aside(
    make_story: Callable[..., "Story"],
    make_confirmed_plan: "MakePlan",
    spare_ms: int,
    fits: bool,
) -> None:
    aside_ms = 1000 * (2 * (16 + 12 + 13 + 4 * 4) + LAST)
    hours = (12_000 + aside_ms + spare_ms) / 3_600_000
    plan = make_confirmed_plan(caps=Caps(evaluations=12, device_hours=hours))
    story = make_story(plan)
    story.ask()
    refusal = refusal_of(story.state, story.current, 0)
    assert (refusal is None) == fits
    if refusal is not None:
        assert refusal.flag == "--max-device-hours"


@pytest.mark.parametrize(
    ("caps", "flag"),
    [
        ({"device_hours": (8 + 10 + 114 + LAST) / HOUR}, "--max-device-hours"),
        ({"hours": (4 + 10 + 58 + LAST) / HOUR}, "--max-hours"),
        ({"cost": (8 + 10 + 114 + LAST) / HOUR}, "--max-cost"),
    ],
)
def test_a_generation_that_leaves_the_verdict_too_little_is_not_begun(
    make_story: Callable[..., "Story"],
    make_confirmed_plan: "MakePlan",
    caps: dict[str, float],
    flag: str,
) -> None:
    """Generation 0 takes 8 s of device time and 4 s of wall clock, and 10 s to its last limit."""
    price = 1.0 if "cost" in caps else 0.0
    for spare, decision in ((-0.001 / HOUR, "stop"), (0.001 / HOUR, "continue")):
        own = Caps(evaluations=12, **{name: value + spare for name, value in caps.items()})
        plan = make_confirmed_plan(caps=own, price_per_device_hour=price)
        verdict = judge(make_story(plan).state)
        assert verdict.decision == decision
        if decision == "stop":
            assert "the verdict's 45" in verdict.reason
            assert flag in verdict.reason


@pytest.mark.parametrize(("spare_seconds", "step"), [(0.01, "rung"), (-0.01, "decide")])
def test_a_rung_that_does_not_fit_as_a_whole_is_left_out(
    tell: "Tell", make_confirmed_plan: "MakePlan", spare_seconds: float, step: str
) -> None:
    """It is no part of a Go. Of its four evaluations three take 8 s, the last one its limit."""
    spent = 2 * (11 + 12 + 12 + 8)  # reference, search, finalists, winner
    hours = (spent + 3 * 8 + LAST_OF_RUNG + spare_seconds) / HOUR
    plan = make_confirmed_plan(caps=Caps(evaluations=12, device_hours=hours))
    state = tell(plan, winner=8 * (0.9,)).state
    assert state.accounts.device_ms == 1000 * spent
    assert next_action(state) == step


# What cannot follow


def beside(tell: "Tell") -> "Story":
    """The reference is settled, generation 0 in progress."""
    story = tell(**NO_GENERATION)
    story.ask()
    return story


def compared(tell: "Tell") -> "Story":
    return tell(generations=(4 * (1.0,),), finalists={"average": 0.9})


def over(tell: "Tell") -> "Story":
    story = tell(**GO)
    fired, decided = decide(story.state)
    story.say(*fired, decided)
    return story


POINTS = tuple((0.1, 0.1 * c) for c in range(4))
GENERATION = GenerationAsked(generation=1, points=POINTS, seeds=(6,))
IMPOSSIBLE: list[tuple[Callable[["Tell"], "Story"], Event, str]] = [
    (beside, reference(1, 2), "expected reference panel 1, got 0"),
    (
        beside,
        ComparisonAsked(comparison="winner", number=1, configurations=(arm(),), seeds=((1,),)),
        "panel 0, got 1",
    ),
    (
        beside,
        ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=()),
        "1 arms, and seeds for 0",
    ),
    (
        beside,
        ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=((),)),
        "needs seeds, each once",
    ),
    (
        beside,
        ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=((7, 7),)),
        "needs seeds, each once",
    ),
    (
        beside,
        ComparisonAsked(comparison="winner", arms=2 * (arm(),), seeds=((7,), ())),
        "needs seeds, each",
    ),
    (beside, reserved(4711), "seed 4711 was never asked for"),
    (beside, reserved(11, candidate=1), "candidate 1, seed 11 was never asked for"),
    (beside, reserved(1, comparison="winner"), "winner panel 0 was never asked"),
    (beside, reserved(11, attempt=2), "already paid for"),
    (beside, settled(reserved(11)), "attempt 1 of (0, 11) is not open"),
    (compared, GENERATION, "the search is over"),
    (
        over,
        ComparisonAsked(comparison="rung", number=1, configurations=(arm(),), seeds=((1,),)),
        "is decided",
    ),
    (over, reserved(11, attempt=2), "the search is decided"),
    (over, Decided(grade="go", evidence="twice"), "the search is decided"),
    (
        compared,
        Amended(caps=Caps(evaluations=12), generations=2, reason="so"),
        "the search is over, what it found is being compared with the baseline: its 3 generations",
    ),
    (
        over,
        Amended(caps=Caps(evaluations=12, hours=9), generations=3, reason="so"),
        "nothing more to do",
    ),
]


@pytest.mark.parametrize(("begin", "event", "why"), IMPOSSIBLE)
def test_what_cannot_follow_beside_a_search_is_refused_and_changes_nothing(
    tell: "Tell", begin: Callable[["Tell"], "Story"], event: Event, why: str
) -> None:
    story, untouched = begin(tell), begin(tell)
    with pytest.raises(ImpossibleEventError) as caught:
        story.say(event)
    assert why in str(caught.value)
    assert story.state == untouched.state


def test_nothing_is_decided_while_an_attempt_is_in_flight(tell: "Tell") -> None:
    story = tell(generations=(4 * (1.0,),))
    story.say(
        ComparisonAsked(comparison="finalists", configurations=(arm("average"),), seeds=((7,),))
    )
    story.say(reserved(7, comparison="finalists"))
    with pytest.raises(ImpossibleEventError, match="attempts are still open"):
        story.say(Decided(grade="go", evidence="so"))


def test_the_search_reserves_nothing_once_its_finds_are_compared(tell: "Tell") -> None:
    story = tell(generations=(4 * (1.0,),))
    story.ask(seeds=(6,))
    story.say(
        ComparisonAsked(comparison="finalists", configurations=(arm("average"),), seeds=((7,),))
    )
    with pytest.raises(ImpossibleEventError, match="the search is over"):
        story.say(reserved(6, comparison=None, generation=1))


def test_evaluations_beside_the_search_are_counted_apart_and_never_more_than_planned(
    tell: "Tell",
) -> None:
    story = tell(**NO_GENERATION)
    planned = story.state.plan.comparison_evaluations
    assert (story.state.accounts.evaluations, story.state.accounts.comparisons) == (0, 11)
    seeds = tuple(range(1000, 1000 + planned))
    story.say(ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=(seeds,)))
    for seed in seeds[: planned - 11]:
        story.say(reserved(seed, comparison="winner"))
    assert story.state.accounts.apart_free == 0
    assert story.state.accounts.evaluations_free == 12
    with pytest.raises(ImpossibleEventError, match="comparison evaluations"):
        story.say(reserved(seeds[planned - 11], comparison="winner"))


def test_an_attempt_of_the_verdict_leaves_nothing_to_the_rest_of_it(
    tell: "Tell", make_confirmed_plan: "MakePlan"
) -> None:
    """70 s are spent; the winner's first attempt reserves 12 s."""
    for spare, fits in ((1e-9, True), (-1e-6, False)):
        caps = Caps(evaluations=12, device_hours=(70 + 12) / 3600 + spare)
        story = tell(make_confirmed_plan(caps=caps), finalists={"average": 0.98, "mean": 0.99})
        seeds = (tuple(range(21, 29)),)
        story.say(ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=seeds))
        story.state.accounts = story.state.accounts._replace(device_ms=70_000)
        assert (refusal_of(story.state, story.state.comparisons["winner", 0], 0) is None) == fits


def test_an_arm_is_evaluated_as_its_own_variant(tell: "Tell") -> None:
    panel = tell(control=5 * (0.9,)).state.comparison("reference")
    assert panel is not None
    assert [panel.settings(arm) for arm in range(2)] == [{}, {"model": "gpt"}]


def test_an_attempt_of_a_panel_that_was_lost_is_owed_again_and_counted_once(tell: "Tell") -> None:
    story = tell(**NO_GENERATION)
    story.say(ComparisonAsked(comparison="winner", configurations=(arm(),), seeds=((7,),)))
    first = reserved(7, comparison="winner")
    second = reserved(7, comparison="winner", attempt=2)
    story.say(first, settled(first, Status.LOST), second, settled(second))
    assert story.state.accounts.comparisons == 11 + 1
    assert story.state.accounts.lost_ms == 2000
