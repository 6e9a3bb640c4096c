"""Evaluating in this process: no isolation, the same files, honest about what was lost."""

from typing import Any

from budgets.events import Status
from orchestrator.execution import attempts
from orchestrator.execution.evaluate import Slots
from orchestrator.execution.executors import InlineExecutor
from orchestrator.execution.recovery import Unknown, recover


def test_what_was_still_queued_at_the_end_cost_nothing(slots: Slots, make_attempt: Any) -> None:
    attempt = make_attempt()
    with InlineExecutor(slots) as executor:
        executor.submit(attempt)

    outcome = attempts.read_summary(attempt.directory, attempt.attempt_id)

    assert outcome is not None
    assert (outcome.status, outcome.seconds) == (Status.CANCELLED, 0.0)


def test_what_was_evaluated_has_been_marked_as_started(slots: Slots, make_attempt: Any) -> None:
    attempt = make_attempt()
    with InlineExecutor(slots) as executor:
        executor.submit(attempt)
        assert [o.status for o in executor.wait(1.0)] == [Status.OK]
    (attempt.directory / attempts.SUMMARY).unlink()  # as if killed just before it was written

    assert isinstance(recover(attempt.directory, attempt.attempt_id, 0.1), Unknown)
