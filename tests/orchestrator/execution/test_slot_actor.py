import time
from collections.abc import Callable, Iterator

import pytest

from budgets.events import Status
from orchestrator.execution import attempts
from orchestrator.execution.attempts import to_json, write_config
from orchestrator.execution.evaluate import Attempt, Slots
from orchestrator.execution.launch import Program
from orchestrator.execution.slot_actor import Answer, Ready, SlotActor, SlotSettings

Make = Callable[..., Attempt]


@pytest.fixture
def actor() -> Iterator[SlotActor]:
    """A slot in this process, as Ray would make it in a worker."""
    settings = SlotSettings(
        slots=Slots(1, "cpu", "", 1),
        launcher="fork",
        preload=(),
        program=Program(),
        lease_seconds=30.0,
        release_seconds=0.0,
    )
    made = SlotActor(to_json(settings), (), lambda: "a node")
    yield made
    made._executor.__exit__()


def test_a_slot_evaluates_while_the_orchestrator_hears_it(
    actor: SlotActor, make_attempt: Make
) -> None:
    ready = Ready.model_validate_json(actor.ready())
    assert (ready.node_id, ready.withdrawn) == ("a node", ())
    heard = actor.renew(ready.clock)
    assert heard >= ready.clock
    attempt = make_attempt()
    write_config(attempt)
    answer = Answer.model_validate_json(actor.run(to_json(attempt), heard))
    assert (answer.outcome.status, answer.withdrawn) == (Status.OK, ())


def test_a_request_that_lay_in_the_queue_of_a_frozen_slot_starts_nothing(
    actor: SlotActor, make_attempt: Make
) -> None:
    attempt = make_attempt()
    write_config(attempt)
    answer = Answer.model_validate_json(actor.run(to_json(attempt), time.monotonic() - 31.0))
    outcome = answer.outcome
    assert (outcome.status, outcome.cause, outcome.seconds) == (
        Status.LOST,
        "it was never started",
        0.0,
    )
    assert not (attempt.directory / attempts.STARTED).exists()
    assert attempts.read_summary(attempt.directory, attempt.attempt_id) == outcome
