"""What every executor does: inline, local and on Ray."""

import time
from collections.abc import Callable, Iterator

import psutil
import pytest

from budgets.events import Status
from orchestrator.execution import api
from orchestrator.execution.api import Attempt, EngineError, Executor, Outcome
from orchestrator.execution.devices import make_devices
from orchestrator.execution.inline import InlineExecutor
from orchestrator.execution.local import LocalExecutor
from orchestrator.execution.ray import RayExecutor
from tests.orchestrator.execution.conftest import TWO

Make = Callable[..., Attempt]


@pytest.fixture(
    scope="module",
    params=["inline", "local", pytest.param("ray", marks=pytest.mark.xdist_group("ray"))],
)
def executor(request: pytest.FixtureRequest) -> Iterator[Executor]:
    slots = make_devices(2, "cpu", "some processor")
    kinds = {"inline": InlineExecutor, "local": LocalExecutor, "ray": RayExecutor}
    with kinds[request.param](slots) as entered:
        yield entered


def evaluate_all(executor: Executor, wanted: list[Attempt]) -> dict[str, Outcome]:
    """Every attempt's outcome, with all slots kept in use."""
    arrived: dict[str, Outcome] = {}
    waiting, deadline = list(wanted), time.monotonic() + 60.0
    while len(arrived) < len(wanted):
        assert time.monotonic() < deadline, "they do not come back"
        while waiting and executor.free():
            executor.submit(waiting.pop(0))
        for outcome in executor.wait(1.0):
            assert outcome.attempt_id not in arrived
            arrived[outcome.attempt_id] = outcome
    return arrived


def test_an_evaluation_gives_the_score_the_objective_gives_and_its_summary_is_the_outcome(
    executor: Executor, make_attempt: Make
) -> None:
    attempt = make_attempt()
    (outcome,) = evaluate_all(executor, [attempt]).values()
    assert outcome.status is Status.OK
    assert outcome.measurement is not None
    assert outcome.measurement.score == 1.0
    assert outcome.device.split(" on ")[0] == "cpu"
    assert 0.0 < outcome.startup_seconds < outcome.seconds
    assert outcome.cpu_seconds > 0.0
    assert api.read_own(attempt, Outcome) == outcome
    started = api.read(api.Started, attempt.directory)
    assert started is not None
    assert started.device == outcome.device


def test_every_attempt_comes_back_once(executor: Executor, make_attempt: Make) -> None:
    wanted = [*(make_attempt() for _ in range(6)), make_attempt("nothing the registry knows")]
    outcomes = evaluate_all(executor, wanted)
    failed = outcomes.pop(wanted[-1].attempt_id)
    assert {one.status for one in outcomes.values()} == {Status.OK}
    assert failed.status is Status.ERROR
    assert "unknown objective" in failed.cause
    assert "Traceback" in (wanted[-1].directory / "stderr.txt").read_text()
    assert executor.wait(0.0) == []
    assert executor.warnings == ()


# The fork server


def test_an_attempt_whose_fork_server_died_before_it_began_is_lost(make_attempt: Make) -> None:
    with LocalExecutor(TWO) as executor:
        server = psutil.Process(executor._server._process.pid)
        server.suspend()
        executor.submit(make_attempt())
        server.kill()
        (outcome,) = executor.wait(20.0)
        assert (outcome.status, outcome.cause) == (Status.LOST, "its supervisor is gone")
        (outcome,) = evaluate_all(executor, [make_attempt()]).values()
        assert outcome.status is Status.OK


def test_a_preload_that_cannot_be_imported_is_said_at_once() -> None:
    with (
        pytest.raises(EngineError, match="No module named 'no_such_module'"),
        LocalExecutor(TWO, preload=("no_such_module",)),
    ):
        pass


# In this process


def test_what_was_still_queued_at_the_end_cost_nothing(make_attempt: Make) -> None:
    attempt = make_attempt()
    with InlineExecutor(TWO) as executor:
        executor.submit(attempt)
    outcome = api.recover(attempt, 0.0)
    assert (outcome.status, outcome.seconds) == (Status.LOST, 0.0)
