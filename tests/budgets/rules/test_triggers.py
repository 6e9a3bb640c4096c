"""What the rules come to together, and the budget's on both sides of its boundaries."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

from budgets.accounts import MS_PER_HOUR
from budgets.events import Concluded, Overridden, Status
from budgets.fold import fold
from budgets.rules.triggers import (
    disk_full,
    held_up_by,
    judge,
    readings,
    refusal_of,
    refused,
    ruling_of,
    unaffordable,
)
from budgets.terms import Caps, Envelope, Limits, Thresholds
from tests.budgets.conftest import Story, confirmed_plan
from tests.budgets.rules.small import envelope, rules

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, MakeStory


# unaffordable: 4 evaluations of 2 s on two devices, of which the last reserves 12 s


def limited(make_story: "MakeStory", price: float = 0.0, **caps: float) -> "Story":
    return make_story(
        caps=Caps.model_validate({"evaluations": 8, **caps}), price_per_device_hour=price
    )


@pytest.mark.parametrize(("seconds", "fires"), [(18.01, False), (17.99, True)])
def test_a_generation_that_device_time_cannot_pay_is_not_begun(
    make_story: "MakeStory", seconds: float, fires: bool
) -> None:
    story = limited(make_story, device_hours=seconds / 3600)  # 3 x 2 s, then 12 s reserved
    trigger = unaffordable(story.state)
    assert (trigger is not None) == fires
    assert judge(story.state).decision == ("stop" if fires else "continue")
    if trigger is not None:
        assert (trigger.rule, trigger.generation, trigger.decision) == ("budget", 0, "stop")
        assert trigger.observed == pytest.approx(18 / 3600)
        assert trigger.limit == pytest.approx(seconds / 3600)
        assert "need 18 s of device time (" in trigger.evidence
        assert "(--max-device-hours)" in trigger.evidence


def test_a_cap_of_exactly_what_is_needed_is_enough(make_story: "MakeStory") -> None:
    short = unaffordable(limited(make_story, device_hours=0.001).state)
    assert short is not None
    assert short.observed is not None
    assert unaffordable(limited(make_story, device_hours=short.observed).state) is None


def test_an_overdrawn_budget_has_nothing_free(make_story: "MakeStory") -> None:
    story = limited(make_story, device_hours=26 / 3600)
    story.ask()
    for candidate in range(3):
        story.evaluate(candidate)
    story.evaluate(3, charged_ms=40_000)  # it could not be killed in time
    story.tell()
    trigger = unaffordable(story.state)
    assert trigger is not None
    assert trigger.limit == 0
    assert ", 0 s are free" in trigger.evidence


def test_a_generation_just_affordable_can_be_finished_under_its_cap(
    make_story: "MakeStory",
) -> None:
    story = limited(make_story, device_hours=18.01 / 3600)
    assert unaffordable(story.state) is None
    story.score(1.0, 2.0, 3.0, 4.0)  # one after the other, as the cap forces
    assert story.current.closed


@pytest.mark.parametrize(("seconds", "fires"), [(14.01, False), (13.99, True)])
def test_a_generation_that_the_wall_clock_cannot_hold_is_not_begun(
    make_story: "MakeStory", seconds: float, fires: bool
) -> None:
    story = limited(make_story, hours=seconds / 3600)  # a round of 2 s, then 12 s reserved
    trigger = unaffordable(story.state)
    assert (trigger is not None) == fires
    if trigger is not None:
        assert "hours" in trigger.evidence
        assert "(--max-hours)" in trigger.evidence


@pytest.mark.parametrize(("cost", "fires"), [(9.01, False), (8.99, True)])
def test_a_generation_that_money_cannot_pay_is_not_begun(
    make_story: "MakeStory", cost: float, fires: bool
) -> None:
    story = limited(make_story, price=1800.0, cost=cost)  # half a unit a second
    trigger = unaffordable(story.state)
    assert (trigger is not None) == fires
    if trigger is not None:
        assert "need 9 of money" in trigger.evidence
        assert "(--max-cost)" in trigger.evidence


def test_without_caps_every_generation_is_affordable(story: "Story") -> None:
    assert unaffordable(story.state) is None


def test_a_generation_in_progress_is_never_called_unaffordable(make_story: "MakeStory") -> None:
    story = limited(make_story, device_hours=18.01 / 3600)
    story.ask()
    story.evaluate(0, charged_ms=12_000)
    assert unaffordable(story.state) is None


def test_the_second_generation_must_fit_into_what_the_first_left(make_story: "MakeStory") -> None:
    for seconds, expected in ((26.01, "continue"), (25.99, "stop")):
        story = limited(make_story, device_hours=seconds / 3600)
        story.score(1.0, 2.0, 3.0, 4.0)
        story.tell()
        assert judge(story.state).decision == expected


def test_a_budget_all_but_spent_on_the_last_generation_is_done_not_stopped(
    make_story: "MakeStory",
) -> None:
    story = limited(make_story, device_hours=26.01 / 3600)
    story.finish()
    assert story.state.accounts.device_hours_free == pytest.approx(10.01 / 3600)
    assert unaffordable(story.state) is None
    assert judge(story.state).decision == "done"


def test_without_a_calibration_nobody_knows_what_a_generation_needs(
    make_story: "MakeStory",
) -> None:
    story = make_story(calibration=None, caps=Caps(evaluations=8, device_hours=1 / MS_PER_HOUR))
    assert unaffordable(story.state) is None


def test_a_limit_below_the_calibrated_time_asks_for_no_less_than_that_time(
    make_story: "MakeStory",
) -> None:
    limits = Limits(wall_seconds=0.5, grace_seconds=0.1)
    caps = Caps(evaluations=8, device_hours=7.99 / 3600)
    assert unaffordable(make_story(limits=limits, caps=caps).state) is not None


# judge


def test_a_run_goes_on_until_all_its_generations_are_told(story: "Story") -> None:
    assert judge(story.state).decision == "continue"
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    story.score(1.0, 2.0, 3.0, 4.0)
    assert judge(story.state).decision == "continue"  # evaluated, not learned from
    story.tell()
    verdict = judge(story.state)
    assert (verdict.decision, verdict.triggers) == ("done", ())
    assert verdict.reason == "all 8 planned evaluations are settled"


def test_several_rules_speak_in_one_verdict(story: "Story") -> None:
    story.score(1.0, *3 * [Status.OOM], cpu_seconds=99.0)
    verdict = judge(story.state)
    assert verdict.decision == "pause"
    assert [t.rule for t in verdict.triggers] == ["crash_rate", "too_few_healthy", "runaway_time"]
    assert verdict.reason == "; ".join(t.evidence for t in verdict.triggers)


def override(story: "Story", rule: str, generation: int = 0) -> None:
    story.say(Overridden(rule=rule, generation=generation, reason="it was the node"))


def test_an_override_lets_its_generation_through_and_no_other(make_story: "MakeStory") -> None:
    story = make_story(**envelope(4, generations=3))
    for number in range(2):
        story.score(1.0, 2.0, Status.ERROR, Status.ERROR)
        assert rules(story) == ["crash_rate"]
        override(story, "crash_rate", number)
        assert judge(story.state).decision == "continue"
        story.tell()


def test_an_override_waives_its_rule_and_no_other(story: "Story") -> None:
    story.score(1.0, 2.0, Status.ERROR, Status.ERROR, cpu_seconds=99.0)
    assert rules(story) == ["crash_rate", "runaway_time"]
    override(story, "crash_rate")
    assert rules(story) == ["runaway_time"]
    override(story, "crash_rate", generation=1)
    override(story, "runaway_time", generation=1)
    assert rules(story) == ["runaway_time"]


def test_no_override_makes_the_search_learn_from_nothing(story: "Story") -> None:
    story.score(1.0, *3 * [Status.ERROR])
    override(story, "crash_rate")
    override(story, "too_few_healthy")
    assert rules(story) == ["too_few_healthy"]


def test_no_override_retries_what_keeps_getting_lost(story: "Story") -> None:
    story.ask()
    for _ in range(3):
        story.evaluate(0, Status.LOST)
    override(story, "infrastructure")
    assert rules(story) == ["infrastructure"]


def test_only_the_latest_generation_is_judged(story: "Story") -> None:
    story.score(1.0, 2.0, Status.ERROR, Status.ERROR)
    override(story, "crash_rate")
    story.tell()
    story.ask()
    assert judge(story.state).decision == "continue"


def test_a_pause_comes_before_a_stop(make_story: "MakeStory") -> None:
    story = limited(make_story, device_hours=0.01)
    story.score(1.0, 2.0, Status.ERROR, Status.ERROR, charged_ms=8000)
    story.tell()  # as with a rule edited later
    assert unaffordable(story.state) is not None
    assert judge(story.state).decision == "pause"


def test_what_is_concluded_stays_as_it_was_concluded(story: "Story") -> None:
    story.ask()
    story.evaluate(0, Status.ERROR)
    story.evaluate(1, Status.ERROR)
    assert [reading.rule for reading in held_up_by(story.state, "crash_rate")] == ["crash_rate"]
    assert held_up_by(story.state, "patience") == ()
    story.say(Concluded(reason="so"))
    assert held_up_by(story.state, "crash_rate") == ()
    verdict = judge(story.state)
    assert (verdict.decision, verdict.triggers, verdict.reason) == ("done", (), "so")


def test_a_generation_that_no_cap_lets_finish_is_a_stop_nobody_overrides(
    make_story: "MakeStory",
) -> None:
    story = limited(make_story, device_hours=26 / 3600)
    story.ask()
    assert judge(story.state).decision == "continue"
    story.evaluate(0, charged_ms=25_000)
    verdict = judge(story.state)
    assert verdict.decision == "stop"
    assert [(t.rule, t.generation, t.overridable) for t in verdict.triggers] == [
        ("budget", 0, False)
    ]
    assert "generation 0 cannot be finished: device time" in verdict.reason


def test_the_same_ledger_always_gets_the_same_verdict(
    make_story: "MakeStory", make_plan: "MakePlan"
) -> None:
    story = make_story()
    story.score(1.0, 2.0, Status.ERROR, Status.OOM, cpu_seconds=99.0)
    for length in range(1, len(story.records) + 1):
        told = story.records[:length]
        assert judge(fold(told)) == judge(fold(told))
    assert judge(fold(story.records)) == judge(story.state)
    assert len(judge(story.state).triggers) == 2


# Each for its own


def drifting_machine(story: "Story") -> None:
    story.ask(points=(AMID,) * 8)
    for candidate in range(8):
        story.evaluate(candidate, cpu_seconds=5.0)


def failing_node(story: "Story") -> None:
    story.ask(points=(AMID,) * 8)
    for candidate in range(4):
        story.evaluate(candidate, Status.LOST)
    for _ in range(2):
        story.evaluate(3, Status.LOST)


def region_of_nans(story: "Story") -> None:
    story.ask(points=tuple((0.3, 0.2 + 0.08 * c) for c in range(8)))
    for candidate in range(8):
        story.evaluate(candidate, Status.NAN if candidate > 4 else 1.0)


def broken_code(story: "Story") -> None:
    story.ask(points=(AMID,) * 8)
    for candidate in range(8):
        story.evaluate(candidate, Status.ERROR if candidate > 5 else 1.0)


def full_plateau(story: "Story") -> None:
    for _ in range(3):
        story.ask(points=(AMID,) * 8)
        for candidate in range(8):
            story.evaluate(candidate)
        story.tell()


AMID = (0.5, 0.5)


@pytest.mark.parametrize(
    ("trouble", "rule"),
    [
        (drifting_machine, "runaway_time"),
        (failing_node, "infrastructure"),
        (region_of_nans, "sustained_nan"),
        (broken_code, "crash_rate"),
        (full_plateau, "patience"),
    ],
)
def test_each_trouble_fires_its_own_rule_and_no_other(
    make_story: "MakeStory", trouble: "Callable[[Story], None]", rule: str
) -> None:
    story = make_story(**envelope(8, 4), thresholds=Thresholds(patience_generations=2))
    trouble(story)
    assert [reading.rule for reading in readings(story.state) if reading.fires] == [rule]
    assert rules(story) == [rule]


def test_nans_at_the_ends_of_a_range_are_nobodys_trouble(make_story: "MakeStory") -> None:
    story = make_story(**envelope(8, 4))
    story.ask(points=tuple((0.3, 0.999 if c > 4 else 0.5) for c in range(8)))
    for candidate in range(8):
        story.evaluate(candidate, Status.NAN if candidate > 4 else 1.0)
    assert rules(story) == []


def test_every_rule_that_applies_says_what_it_observes(make_story: "MakeStory") -> None:
    search = make_story(**envelope(8))
    search.ask()
    calibration = make_story(phase="calibration", tier=None, search=None, calibration=None)
    calibration.ask()
    ends = check(make_story)
    always = {"budget", "setup_failed"}
    everywhere = always | {"infrastructure"}
    failures = {"crash_rate", "sustained_nan", "too_few_healthy", "runaway_time"}
    for story, expected in (
        (search, everywhere | failures | {"patience"}),
        (calibration, everywhere | failures),
        (ends, everywhere | {"baseline_failed"}),
        (make_story(), always),
    ):
        read = readings(story.state)
        assert {reading.rule for reading in read} == expected
        assert not any(reading.fires for reading in read)
        assert all(reading.evidence for reading in read)


# A check


def check(make_story: "MakeStory", **fields: Any) -> "Story":
    """The baseline and four ends of ranges on two seeds."""
    shape = Envelope(population=5, generations=1, seeds_per_candidate=2)
    terms = {
        "phase": "check",
        "tier": None,
        "search": None,
        "resolved": shape,
        "caps": Caps(evaluations=shape.evaluations),
        **fields,
    }
    story = make_story(**terms)
    story.ask(seeds=(5, 6))
    return story


def test_ends_of_ranges_that_fail_or_take_long_are_findings_and_pause_nothing(
    make_story: "MakeStory",
) -> None:
    story = check(make_story)
    for candidate in range(5):
        for seed in (5, 6):
            outcome = Status.ERROR if candidate else 1.0
            story.evaluate(candidate, outcome, seed=seed, cpu_seconds=100.0)
            assert not rules(story)
    assert judge(story.state).decision == "done"


def test_a_baseline_that_fails_once_pauses_a_check_for_good(make_story: "MakeStory") -> None:
    story = check(make_story)
    story.evaluate(0, 1.0)
    assert not rules(story)
    story.evaluate(0, Status.OOM, seed=6)
    (trigger,) = judge(story.state).triggers
    assert (trigger.rule, trigger.decision) == ("baseline_failed", "pause")
    assert (trigger.observed, trigger.limit) == (1, 0)
    assert trigger.evidence.startswith("the baseline failed on seed 6: oom (it was oom)")
    assert "evaluation.seed" in trigger.evidence
    story.say(Overridden(rule="baseline_failed", generation=0, reason="let me"))
    assert rules(story) == ["baseline_failed"]


def test_a_baseline_that_was_lost_and_then_healthy_is_no_failure(make_story: "MakeStory") -> None:
    story = check(make_story)
    story.evaluate(0, Status.LOST)
    story.evaluate(0, 1.0)
    assert not rules(story)


def test_outside_a_check_candidate_0_is_like_any_other(story: "Story") -> None:
    story.ask()
    story.evaluate(0, Status.ERROR)
    assert not rules(story)


def test_infrastructure_and_budget_hold_a_check_up_like_any_run(make_story: "MakeStory") -> None:
    lost = check(make_story)
    for _ in range(3):
        lost.evaluate(1, Status.LOST)
    capped = check(make_story, caps=Caps(evaluations=10, device_hours=25 / 3600))
    for seed in (5, 6):
        capped.evaluate(0, seed=seed, charged_ms=10_000)
    assert rules(lost) == ["infrastructure"]
    assert rules(capped) == ["budget"]


def ended_by_patience(story: "Story") -> "Story":
    for _ in range(2):
        story.score(1.0, 1.01, 1.02, 1.03)
        story.tell()
    return story


def test_what_only_ends_the_search_is_no_end_of_a_run_that_still_compares(
    make_story: "MakeStory",
) -> None:
    limits = Thresholds(patience_generations=1, patience_improve=0.5)
    compared, plain = (
        confirmed_plan(thresholds=limits),
        confirmed_plan(thresholds=limits, confirmation=None),
    )
    for plan, decision in ((compared, "continue"), (plain, "stop")):
        state = ended_by_patience(Story(plan)).state
        assert (judge(state).decision, ruling_of(state).decision) == ("stop", decision)


# What the walk runs into


def test_a_full_disk_is_a_pause_that_nobody_overrides() -> None:
    trigger = disk_full(3, "no space is left")
    assert (trigger.rule, trigger.generation, trigger.decision) == ("storage", 3, "pause")
    assert (trigger.evidence, trigger.overridable) == ("no space is left", False)


@pytest.mark.parametrize("is_compared", [True, False])
def test_an_attempt_that_is_refused_ends_the_search_and_says_what_the_verdict_is_due(
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
    assert trigger.evidence.startswith(f"generation 0 cannot be finished: {refusal}")
    due = "when 2 min 06 s of device time are left to the verdict"
    assert (due in trigger.evidence) == is_compared
