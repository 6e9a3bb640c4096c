"""A Ray that the run starts itself, or fails to start."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import psutil
import pytest

from budgets.events import Status
from orchestrator.execution.api import CONFIG, Attempt, EngineError
from orchestrator.execution.devices import make_devices
from orchestrator.execution.ray import RayExecutor, cluster_offer, connected
from tests.orchestrator.execution.conftest import NASTY, ONE, above, alive, assemble, the_one

pytestmark = pytest.mark.xdist_group("ray")
Make = Callable[..., Attempt]


def test_a_cluster_that_nobody_serves_is_named_with_what_to_do() -> None:
    with pytest.raises(EngineError, match=r"answers at 127.0.0.1:1 .*ray start --head"):
        RayExecutor(ONE, address="127.0.0.1:1").__enter__()


@pytest.fixture(scope="module")
def local_ray(_importable: None) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with connected("local"):
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        yield
    signal.signal(signal.SIGINT, before)


def test_a_ray_of_our_own_is_reached_from_this_machine_with_a_token_of_its_users_only(
    local_ray: None,
) -> None:
    listening = []
    for process in [psutil.Process(), *psutil.Process().children(recursive=True)]:
        with suppress(psutil.NoSuchProcess):  # an idle worker may end at any time
            listening += [
                connection.laddr.ip
                for connection in process.net_connections(kind="inet")
                if connection.status == psutil.CONN_LISTEN
            ]
    assert len(listening) > 3
    assert set(listening) <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert os.environ["RAY_AUTH_MODE"] == "token"
    assert os.environ["RAY_AUTH_TOKEN"]


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_more_devices_than_the_cluster_has_is_an_error_at_once(
    device: Any, local_ray: None
) -> None:
    assert cluster_offer()["cpu"].count > 0
    with (
        pytest.raises(EngineError, match=r"999 slots of 1 .PU asked for, but the Ray cluster has"),
        RayExecutor(make_devices(999, device)),
    ):
        pass


def test_a_killed_agent_loses_its_attempt_only_after_its_tree_is_gone_and_its_node_is_drained(
    local_ray: None, make_attempt: Make
) -> None:
    attempt = make_attempt("resist", grace_seconds=30.0)
    with RayExecutor(ONE, NASTY) as executor:
        executor.submit(attempt)
        assemble(attempt, 3, executor)
        above(attempt)[1].kill()
        assert the_one(executor.wait(60.0)).status is Status.LOST
        assert alive(attempt) == []
        (warning,) = executor.warnings
        assert "is lost (its agent has died), with 1 of 1 slots" in warning
        with pytest.raises(EngineError, match="no device of the cluster is left"):
            executor.free()


def test_an_agent_that_is_out_of_reach_for_a_while_makes_nothing_twice_and_loses_nothing(
    local_ray: None, make_attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    import ray

    attempt, answers, get = make_attempt("finish"), list[Any](), ray.get

    def failing(call: Any, **options: Any) -> Any:
        answers.append(get(call, **options))
        if len(answers) % 3:  # what it said does not arrive
            raise ray.exceptions.ActorUnavailableError("for a while", b"0" * 16)
        return answers[-1]

    with RayExecutor(ONE, NASTY) as executor:
        monkeypatch.setattr(ray, "get", failing)
        executor.submit(attempt)
        outcome = the_one(executor.wait(30.0))
        assert (outcome.status, executor.warnings) == (Status.OK, ())
        assert len([one for one in answers if one.outcomes]) > 1
        assert executor.wait(1.0) == []


def test_a_directory_that_a_node_cannot_read_ends_the_run_with_what_it_needs(
    local_ray: None, make_attempt: Make
) -> None:
    attempt = make_attempt()
    with RayExecutor(ONE) as executor:
        executor.submit(attempt)
        (attempt.directory / CONFIG).unlink()
        with pytest.raises(EngineError, match=r"config\.json.* storage that all nodes share"):
            executor.wait(20.0)
