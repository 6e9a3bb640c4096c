import os
import re
import signal
import socket
import stat
import time
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
from orchestrator.execution.ray import RayExecutor, connected

pytestmark = pytest.mark.xdist_group("ray")
Make = Callable[..., Attempt]
ONE = Slots(1, "cpu", "some processor", 1)


@pytest.fixture(scope="module")
def _python_interrupts() -> Iterator[None]:
    """SIGINT is Python's, also where the tests were started in the background, which ignores it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="module")
def local_ray(_importable: None, _python_interrupts: None) -> Iterator[None]:
    """One Ray for all tests of this module but those that need their own."""
    with connected("local", "tests"):
        yield


def test_ray_listens_on_the_loopback_only(local_ray: None) -> None:
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


def test_the_token_is_for_its_owner_only(local_ray: None) -> None:
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    assert stat.S_IMODE(token.stat().st_mode) == 0o600
    assert os.environ["RAY_AUTH_MODE"] == "token"


@pytest.mark.parametrize("device", ["cuda", "cpu"])
def test_more_devices_than_the_cluster_has_is_an_error_at_once(
    device: Any, local_ray: None
) -> None:
    began = time.monotonic()
    with (
        pytest.raises(EngineError, match=r"999 slots of 1 .PU asked for, but the Ray cluster has"),
        RayExecutor(Slots(999, device, "", 1)),
    ):
        pass
    assert time.monotonic() - began < 5.0


def test_a_killed_actor_loses_its_attempt_only_after_its_tree_is_gone(
    local_ray: None,
    make_attempt: Make,
    nasty: str,
    family: Any,
    eventually: Any,
) -> None:
    attempt = make_attempt("resist", grace_seconds=30.0)
    with RayExecutor(ONE, entry=nasty) as executor:
        executor.submit(attempt)
        family.assemble(attempt, 3, executor)
        family.above(attempt)[1].kill()
        (outcome,) = executor.wait(60.0)
        assert outcome.status is Status.LOST
        assert family.alive(attempt) == []
        (warning,) = executor.warnings
        assert "its agent has died" in warning
        eventually(executor.free)
        executor.submit(make_attempt("finish"))
        (outcome,) = executor.wait(60.0)
        assert outcome.status is Status.OK


def test_an_address_where_nothing_answers_is_named_within_five_seconds() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{unused.getsockname()[1]}"
        began = time.monotonic()
        with (
            pytest.raises(EngineError, match=f"answers at {address}.*ray start --head"),
            RayExecutor(ONE, address=address),
        ):
            pass
    assert time.monotonic() - began < 5.0


def test_ray_client_addresses_are_refused() -> None:
    with pytest.raises(EngineError, match="not supported"), RayExecutor(ONE, address="ray://h:1"):
        pass


@pytest.mark.parametrize(
    ("address", "error", "said"),
    [
        ("local", Exception("timed out during startup"), "cannot start Ray here: timed out"),
        ("local", RuntimeError("Failed to start GCS"), "--executor local"),
        ("10.0.0.1:6379", ConnectionError("nobody there"), "cannot join Ray at 10.0.0.1:6379"),
    ],
    ids=["took too long", "failed", "nobody there"],
)
def test_a_ray_that_cannot_be_had_is_an_engine_error_with_a_way_on(
    monkeypatch: pytest.MonkeyPatch, address: str, error: Exception, said: str
) -> None:
    with pytest.raises(EngineError, match=re.escape(said)):
        _connect(monkeypatch, address, error)


def test_a_mistake_of_ours_is_not_taken_for_rays(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(TypeError):
        _connect(monkeypatch, "local", TypeError("no such argument"))


def _connect(monkeypatch: pytest.MonkeyPatch, address: str, error: Exception) -> None:
    """Join a Ray that answers with that."""

    def refuse(**_: object) -> None:
        raise error

    module = SimpleNamespace(is_initialized=lambda: False, init=refuse)
    monkeypatch.setattr(ray, "_ray", lambda: module)
    for name in ("set_environment", "prepare_to_join"):
        monkeypatch.setattr(ray, name, lambda *_: None)
    with connected(address, "tests"):
        raise AssertionError("it was refused")
