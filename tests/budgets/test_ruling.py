"""What the rules come to together, and the budget's on both sides of its boundaries."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Overridden, Status
from budgets.plan import Caps, Thresholds
from budgets.rules import (
    judge,
    readings,
    refusal_of,
    refused,
    ruling_of,
    unaffordable,
)
from tests.budgets.conftest import Story, confirmed_plan

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, MakeStory


def firing(story: "Story") -> list[str]:
    return [reading.rule for reading in judge(story.state).triggers]


# unaffordable: 4 evaluations of 2 s on two devices, of which the last reserves 12 s


def limited(make_story: "MakeStory", price: float = 0.0, **caps: float) -> "Story":
    return make_story(
        caps=Caps.model_validate({"evaluations": 8, **caps}), price_per_device_hour=price
    )


@pytest.mark.parametrize(
    ("cap", "needed", "price"),
    [
        ("device_hours", 18 / 3600, 0.0),  # 3 x 2 s, then 12 s reserved
        ("hours", 14 / 3600, 0.0),  # a round of 2 s, then 12 s reserved
        ("cost", 9.0, 1800.0),  # half a unit a second
    ],
)
@pytest.mark.parametrize("share", [1.001, 0.999])
def test_a_generation_that_a_cap_cannot_pay_is_not_begun(
    make_story: "MakeStory", cap: str, needed: float, price: float, share: float
) -> None:
    story = limited(make_story, price, **{cap: share * needed})
    trigger = unaffordable(story.state)
    assert (trigger is None) == (share > 1)
    assert judge(story.state).decision == ("continue" if share > 1 else "stop")
    if trigger is not None:
        assert (trigger.rule, trigger.generation) == ("budget", 0)
        assert trigger.flag == f"--max-{cap.replace('_', '-')}"
        assert trigger.observed == pytest.approx(needed)
        assert trigger.limit == pytest.approx(share * needed)
        assert trigger.observed is not None
        assert unaffordable(limited(make_story, price, **{cap: trigger.observed}).state) is None
    else:
        story.score(1.0, 2.0, 3.0, 4.0)  # one after the other, as the cap forces
        assert story.current.closed


@pytest.mark.parametrize(("seconds", "decision"), [(26.01, "continue"), (25.99, "stop")])
def test_the_second_generation_must_fit_into_what_the_first_left(
    make_story: "MakeStory", seconds: float, decision: str
) -> None:
    story = limited(make_story, device_hours=seconds / 3600)
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    assert judge(story.state).decision == decision


def test_a_budget_all_but_spent_on_the_last_generation_is_done_not_stopped(
    make_story: "MakeStory",
) -> None:
    story = limited(make_story, device_hours=26.01 / 3600)
    story.finish()
    assert judge(story.state).decision == "done"


# judge


def test_a_run_goes_on_until_all_its_generations_are_told(story: "Story") -> None:
    assert judge(story.state).decision == "continue"
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    story.score(1.0, 2.0, 3.0, 4.0)
    assert judge(story.state).decision == "continue"  # evaluated, not learned from
    story.tell()
    assert judge(story.state).decision == "done"


def override(story: "Story", rule: str, generation: int = 0) -> None:
    story.say(Overridden(rule=rule, generation=generation, reason="it was the node"))


def test_an_override_waives_its_rule_in_its_generation_alone(story: "Story") -> None:
    story.score(1.0, *3 * [Status.OOM], cpu_seconds=99.0)
    assert judge(story.state).decision == "pause"
    assert firing(story) == ["crash_rate", "too_few_healthy", "runaway_time"]
    override(story, "crash_rate")
    override(story, "too_few_healthy")
    override(story, "runaway_time", generation=1)
    assert firing(story) == ["runaway_time"]
    override(story, "runaway_time")
    story.tell()
    story.ask()
    assert firing(story) == []  # only the latest generation is judged


def test_a_pause_comes_before_a_stop(make_story: "MakeStory") -> None:
    story = limited(make_story, device_hours=0.01)
    story.score(1.0, 2.0, Status.ERROR, Status.ERROR, charged_ms=8000)
    story.tell()  # as with a rule edited later
    assert unaffordable(story.state) is not None
    assert judge(story.state).decision == "pause"


def test_a_generation_that_no_cap_lets_finish_is_a_stop_nobody_overrides(
    make_story: "MakeStory",
) -> None:
    story = limited(make_story, device_hours=26 / 3600)
    story.ask()
    assert judge(story.state).decision == "continue"
    story.evaluate(0, charged_ms=25_000)
    (trigger,) = judge(story.state).triggers
    assert (trigger.rule, trigger.generation, trigger.overridable) == ("budget", 0, False)


def test_every_rule_that_applies_says_what_it_observes(make_story: "MakeStory") -> None:
    kinds: dict[str, dict[str, Any]] = {
        "search": {},
        "calibration": {"phase": "calibration", "tier": None, "search": None},
        "check": {"phase": "check", "tier": None, "search": None},
    }
    always, failures = {"budget", "setup_failed", "infrastructure"}, {"crash_rate", "runaway_time"}
    failures |= {"sustained_nan", "too_few_healthy"}
    expected = {
        "search": always | failures | {"patience"},
        "calibration": always | failures,
        "check": always | {"baseline_failed"},
    }
    for kind, fields in kinds.items():
        story = make_story(**fields)
        story.ask()
        read = readings(story.state)
        assert {reading.rule for reading in read} == expected[kind]
        assert not any(reading.fires for reading in read)


def test_what_only_ends_the_search_is_no_end_of_a_run_that_still_compares() -> None:
    limits = Thresholds(patience_generations=1, patience_improve=0.5)
    for fields, decision in (({}, "continue"), ({"confirmation": None}, "stop")):
        story = Story(confirmed_plan(thresholds=limits, **fields))
        for _ in range(2):
            story.score(1.0, 1.01, 1.02, 1.03)
            story.tell()
        state = story.state
        assert (judge(state).decision, ruling_of(state).decision) == ("stop", decision)


@pytest.mark.parametrize("is_compared", [True, False])
def test_an_attempt_that_is_refused_ends_the_search(
    make_story: "MakeStory", make_confirmed_plan: "MakePlan", is_compared: bool
) -> None:
    caps = Caps(evaluations=12, device_hours=0.001)
    fields: dict[str, Any] = {} if is_compared else {"confirmation": None}
    story = make_story(make_confirmed_plan(caps=caps, **fields))
    story.ask()
    refusal = refusal_of(story.state, story.current, 0)
    assert refusal is not None
    trigger = refused(story.state, story.current, refusal)
    assert (trigger.rule, trigger.generation, trigger.decision) == ("budget", 0, "stop")
    assert (trigger.observed, trigger.limit) == (refusal.needed, refusal.free)
