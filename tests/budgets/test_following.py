"""A run follows another one's Go, or a person's word."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Overridden
from budgets.following import beginning
from budgets.rules import BEFORE_THE_RUN, RULES, follows_a_go
from budgets.ruling import judge
from budgets.terms import Inherited, SearchTerms, Source

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, MakeStory


def source(**fields: Any) -> Source:
    values = {
        "run_id": "target-sphere-s1",
        "head": "a" * 32,
        "variant": "robust",
        "grade": "go",
        "point": (0.5, 0.5),
        **fields,
    }
    return Source.model_validate(values)


@pytest.mark.parametrize(
    ("grade", "held_up"),
    [("go", []), ("go_persists", []), ("no_go", ["go"]), ("", ["go"])],
)
def test_nothing_but_a_go_is_followed(
    make_story: "MakeStory", grade: str, held_up: list[str]
) -> None:
    verdict = judge(make_story(source=source(grade=grade)).state)
    assert [trigger.rule for trigger in verdict.triggers] == held_up
    assert verdict.decision == ("pause" if held_up else "continue")


def test_a_run_that_follows_nothing_is_held_up_by_nothing(make_story: "MakeStory") -> None:
    assert judge(make_story().state).decision == "continue"


def test_knobs_that_nobody_has_shown_to_matter_hold_a_run_up(make_story: "MakeStory") -> None:
    story = make_story(source=source(added=("a", "b", "c"), unproven=("a", "c")))
    (trigger,) = judge(story.state).triggers
    assert (trigger.rule, trigger.observed, trigger.generation) == ("unproven_knobs", 2, 0)
    assert trigger.limit == 0
    assert trigger.evidence.endswith("move the score: a, c")


def test_a_person_lets_each_pass_on_record_and_for_good(make_story: "MakeStory") -> None:
    story = make_story(source=source(grade="", added=("a",), unproven=("a",)))
    assert [t.rule for t in judge(story.state).triggers] == list(BEFORE_THE_RUN)
    story.say(Overridden(rule="go", generation=0, reason="it will do"))
    assert [t.rule for t in judge(story.state).triggers] == ["unproven_knobs"]
    story.say(Overridden(rule="unproven_knobs", generation=0, reason="it will do"))
    assert judge(story.state).decision == "continue"
    story.score(1.0, 1.1, 1.2, 1.3)
    story.tell()
    assert judge(story.state).decision == "continue"


def test_each_of_its_rules_is_one_that_can_be_overridden() -> None:
    read = list(follows_a_go(source(grade="no_go", added=("a",), unproven=("a",))))
    assert [one.rule for one in read if one.fires and one.overridable] == list(BEFORE_THE_RUN)
    assert set(BEFORE_THE_RUN) <= set(RULES)


def test_what_speaks_for_it_is_read_too() -> None:
    (go,) = follows_a_go(source())
    assert (go.fires, go.evidence) == (False, "target-sphere-s1 said Go")
    _, proven = follows_a_go(source(added=("a", "b")))
    assert (proven.fires, proven.observed) == (False, 0)


@pytest.mark.parametrize(
    ("fields", "new"),
    [
        ({}, ""),
        ({"new": ("a", "b")}, ", with 2 more knobs, a, b"),
        ({"moved": ("c",)}, ", with another range of c"),
        ({"new": ("a",), "moved": ("c",)}, ", with 1 more knob, a, with another range of c"),
    ],
)
def test_a_search_that_starts_where_another_stood_says_so(
    make_plan: "MakePlan", fields: dict[str, Any], new: str
) -> None:
    inherited = Inherited(run_id="earlier", head="a" * 32, **fields)
    search = SearchTerms(seed=7, sigma0=0.2, start=(0.5, 0.5), inherited=inherited)
    assert beginning(make_plan(search=search)) == (
        f"It starts where earlier stood{new}; none of its scores count here."
    )
