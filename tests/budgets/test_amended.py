"""Caps change by a person's word on record, and by nothing else."""

from copy import deepcopy
from typing import TYPE_CHECKING, Any

import pytest

from budgets.accounts import MS_PER_HOUR
from budgets.events import Amended, Concluded
from budgets.plan import Caps, Envelope
from budgets.rules import judge
from budgets.state import ImpossibleEventError, fold

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

WIDE: dict[str, Any] = {"evaluations": 8, "device_hours": 1.0, "hours": 1.0, "cost": 1000.0}


def amended(generations: int = 2, reason: str = "the queue is short", **caps: Any) -> Amended:
    return Amended(caps=Caps(**{"evaluations": 8, **caps}), generations=generations, reason=reason)


def half_way(make_story: "MakeStory", **caps: Any) -> "Story":
    """One of two generations told; one attempt in flight. 20 s of devices are spent or held."""
    story = make_story(
        caps=Caps.model_validate({**WIDE, **caps}),
        price_per_device_hour=3600.0,  # one unit a second
    )
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    story.ask()
    story.elapsed_ms = 8000
    story.reserve(0)
    return story


@pytest.mark.parametrize(
    ("name", "value"),
    [("device_hours", 0.5), ("device_hours", 2.0), ("hours", 0.5), ("hours", 2.0), ("cost", 200.0)],
)
def test_a_cap_is_raised_and_lowered(make_story: "MakeStory", name: str, value: float) -> None:
    story = half_way(make_story)
    caps = story.state.plan.caps.model_copy(update={name: value})
    story.say(Amended(caps=caps, generations=2, reason="so"))
    assert story.state.accounts.caps == story.state.plan.caps == caps


def test_a_raised_cap_lets_more_start(make_story: "MakeStory") -> None:
    story = half_way(make_story, device_hours=21 / 3600)
    assert story.state.accounts.refusal(12_000) is not None
    story.say(amended(**{**WIDE, "device_hours": 32 / 3600}))
    assert story.state.accounts.refusal(12_000) is None
    assert story.state.accounts.refusal(12_001) is not None


@pytest.mark.parametrize(
    ("name", "enough", "what"),
    [
        ("device_hours", 20.0001 / 3600, "device time"),
        ("hours", 20.0001 / 3600, "wall clock"),
        ("cost", 20.0001, "money"),
    ],
)
def test_no_cap_is_lowered_below_what_is_spent_or_reserved(
    make_story: "MakeStory", name: str, enough: float, what: str
) -> None:
    story = half_way(make_story)
    before = deepcopy(story.state)
    with pytest.raises(ImpossibleEventError, match=f"more {what} is spent or reserved"):
        story.say(amended(**{**WIDE, name: enough * 0.999}))
    assert story.state == before
    story.say(amended(**{**WIDE, name: enough}))
    assert getattr(story.state.plan.caps, name) == enough


def test_a_cap_already_exceeded_holds_up_no_change_of_another(make_story: "MakeStory") -> None:
    story = make_story(caps=Caps(evaluations=8, device_hours=13 / 3600))
    story.ask()
    story.evaluate(0, charged_ms=40_000)  # it could not be killed in time
    caps = story.state.plan.caps
    with pytest.raises(ImpossibleEventError, match="more device time is spent"):
        story.say(amended(device_hours=14 / 3600))
    story.say(Amended(caps=caps.model_copy(update={"hours": 1.0}), generations=2, reason="so"))
    story.say(amended(device_hours=60 / 3600, hours=1.0))
    assert judge(story.state).decision == "continue"


def test_a_cap_on_money_needs_a_price(story: "Story") -> None:
    before = deepcopy(story.state)
    with pytest.raises(ImpossibleEventError, match="began without a price"):
        story.say(amended(cost=5.0))
    assert story.state == before


def test_generations_follow_evaluations(make_story: "MakeStory") -> None:
    story = half_way(make_story)
    story.say(amended(generations=5, **{**WIDE, "evaluations": 20}))
    assert story.state.plan.resolved.generations == 5
    assert story.state.plan.resolved.evaluations == 20
    story.say(amended(generations=3, **{**WIDE, "evaluations": 12}))
    assert story.state.plan.resolved.generations == 3


@pytest.mark.parametrize(
    ("event", "why"),
    [
        (amended(3, **WIDE), "8 evaluations cannot pay for 3 generations"),
        (amended(1, **WIDE), "2 generations are begun, and these caps pay for 1 alone"),
    ],
)
def test_generations_that_do_not_fit_are_refused(
    make_story: "MakeStory", event: Amended, why: str
) -> None:
    story = half_way(make_story)
    before = deepcopy(story.state)
    with pytest.raises(ImpossibleEventError, match=why):
        story.say(event)
    assert story.state == before


def test_more_generations_are_asked_and_told_like_planned_ones(story: "Story") -> None:
    story.finish()
    assert judge(story.state).decision == "done"
    story.say(amended(3, evaluations=12))
    assert judge(story.state).decision == "continue"
    story.finish()
    assert (story.state.finished, judge(story.state).decision) == (3, "done")


def test_a_run_cut_short_where_it_stands_is_done(make_story: "MakeStory") -> None:
    story = make_story()
    story.score(1.0, 2.0, 3.0, 4.0)
    story.tell()
    story.say(amended(1, evaluations=4))
    assert judge(story.state).decision == "done"


def test_a_concluded_run_re_opens_when_there_is_more_to_do(story: "Story") -> None:
    story.finish()
    story.say(Concluded(reason="all done"))
    story.say(amended(3, evaluations=12))
    assert story.state.concluded is None
    assert judge(story.state).decision == "continue"
    story.open()
    story.finish()
    story.say(Concluded(reason="all done, again"))


@pytest.mark.parametrize(
    "event", [amended(2, device_hours=2.0), amended(2, evaluations=9), amended(1, evaluations=4)]
)
def test_a_concluded_run_stays_so_when_there_is_not(story: "Story", event: Amended) -> None:
    story.finish()
    story.say(Concluded(reason="all done"))
    before = deepcopy(story.state)
    with pytest.raises(ImpossibleEventError):
        story.say(event)
    assert story.state == before


def test_what_was_agreed_stays_on_record(story: "Story") -> None:
    agreed = story.state.plan
    story.say(amended(4, evaluations=16, hours=3.0))
    assert story.state.planned == agreed
    assert story.state.plan.resolved == Envelope(population=4, generations=4, seeds_per_candidate=1)
    assert fold(story.records) == story.state


def test_amending_costs_no_time_and_no_money(make_story: "MakeStory") -> None:
    story = half_way(make_story)
    spent = story.state.accounts
    story.elapsed_ms = 3
    story.say(amended(**{**WIDE, "hours": 2.0}))
    after = story.state.accounts
    assert (after.device_ms, after.wall_ms, after.holds) == (
        spent.device_ms,
        spent.wall_ms,
        spent.holds,
    )
    assert after.committed_wall_ms == 20_000
    assert after.hours_free == pytest.approx(2 - 20_000 / MS_PER_HOUR)
