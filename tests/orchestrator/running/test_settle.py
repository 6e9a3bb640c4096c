"""What goes on record of how an attempt ended."""

import pytest

from budgets.events import Reserved, Status
from orchestrator.execution.child import MOST_CHARACTERS, MOST_SETUP_CHARACTERS
from orchestrator.execution.evaluate import Outcome
from orchestrator.running.settle import settled


@pytest.mark.parametrize(
    ("kind", "most"), [("SetupError", MOST_SETUP_CHARACTERS), ("ValueError", MOST_CHARACTERS)]
)
def test_the_advice_at_the_end_of_a_setup_error_is_kept(kind: str, most: int) -> None:
    reserved = Reserved(generation=0, candidate=0, seed=1, attempt=1, reserve_ms=1000)
    cause = f"{kind}: {'x' * 900} begin another run with --run-id"
    outcome = Outcome(attempt_id="1", status=Status.ERROR, cause=cause, seconds=1.0)

    kept = settled(reserved, outcome).cause

    assert kept == (cause if len(cause) <= most else f"{cause[: most - 3]}...")
