import os
import signal
import time
from collections.abc import Callable, Iterator
from typing import Any

import psutil
import pytest

from budgets.events import Status
from orchestrator.execution import files, processes
from orchestrator.execution.api import Attempt, Slots
from orchestrator.execution.local import LocalExecutor
from orchestrator.execution.supervisor import Lease, Liveness, lease_ends

Make = Callable[..., Attempt]


@pytest.fixture
def lease() -> Iterator[Lease]:
    made = Lease(5.0)
    yield made
    made.close()


def test_a_lease_has_run_out_until_it_is_extended(lease: Lease) -> None:
    assert lease_ends(lease.descriptor) == (0.0, 5.0)
    now = time.monotonic()
    assert lease.extend(now)
    assert lease_ends(lease.descriptor) == (now + 5.0, 5.0)


def test_an_answer_heard_long_ago_extends_nothing(lease: Lease) -> None:
    now = time.monotonic()
    assert not lease.extend(now - 6.0)
    assert lease.extend(now)
    assert lease.extend(now - 1.0)  # a renewal that was overtaken
    assert lease_ends(lease.descriptor)[0] == now + 5.0


def test_liveness_is_lost_with_the_lease_the_lifeline_and_the_owner(lease: Lease) -> None:
    reader, writer = os.pipe()
    owner = processes.this_owner()
    bound = Liveness(owner, reader, lease.descriptor)
    assert bound.lost() == "the orchestrator has not renewed its lease for 5 s"
    lease.extend(time.monotonic())
    assert bound.lost() == ""
    stranger = owner.model_copy(update={"start_ticks": 1})
    assert Liveness(stranger, reader, None).lost() == "the orchestrator's process is gone"
    os.close(writer)
    assert bound.lost() == "the executor's process is gone"
    os.close(reader)


def test_an_attempt_whose_lease_is_renewed_goes_on(make_attempt: Make, slots: Slots) -> None:
    with LocalExecutor(slots, lease_seconds=60.0) as executor:
        assert executor.lease is not None
        executor.lease.extend(time.monotonic())
        executor.submit(make_attempt())
        (outcome,) = executor.wait(20.0)
    assert outcome.status is Status.OK


def test_an_attempt_whose_lease_runs_out_is_lost_and_its_tree_gone(
    make_attempt: Make, slots: Slots, nasty: str, family: Any
) -> None:
    attempt = make_attempt("resist", grace_seconds=0.3)
    with LocalExecutor(slots, entry=nasty, lease_seconds=1.0) as executor:
        assert executor.lease is not None
        executor.lease.extend(time.monotonic())
        executor.submit(attempt)
        (outcome,) = executor.wait(20.0)
        assert family.alive(attempt) == []
    assert outcome.status is Status.LOST
    assert outcome.cause == "the orchestrator has not renewed its lease for 1 s"
    assert outcome.seconds < 15.0


def test_a_supervisor_that_was_stopped_looks_at_the_lease_before_the_limit(
    make_attempt: Make, slots: Slots, nasty: str, family: Any, eventually: Any
) -> None:
    attempt = make_attempt("stop_supervisor", wall_seconds=4.0)
    with LocalExecutor(slots, entry=nasty, lease_seconds=4.0) as executor:
        assert executor.lease is not None
        executor.lease.extend(time.monotonic())
        executor.submit(attempt)
        family.assemble(attempt, 1)
        marker = files.read(files.Started, attempt.directory / files.STARTED)
        assert marker is not None
        eventually(lambda: psutil.Process(marker.pid).status() == psutil.STATUS_STOPPED)
        over = lease_ends(executor.lease.descriptor)[0] + 0.5
        eventually(lambda: time.monotonic() > over)
        os.kill(marker.pid, signal.SIGCONT)
        (outcome,) = executor.wait(20.0)
    assert outcome.status is Status.LOST
    assert "renewed its lease" in outcome.cause
