"""Metrics that may not differ: what sets them, and what is said of an evaluation that differs."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Settled, Status
from budgets.sameness import difference
from budgets.terms import CampaignTerms, Caps, Condition, Envelope

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

FAST = {"same.fast": 1.0, "same.eager": 0.0, "loss": 2.5}


def measured(candidate: int, metrics: dict[str, float], seed: int = 5) -> Settled:
    """A healthy end that nobody has recorded."""
    return Settled(
        generation=0,
        candidate=candidate,
        seed=seed,
        attempt=1,
        status=Status.OK,
        score=1.0,
        charged_ms=1,
        seconds=1.0,
        metrics=metrics,
    )


def test_the_first_of_a_run_differs_from_nothing(story: "Story") -> None:
    story.ask()
    assert difference(story.state, measured(0, FAST)) == ""


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({}, ""),
        ({"loss": 3.0}, ""),
        ({"same.more": 7.0}, ""),
        ({"same.fast": 0.0}, "same.fast is 0 here, 1 in the run so far"),
        ({"same.eager": 0.25}, "same.eager is 0.25 here, 0 in the run so far"),
        ({"same.eager": -0.0}, ""),
    ],
)
def test_the_others_are_held_against_the_first_healthy_one(
    story: "Story", changed: dict[str, float], said: str
) -> None:
    story.ask()
    story.evaluate(0, Status.ERROR, metrics={"same.fast": 3.0})
    story.evaluate(1, metrics=FAST)
    found = difference(story.state, measured(2, {**FAST, **changed}))
    assert found == (said and f"{said}: scores of the two cannot be compared")


def test_one_that_says_nothing_differs_too(story: "Story") -> None:
    story.ask()
    story.evaluate(0, metrics=FAST)
    found = difference(story.state, measured(1, {"same.eager": 0.0}))
    assert found.startswith("same.fast is missing here, 1 in the run so far")


def test_later_ones_never_move_what_the_first_has_set(story: "Story") -> None:
    story.ask()
    story.evaluate(0, metrics={"same.fast": 1.0})
    story.evaluate(1, metrics={"same.fast": 0.0, "same.eager": 0.0})
    assert difference(story.state, measured(2, {"same.fast": 1.0, "same.eager": 1.0})) == ""
    assert difference(story.state, measured(2, {"same.fast": 0.0})) != ""
    assert difference(story.state, measured(0, {"same.fast": 1.0})) == ""  # the first itself


def test_a_first_one_without_any_asks_for_none(story: "Story") -> None:
    story.ask()
    story.evaluate(0, metrics={"loss": 1.0})
    story.evaluate(1, metrics=FAST)
    assert difference(story.state, measured(2, {"same.fast": 0.0})) == ""


def test_it_holds_across_generations_sessions_and_panels(story: "Story") -> None:
    story.score(1.0, 2.0, 3.0, 4.0, metrics=FAST)
    story.tell()
    story.open()
    story.ask()
    later = replace(measured(0, {"same.fast": 0.0}), generation=1)
    assert "same.fast is 0 here" in difference(story.state, later)
    assert "same.fast is 0 here" in difference(story.state, replace(later, panel="reference"))


def campaign(make_story: "MakeStory") -> "Story":
    """Two conditions on two seeds."""
    shape = Envelope(population=2, generations=1, seeds_per_candidate=2)
    conditions = tuple(Condition(name=name, settings={}, knobs={}) for name in ("a", "b"))
    terms: dict[str, Any] = {
        "phase": "campaign",
        "tier": None,
        "search": None,
        "resolved": shape,
        "caps": Caps(evaluations=shape.evaluations),
        "campaign": CampaignTerms(name="toy", conditions=conditions, seeds=(5, 6)),
    }
    story = make_story(**terms)
    story.ask(seeds=(5, 6), candidates=2)
    return story


def test_conditions_of_a_campaign_are_held_against_themselves_alone(
    make_story: "MakeStory",
) -> None:
    story = campaign(make_story)
    story.evaluate(0, metrics={"same.eager": 1.0})
    assert difference(story.state, measured(1, {"same.eager": 0.0})) == ""
    story.evaluate(1, metrics={"same.eager": 0.0})
    assert difference(story.state, measured(1, {"same.eager": 0.0}, seed=6)) == ""
    assert difference(story.state, measured(0, {"same.eager": 0.0}, seed=6)) != ""
