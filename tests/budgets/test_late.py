"""What comes of an attempt that was given up: it is charged once, and told to nobody."""

from copy import deepcopy
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Late, Reserved, Status
from budgets.fold import ImpossibleEventError
from budgets.terms import Caps

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story


def late(reserved: Reserved, **fields: Any) -> Late:
    values = {
        "generation": reserved.generation,
        "candidate": reserved.candidate,
        "seed": reserved.seed,
        "attempt": reserved.attempt,
        "status": Status.OK,
        "score": 0.125,
        "seconds": 9.0,
        "charged_ms": 0,
        **fields,
    }
    return Late(**values)


@pytest.fixture
def given_up(story: "Story") -> Late:
    """Candidate 1's first attempt was lost and charged 12 s; it comes late after all."""
    story.ask()
    story.evaluate(1, Status.LOST, charged_ms=12_000)
    return late(story.current.tries[1, 5][0].reserved)


@pytest.mark.parametrize("beyond_ms", [0, 700])
def test_it_is_charged_only_beyond_what_its_settlement_charged(
    story: "Story", given_up: Late, beyond_ms: int
) -> None:
    story.say(replace(given_up, charged_ms=beyond_ms))
    accounts = story.state.accounts
    assert (accounts.device_ms, accounts.lost_ms) == (12_000 + beyond_ms, 12_000 + beyond_ms)
    assert accounts.overrun_ms == beyond_ms
    assert (accounts.evaluations, accounts.reserved_device_ms) == (0, 0)


def test_what_it_costs_counts_against_the_caps(make_story: "MakeStory") -> None:
    story = make_story(caps=Caps(evaluations=8, device_hours=24.5 / 3600))
    story.ask()
    story.evaluate(1, Status.LOST, charged_ms=12_000)
    assert story.state.accounts.refusal(12_000) is None
    story.say(late(story.current.tries[1, 5][0].reserved, charged_ms=501))
    assert story.state.accounts.refusal(12_000) is not None


def test_it_changes_no_score_no_fitness_and_nothing_owed(story: "Story", given_up: Late) -> None:
    before = deepcopy(story.current)
    story.say(given_up)
    assert story.current == before
    assert (1, 5) in story.current.owed()
    for candidate in range(4):
        story.evaluate(candidate, 1.0 + candidate)
    assert story.current.fitness() == [1.0, 2.0, 3.0, 4.0]
    assert story.state.accounts.evaluations == 4


def test_it_may_come_when_its_generation_is_told(story: "Story", given_up: Late) -> None:
    for candidate in range(4):
        story.evaluate(candidate)
    story.tell()
    story.ask()
    story.say(given_up)
    assert story.state.late == [given_up]
    assert story.state.generations[0].fitness() == [1.0] * 4


@pytest.mark.parametrize(
    "fields",
    [
        {"generation": 1},
        {"generation": -1},
        {"panel": "reference"},
        {"candidate": 2},
        {"candidate": 9},
        {"seed": 6},
        {"attempt": 2},
        {"attempt": 0},
        {"attempt": -1},
    ],
    ids=str,
)
def test_only_what_was_given_up_as_lost_can_come_late(
    story: "Story", given_up: Late, fields: dict[str, Any]
) -> None:
    before = deepcopy(story.state)
    with pytest.raises(ImpossibleEventError, match=r"never asked|not given up as lost"):
        story.say(replace(given_up, **fields))
    assert story.state == before


@pytest.mark.parametrize("status", [s for s in Status if s is not Status.LOST])
def test_an_attempt_that_was_heard_of_cannot_come_late(story: "Story", status: Status) -> None:
    story.ask()
    story.evaluate(0, 1.0 if status is Status.OK else status)
    with pytest.raises(ImpossibleEventError, match="not given up as lost"):
        story.say(late(story.current.tries[0, 5][0].reserved))


def test_an_attempt_in_flight_cannot_come_late(story: "Story") -> None:
    story.ask()
    with pytest.raises(ImpossibleEventError, match="not given up as lost"):
        story.say(late(story.reserve(0)))


def test_it_comes_once(story: "Story", given_up: Late) -> None:
    story.say(replace(given_up, charged_ms=5))
    before = deepcopy(story.state)
    for again in (given_up, replace(given_up, status=Status.NAN, score=None, charged_ms=7)):
        with pytest.raises(ImpossibleEventError, match="has come late before"):
            story.say(again)
    assert story.state == before


def test_each_attempt_at_an_evaluation_may_come_late(story: "Story", given_up: Late) -> None:
    story.evaluate(1, Status.LOST)
    story.say(given_up, replace(given_up, attempt=2))
    assert [event.attempt for event in story.state.late] == [1, 2]
