"""A campaign in a ledger: one generation, its own seeds, each evaluation once."""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import ValidationError

from budgets.events import GenerationAsked, Reserved
from budgets.liveness import label
from budgets.plan import CampaignTerms, Caps, Condition, Envelope, Plan
from budgets.rules import judge
from budgets.state import ImpossibleEventError

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan, MakeStory, Story

SEEDS = (11, 22)
BASE = (0.5, 0.5)


def terms(**fields: Any) -> CampaignTerms:
    conditions = tuple(
        Condition(name=name, settings={"x": number}, knobs={"k": float(number)})
        for number, name in enumerate("abc")
    )
    return CampaignTerms.model_validate(
        {"name": "toy", "conditions": conditions, "seeds": SEEDS, **fields}
    )


def campaign_plan(make_plan: "MakePlan", **fields: Any) -> Plan:
    shape = Envelope(population=3, generations=1, seeds_per_candidate=2)
    values = {"phase": "campaign", "tier": None, "search": None, "nominal": shape}
    caps = Caps(evaluations=6)
    return make_plan(**{**values, "resolved": shape, "caps": caps, "campaign": terms(), **fields})


@pytest.fixture
def story(make_plan: "MakePlan", make_story: "MakeStory") -> "Story":
    """A campaign of three conditions on two seeds, open, nothing asked yet."""
    return make_story(campaign_plan(make_plan))


ASKED = GenerationAsked(generation=0, points=3 * (BASE,), seeds=SEEDS)


def test_its_generation_is_its_conditions_on_its_seeds(story: "Story") -> None:
    story.say(ASKED)

    generation = story.current
    assert [generation.settings(c) for c in range(3)] == [{"x": 0}, {"x": 1}, {"x": 2}]
    assert list(generation.evaluations()) == [(c, s) for c in range(3) for s in SEEDS]
    assert [label(story.state.plan, generation, c) for c in range(3)] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("asked", "why"),
    [
        (replace(ASKED, seeds=(11, 23)), r"seeds \(11, 23\), the campaign has \(11, 22\)"),
        (replace(ASKED, seeds=(22, 11)), r"seeds \(22, 11\), the campaign has \(11, 22\)"),
        (replace(ASKED, seeds=(11,)), "3 points on 1 seeds, the plan has 3 on 2"),
        (replace(ASKED, seeds=(11, 22, 33)), "3 points on 3 seeds, the plan has 3 on 2"),
        (replace(ASKED, points=2 * (BASE,)), "2 points on 2 seeds, the plan has 3 on 2"),
        (replace(ASKED, points=4 * (BASE,)), "4 points on 2 seeds, the plan has 3 on 2"),
        (replace(ASKED, points=()), "0 points on 2 seeds, the plan has 3 on 2"),
        (replace(ASKED, generation=1), "expected generation 0, got 1"),
    ],
)
def test_any_other_generation_is_refused_and_changes_nothing(
    asked: GenerationAsked, why: str, story: "Story"
) -> None:
    with pytest.raises(ImpossibleEventError, match=why):
        story.say(asked)

    assert not story.state.generations
    story.say(ASKED)


def test_there_is_no_second_generation(story: "Story") -> None:
    story.say(ASKED)

    with pytest.raises(ImpossibleEventError, match="generation 0 is not told yet"):
        story.say(replace(ASKED, generation=1))


def test_each_evaluation_is_paid_for_once_and_no_other_at_all(story: "Story") -> None:
    story.say(ASKED)
    for candidate in range(3):
        for seed in SEEDS:
            story.evaluate(candidate, 1.0 + candidate, seed=seed)

    for candidate, seed, why in (
        (0, 11, "already paid for"),
        (3, 11, "never asked for"),
        (0, 33, "never asked for"),
    ):
        with pytest.raises(ImpossibleEventError, match=why):
            story.say(
                Reserved(generation=0, candidate=candidate, seed=seed, attempt=1, reserve_ms=12_000)
            )
    assert judge(story.state).decision == "done"
    assert story.state.accounts.evaluations == 6


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"campaign": terms(seeds=(11,))}, "is not the shape of the plan's campaign"),
        ({"campaign": terms(conditions=terms().conditions[:2])}, "is not the shape of the plan's"),
        ({"campaign": None}, "a plan of phase campaign has a campaign, and no other"),
        ({"phase": "check"}, "a plan of phase campaign has a campaign, and no other"),
        (
            {"resolved": Envelope(population=3, generations=2, seeds_per_candidate=2)},
            "exceed the cap",
        ),
    ],
)
def test_a_plan_that_is_no_campaign_is_none(
    fields: dict[str, Any], why: str, make_plan: "MakePlan"
) -> None:
    with pytest.raises(ValidationError, match=why):
        campaign_plan(make_plan, **fields)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"seeds": ()}, "at least 1 item"),
        ({"seeds": (0,)}, "greater than or equal to 1"),
        ({"seeds": (1, 1)}, "seeds must differ, got 1, 1"),
        ({"conditions": ()}, "at least 1 item"),
        ({"conditions": 2 * terms().conditions[:1]}, "different names, got twice: a"),
        ({"max_workers": 0}, "greater than or equal to 1"),
        ({"stagger_seconds": -1.0}, "greater than or equal to 0"),
        ({"stagger_seconds": float("inf")}, "finite"),
    ],
)
def test_terms_that_describe_no_campaign_are_refused(fields: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError, match=why):
        terms(**fields)


@pytest.mark.parametrize(
    ("fields", "devices", "workers"),
    [
        ({}, 4, 4),
        ({}, 9, 6),  # no more than there are evaluations
        ({"max_workers": 3}, 8, 3),
        ({"max_workers": 12}, 4, 4),
        ({"parallel": False}, 8, 1),
        ({"parallel": False, "max_workers": 4}, 8, 1),
    ],
)
def test_as_many_run_at_once_as_devices_evaluations_and_the_campaign_allow(
    fields: dict[str, Any], devices: int, workers: int
) -> None:
    assert terms(**fields).workers(devices) == workers
