"""Whether the winner of phase 1 is better than the baseline on phase 2's fresh seeds too."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Decided, ComparisonAsked, Reserved, Settled, Status
from budgets.plan import Arm, Confirmation, Source
from budgets.state import RunState
from budgets.verdict import BASELINE, INCUMBENT
from budgets.verdict import gain_over_incumbent, incumbent_gain

if TYPE_CHECKING:
    from tests.budgets.conftest import MakeStory, Story

Scores = tuple[float | None, ...]

PICKING, VERDICT = (7,), (11, 12, 13)
POINT = (0.7, 0.7)
BASE: Scores = (1.0, 1.02, 0.98)


@pytest.fixture
def story(make_story: "MakeStory") -> "Story":
    """A phase 2 whose search has come to its end."""
    confirmation = Confirmation(
        seeds=3, picking_seeds=1, luckiest=0, control_seeds=0, incumbent=POINT
    )
    source = Source(run_id="first", head="a" * 32, variant="robust", grade="go", point=POINT)
    story = make_story(phase="phase2", confirmation=confirmation, source=source)
    story.finish()
    return story


def ask(story: "Story", name: Any, *arms: tuple[str, tuple[int, ...]]) -> None:
    asked = ComparisonAsked(
        comparison=name,
        arms=tuple(Arm(name=arm, point=POINT) for arm, _ in arms),
        seeds=tuple(seeds for _, seeds in arms),
    )
    story.say(asked)


def settle(story: "Story", name: Any, arm: int, seeds: tuple[int, ...], scores: Scores) -> None:
    for seed, score in zip(seeds, scores, strict=True):
        place: dict[str, Any] = {"panel": name, "generation": 0, "candidate": arm, "seed": seed}
        status = Status.OK if score is not None else Status.NAN
        story.say(
            Reserved(**place, attempt=1, reserve_ms=12_000),
            Settled(**place, attempt=1, status=status, score=score, charged_ms=1000, seconds=1.0),
        )


def compare(story: "Story", incumbent: Scores, winner: Scores = (0.5, 0.51, 0.49)) -> RunState:
    """All panels, with these scores on the verdict's seeds."""
    ask(story, "reference", (BASELINE, (*PICKING, *VERDICT)), (INCUMBENT, VERDICT))
    settle(story, "reference", 0, (*PICKING, *VERDICT), (1.0, *BASE))
    settle(story, "reference", 1, VERDICT, incumbent)
    ask(story, "finalists", ("average", PICKING), ("mean", PICKING))
    settle(story, "finalists", 0, PICKING, (0.5,))
    settle(story, "finalists", 1, PICKING, (0.6,))
    ask(story, "winner", ("average", VERDICT))
    settle(story, "winner", 0, VERDICT, winner)
    story.say(Decided(grade="go", arm="average", point=POINT, evidence="it gains"))
    return story.state


def test_a_phase_1_has_no_earlier_winner(make_story: "MakeStory") -> None:
    confirmation = Confirmation(seeds=3, picking_seeds=1, luckiest=0, control_seeds=0)
    story = make_story(confirmation=confirmation)
    story.finish()
    ask(story, "reference", (BASELINE, (*PICKING, *VERDICT)))
    settle(story, "reference", 0, (*PICKING, *VERDICT), (1.0, *BASE))
    assert incumbent_gain(story.state) is None
    assert gain_over_incumbent(story.state) is None
