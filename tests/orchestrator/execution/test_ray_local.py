"""A Ray that the run starts itself, or fails to start."""

import os
import re
import signal
import stat
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import psutil
import pytest

from budgets.events import Status
from orchestrator.execution import ray
from orchestrator.execution.api import Attempt, EngineError, Slots
from orchestrator.execution.ray import RayExecutor, cluster_offer, connected
from tests.orchestrator.execution.conftest import Family, the_one

pytestmark = pytest.mark.xdist_group("ray")
Make = Callable[..., Attempt]
ONE = Slots(1, "cpu", "", 1)


@pytest.fixture(scope="module")
def local_ray(_importable: None) -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    with connected("local", "tests"):
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
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH", Path.home() / ".ray/auth_token"))
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert os.environ["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_more_devices_than_the_cluster_has_is_an_error_at_once(
    device: Any, local_ray: None
) -> None:
    assert cluster_offer().where == "the Ray cluster of 1 node"
    with (
        pytest.raises(EngineError, match=r"999 slots of 1 .PU asked for, but the Ray cluster has"),
        RayExecutor(Slots(999, device, "", 1)),
    ):
        pass


def test_a_killed_agent_loses_its_attempt_only_after_its_tree_is_gone(
    local_ray: None, make_attempt: Make, nasty: str, family: Family, eventually: Any
) -> None:
    attempt = make_attempt("resist", grace_seconds=30.0)
    with RayExecutor(ONE, entry=nasty) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 3, executor)
        family.above(attempt)[1].kill()
        assert the_one(executor.wait(60.0)).status is Status.LOST
        assert family.alive(attempt) == []
        (warning,) = executor.warnings
        assert "its agent has died" in warning
        eventually(executor.free)
        executor.submit(make_attempt("finish"))
        assert the_one(executor.wait(60.0)).status is Status.OK


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("local", Exception("timed out during startup"), "Ray (local): timed out"),
        ("local", RuntimeError("Failed to start GCS"), "--executor local"),
        ("127.0.0.1:1", None, "answers at 127.0.0.1:1"),
        ("ray://h:1", None, "not supported"),
    ],
)
def test_a_ray_that_cannot_be_had_is_an_engine_error_with_a_way_on(
    monkeypatch: pytest.MonkeyPatch, address: str, error: Any, said: str
) -> None:
    def refuse(**_: object) -> None:
        raise error

    module = SimpleNamespace(is_initialized=lambda: False, init=refuse)
    monkeypatch.setattr(ray, "_ray", lambda: module)
    for name in ("set_environment", "use_own_token"):
        monkeypatch.setattr(ray, name, lambda *_: None)
    with pytest.raises(EngineError, match=re.escape(said)), connected(address, "tests"):
        pass
