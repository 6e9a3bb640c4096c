"""What the best of a run is: one question where something is recommended, two after a No-Go."""

from dataclasses import replace
from pathlib import Path

from budgets.state import RunState
from budgets.verdict import stood_for, winner
from orchestrator.records.objective import best_point
from orchestrator.records.runs import load_state

GOLDEN = Path(__file__).parents[2] / "golden"
ELSEWHERE = (0.125, 0.125)


def ended_in_a_no_go() -> RunState:
    """A search whose winner is not the mean it stood for, and was no gain."""
    state = load_state(GOLDEN / "runs/go")
    assert state.decided is not None
    state.decided = replace(state.decided, grade="no_go", no_go="below_noise", point=None)
    panel = state.comparisons.get("finalists")
    assert panel is not None
    panel.configurations = tuple(
        arm.model_copy(update={"point": ELSEWHERE}) for arm in panel.configurations
    )
    return state


def test_after_a_no_go_a_search_goes_on_from_where_it_stood_not_from_its_finalist() -> None:
    state = ended_in_a_no_go()
    arm = winner(state)
    assert arm is not None
    assert best_point(state) == stood_for(state) != arm.point


def test_after_a_no_go_what_is_trained_or_shown_is_what_was_compared() -> None:
    assert best_point(ended_in_a_no_go(), compared=True) == ELSEWHERE
