"""Evaluating in this process: no isolation, the same files, honest about what was lost."""

import os
import signal
from collections.abc import Mapping
from typing import Any

import pytest

from budgets.events import Status
from objectives import registry
from objectives.api import Context, Measurement
from orchestrator.execution import files
from orchestrator.execution.api import Slots
from orchestrator.execution.inline import InlineExecutor


def test_what_was_still_queued_at_the_end_cost_nothing(slots: Slots, make_attempt: Any) -> None:
    attempt = make_attempt()
    with InlineExecutor(slots) as executor:
        executor.submit(attempt)

    outcome = files.read_summary(attempt.directory, attempt.attempt_id)

    assert outcome is not None
    assert (outcome.status, outcome.seconds) == (Status.CANCELLED, 0.0)


class Meddler:
    """Does what it should not to the process that it runs in."""

    copy = 0

    def evaluate(self, _knobs: Mapping[str, float], _seed: int, _context: Context) -> Measurement:
        os.chdir("/")
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        self.copy = os.fork()  # and both return
        raise SystemExit(3)


def test_what_an_objective_does_to_the_process_is_undone_and_its_copy_ended(
    slots: Slots, make_attempt: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    meddler = Meddler()
    monkeypatch.setattr(registry, "load", lambda _spec: meddler)
    attempt, here = make_attempt(), os.getpid()
    before = (os.getcwd(), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    with InlineExecutor(slots) as executor:
        executor.submit(attempt)
        (outcome,) = executor.wait(1.0)
    assert os.getpid() == here
    assert outcome.status is Status.ERROR
    assert outcome.cause.startswith("SystemExit: 3")
    after = (os.getcwd(), signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    assert after == before
    assert os.waitpid(meddler.copy, 0)[1] == 0
