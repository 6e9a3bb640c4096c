"""What stands in the cells of a campaign, told evaluation by evaluation."""

from typing import TYPE_CHECKING

import pytest

from budgets.matrix import Cell, matrix_of
from budgets.events import GenerationAsked, Status
from budgets.plan import CampaignTerms, Caps, Condition, Envelope

if TYPE_CHECKING:
    from tests.budgets.campaign.conftest import Campaigns
    from tests.budgets.conftest import MakeStory, Story

SEEDS = (11, 22)
PENDING = Cell(status="pending")


@pytest.fixture
def story(make_story: "MakeStory") -> "Story":
    """A campaign of two conditions on two seeds, open, nothing asked yet."""
    conditions = tuple(Condition(name=name, settings={}, knobs={}) for name in "ab")
    shape = Envelope(population=2, generations=1, seeds_per_candidate=2)
    return make_story(
        phase="campaign",
        tier=None,
        search=None,
        resolved=shape,
        caps=Caps(evaluations=4),
        campaign=CampaignTerms(name="toy", conditions=conditions, seeds=SEEDS),
    )


def test_before_its_generation_is_asked_every_cell_is_pending(story: "Story") -> None:
    matrix = matrix_of(story.state)
    assert matrix.rows == 2 * ((PENDING, PENDING),)
    assert matrix.unsettled == 4


def test_a_cell_is_its_evaluation_by_condition_and_seed(story: "Story") -> None:
    story.say(GenerationAsked(generation=0, points=2 * ((0.5, 0.5),), seeds=SEEDS))
    story.evaluate(0, 1.25, seed=22)
    story.evaluate(1, Status.OOM, seed=11)
    story.reserve(1, seed=22)

    matrix = matrix_of(story.state)
    healthy = Cell(status="ok", score=1.25, seconds=2.0, settled=1)
    failed = Cell(status="oom", seconds=2.0, settled=1, note="it was oom")
    assert matrix.rows == ((PENDING, healthy), (failed, Cell(status="running")))
    assert matrix.counts == {"ok": 1, "oom": 1, "running": 1, "pending": 1}
    assert matrix.scores(0) == {22: 1.25}
    assert matrix.scores(1) == {}


def test_a_cell_tried_again_says_which_attempt_is_next_or_in_flight(story: "Story") -> None:
    story.say(GenerationAsked(generation=0, points=2 * ((0.5, 0.5),), seeds=SEEDS))
    story.evaluate(0, Status.LOST, seed=11)
    assert matrix_of(story.state).rows[0][0] == Cell(status="pending", note="attempt 2")
    story.reserve(0, seed=11)
    assert matrix_of(story.state).rows[0][0] == Cell(status="running", note="attempt 2")


def test_a_search_is_no_campaign(make_story: "MakeStory") -> None:
    with pytest.raises(ValueError, match="small is no campaign: it is a phase1"):
        matrix_of(make_story().state)


def test_statuses_that_nobody_knows_are_counted_last(campaigns: "Campaigns") -> None:
    matrix = campaigns.of({"x": (1.0, None)})
    stopped = Cell(status="stopped")
    rows = ((stopped, *matrix.rows[0]),)
    assert list(matrix.model_copy(update={"rows": rows}).counts) == ["ok", "pending", "stopped"]
