"""Leases and limits: what ends an attempt, and when its result still counts."""

import os
import time
from collections.abc import Callable, Iterator

import pytest

from budgets.events import Status
from objectives.api import Measurement
from orchestrator.execution import processes
from orchestrator.execution.api import Attempt
from orchestrator.execution.files import MEASUREMENT, Report, write_model
from orchestrator.execution.supervisor import Lease, Supervision, lease_deadline
from orchestrator.execution.watch import Watch

Make = Callable[..., Attempt]


@pytest.fixture
def lease() -> Iterator[Lease]:
    made = Lease(5.0)
    yield made
    made.close()


def test_a_lease_has_run_out_until_it_is_extended(lease: Lease) -> None:
    assert lease_deadline(lease.descriptor) == (0.0, 5.0)
    now = time.monotonic()
    assert lease.extend(now)
    assert lease_deadline(lease.descriptor) == (now + 5.0, 5.0)


def test_an_answer_heard_long_ago_extends_nothing(lease: Lease) -> None:
    now = time.monotonic()
    assert not lease.extend(now - 6.0)
    assert lease.extend(now)
    assert lease.extend(now - 1.0)  # a renewal that was overtaken
    assert lease_deadline(lease.descriptor)[0] == now + 5.0


def test_a_result_is_unwanted_without_the_lease_the_lifeline_or_the_owner(lease: Lease) -> None:
    reader, writer = os.pipe()
    owner = processes.this_owner()
    leased = Supervision(-1, reader, lease.descriptor, "", 1, "")
    assert leased.why_unwanted(owner) == "the orchestrator has not renewed its lease for 5 s"
    lease.extend(time.monotonic())
    assert leased.why_unwanted(owner) == ""
    stranger = owner.model_copy(update={"start_ticks": 1})
    unleased = Supervision(-1, reader, None, "", 1, "")
    assert unleased.why_unwanted(stranger) == "the orchestrator's process is gone"
    os.close(writer)
    assert leased.why_unwanted(owner) == "the executor's process is gone"
    os.close(reader)


# What a watch makes of its end


@pytest.fixture
def watch(make_attempt: Make) -> Watch:
    """Of an attempt that began five seconds ago, whose result nobody waits for any more."""
    return Watch(make_attempt(), lambda: "unwanted", time.monotonic() - 5.0)


def says(watch: Watch, called_at: float | None = None) -> None:
    """The evaluation's own word: it is done."""
    report = Report(
        attempt_id=watch.attempt.attempt_id,
        status=Status.OK,
        measurement=Measurement(score=1.5),
        called_at=called_at,
    )
    write_model(watch.attempt.directory / MEASUREMENT, report)
    watch.trainer = 1


@pytest.mark.parametrize(
    ("violation", "counts"),
    [
        (Status.LOST, True),  # a result that was there when its reader vanished is paid for
        (Status.CANCELLED, True),
        (Status.TIMEOUT, False),
        (Status.OOM, False),
    ],
)
def test_a_result_counts_unless_its_evaluation_broke_a_limit(
    watch: Watch, violation: Status, counts: bool
) -> None:
    says(watch)
    watch.violation = (violation, "why")
    outcome = watch.outcome("cpu")
    assert outcome.status is (Status.OK if counts else violation)
    assert outcome.measurement == (Measurement(score=1.5) if counts else None)


@pytest.mark.parametrize(("called_after", "startup"), [(2.0, 2.0), (-1.0, 0.0), (1e6, 1e6)])
def test_the_start_up_ends_where_the_objective_was_called_within_the_attempts_time(
    watch: Watch, called_after: float, startup: float
) -> None:
    says(watch, watch.began + called_after)
    watch.exit_code = 0
    outcome = watch.outcome("cpu")
    assert outcome.startup_seconds == pytest.approx(min(startup, outcome.seconds))


@pytest.mark.parametrize("limits", [{"wall_seconds": 2.0}, {"stall_seconds": 2.0}])
def test_a_limit_that_passed_while_nobody_wanted_the_result_is_no_timeout(
    make_attempt: Make, limits: dict[str, float]
) -> None:
    """The lease may have run out since it was looked at: this process may have been stopped."""
    attempt = make_attempt(**limits)
    watch = Watch(attempt, lambda: "its lease has run out", time.monotonic() - 5.0)
    watch._check()
    assert watch.violation is not None
    assert watch.violation[0] is Status.LOST
