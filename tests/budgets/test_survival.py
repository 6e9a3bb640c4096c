"""Whether the winner of phase 1 is better than the baseline on phase 2's fresh seeds too."""

from typing import TYPE_CHECKING, Any

import pytest

from budgets.blocks import markdown
from budgets.events import Decided, PanelAsked, Reserved, Settled, Status
from budgets.report.sentence import sentence
from budgets.rules.triggers import judge
from budgets.state import RunState
from budgets.terms import Arm, Confirmation, Source
from budgets.verdict.finalists import BASELINE, INCUMBENT
from budgets.verdict.findings import findings
from budgets.verdict.findings_text import finding_blocks
from budgets.verdict.gains import gain_over_incumbent, incumbent_gain

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
    asked = PanelAsked(
        panel=name,
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


def said(state: RunState) -> tuple[str, str]:
    """The sentence, and the verdict's lines."""
    found = findings(state)
    assert found is not None
    return sentence(state, judge(state)), "\n".join(markdown(finding_blocks(found)))


def test_a_winner_whose_gain_is_more_than_chance_survives(story: "Story") -> None:
    state = compare(story, (0.81, 0.82, 0.79))
    own, over = incumbent_gain(state), gain_over_incumbent(state)
    assert own is not None
    assert over is not None
    assert own.mean == pytest.approx(0.58 / 3)
    assert own.is_shown
    assert over.mean == pytest.approx(0.92 / 2.42)
    brief, lines = said(state)
    assert brief.startswith("Go")
    assert brief.endswith(": it gains. The winner of phase 1 survives on 3 fresh seeds.")
    assert "The winner of phase 1 survives: +19.33% (+" in lines
    assert "This search's winner over that one: +38.02% (" in lines


@pytest.mark.parametrize(
    ("scores", "why"),
    [
        ((0.5, 1.02, 0.98), "its gain on 3 fresh seeds may be chance"),
        ((1.0, 1.02, 0.98), "its gain on 3 fresh seeds may be chance"),
        ((1.3, 1.31, 1.29), "it is worse than the baseline on 3 fresh seeds"),
    ],
    ids=["luck", "none", "bad"],
)
def test_a_winner_without_a_gain_above_chance_does_not(
    story: "Story", scores: Scores, why: str
) -> None:
    brief, lines = said(compare(story, scores))
    assert brief.endswith(f"does not survive: {why}.")
    assert "The winner of phase 1 does not survive:" in lines


def test_a_winner_that_fails_on_every_seed_does_not(story: "Story") -> None:
    brief, lines = said(compare(story, (None, None, None)))
    assert brief.endswith("does not survive: it has no score on fresh seeds.")
    assert "does not survive: not measurable (no seeds) over the baseline." in lines
    assert "over that one" not in lines


def test_nothing_is_said_before_all_of_it_is_settled(story: "Story") -> None:
    ask(story, "reference", (BASELINE, (*PICKING, *VERDICT)), (INCUMBENT, VERDICT))
    settle(story, "reference", 0, (*PICKING, *VERDICT), (1.0, *BASE))
    settle(story, "reference", 1, VERDICT[:2], (0.8, 0.8))
    assert incumbent_gain(story.state) is None
    assert "phase 1" not in "".join(said(story.state))
    settle(story, "reference", 1, VERDICT[2:], (0.8,))
    assert incumbent_gain(story.state) is not None
    assert "The winner of phase 1 survives" in said(story.state)[1]
    assert gain_over_incumbent(story.state) is None


def test_a_phase_1_has_no_earlier_winner(make_story: "MakeStory") -> None:
    confirmation = Confirmation(seeds=3, picking_seeds=1, luckiest=0, control_seeds=0)
    story = make_story(confirmation=confirmation)
    story.finish()
    ask(story, "reference", (BASELINE, (*PICKING, *VERDICT)))
    settle(story, "reference", 0, (*PICKING, *VERDICT), (1.0, *BASE))
    assert incumbent_gain(story.state) is None
    assert gain_over_incumbent(story.state) is None
