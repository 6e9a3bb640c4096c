"""What to do after each verdict."""

from typing import Any

import pytest

from budgets.events import Status
from budgets.state import RunState
from budgets.verdict import decide
from orchestrator.look.answer import after_the_verdict, answer
from orchestrator.look.run import Run
from tests.budgets.conftest import confirmed_plan, told_of
from tests.orchestrator.look.golden import NOW, golden

NAN = Status.NAN
KEPT, LESS, GONE = (((1.0, 1.0), (s, s)) for s in (0.98, 0.995, 1.02))
ALIVE = 3 * ((1.0, 1.2, 1.1, 1.3),)
GO = {"winner": 8 * (0.98,)}
LONE: dict[str, Any] = {
    **GO, "finalists": {"average": 1.1, "best candidate 1": 0.9}, "best": "best candidate 1",
}  # fmt: skip
SMALL: dict[str, Any] = {"generations": ALIVE, "winner": 8 * (0.995,)}


def noisy(score: float, noise: float, count: int = 8) -> tuple[float, ...]:
    return tuple(score + noise * (-1) ** place for place in range(count))


def decided(plan: Any = None, **outcomes: Any) -> RunState:
    story = told_of(plan, **outcomes)
    fired, own = decide(story.state)
    story.say(*fired, own)
    return story.state


def advised(state: RunState) -> str:
    """The first command that follows from the verdict."""
    command = {"command": ("phase1", "--objective", "toy")}
    state.opened[-1] = state.opened[-1].model_copy(update=command)
    return after_the_verdict(Run(state, NOW))[1]


@pytest.mark.parametrize(
    ("outcomes", "words", "plan"),
    [
        ({**GO, "long_run": KEPT}, "phase2 --variant robust", {}),
        ({**GO, "long_run": KEPT}, "best judged", {"phase": "phase2"}),
        ({**GO, "long_run": LESS}, "best judged", {}),
        ({**GO, "long_run": GONE}, "phase1 --tier max", {}),
        (LONE, "phase1 --tier max", {}),
        (SMALL, "phase1 --tier max", {}),
        (SMALL, "check knobs", {"tier": "max"}),
        ({"generations": ALIVE, "winner": noisy(0.995, 0.02)}, "phase1 --tier max", {}),
        ({"generations": ALIVE, "winner": noisy(1.05, 0.02)}, "check knobs", {}),
        ({"generations": ALIVE, "winner": 8 * (1.0,)}, "check knobs", {}),
        ({"baseline": 11 * (0.0,), **GO}, "check knobs", {}),
        ({"winner": (NAN, NAN, *6 * (0.98,))}, "export table", {}),
        ({"generations": ((1.0, 1.1, NAN, 1.2), (1.0, 1.1, 1.2, 1.3)), **GO}, "export table", {}),
    ],
)
def test_every_verdict_has_its_command(
    outcomes: dict[str, Any], words: str, plan: dict[str, Any]
) -> None:
    assert words in advised(decided(confirmed_plan(**plan) if plan else None, **outcomes))


def test_a_control_that_is_better_is_advised_by_its_name() -> None:
    assert "synapses off" in answer(golden("beaten_by_a_control")).next
