"""Who can reach this user's processes."""

import os
import socket
from collections.abc import Mapping
from pathlib import Path

import pytest

from orchestrator.doctor import machine
from orchestrator.doctor.sockets import Listener, cluster, listening, private_ray, token
from orchestrator.execution.server import EngineError


def ray(address: str, *, asks: bool | None) -> Listener:
    return Listener(address, 6379, 42, "gcs_server", "/x/gcs_server", asks)


WEB = Listener("0.0.0.0", 8080, 7, "python", "python -m http.server", token=False)  # noqa: S104


@pytest.mark.parametrize(
    ("address", "beyond"),
    [
        ("127.0.0.1", False),
        ("127.5.0.1", False),
        ("::1", False),
        ("::ffff:127.0.0.1", False),
        ("0.0.0.0", True),  # noqa: S104
        ("::", True),
        ("10.0.0.5", True),
        ("fe80::1%eth0", True),
        ("::ffff:10.0.0.5", True),
    ],
)
def test_loopback_is_told_from_the_rest(address: str, beyond: bool) -> None:
    assert Listener(address, 1, 1, "x").is_beyond_loopback is beyond


@pytest.mark.parametrize(
    ("name", "command", "rays"),
    [
        ("raylet", "", True),
        ("ray::IDLE", "", True),
        ("python", "python -u /venv/ray/dashboard/dashboard.py", True),
        ("python3", "python3 -m ray.util.client.server --port=10001", True),
        ("python", "python -m http.server", False),
        ("xray", "", False),
    ],
)
def test_rays_processes_are_told_from_others(name: str, command: str, rays: bool) -> None:
    assert Listener("::", 1, 1, name, command).is_rays is rays


def test_others_that_listen_are_listed_and_fail_nothing() -> None:
    found = listening([WEB, ray("127.0.0.1", asks=True)])
    assert [one.state for one in found] == ["ok", "ok"]
    assert found[0].seen == "beyond loopback: python (pid 7) on 0.0.0.0:8080; on loopback: 1"
    assert found[1].seen == "on loopback only: gcs_server (pid 42)"


@pytest.mark.parametrize(("asks", "state"), [(True, "ok"), (False, "missing"), (None, "unknown")])
def test_a_ray_that_others_can_reach_must_ask_for_a_token(asks: bool | None, state: str) -> None:
    found = listening([ray("10.0.0.5", asks=asks), WEB])[1]
    assert (found.item, found.state) == ("Ray listens", state)
    assert "gcs_server (pid 42) on 10.0.0.5:6379" in found.seen
    assert "python" not in found.seen
    assert found.mend.startswith("kill 42;") or asks


@pytest.mark.parametrize(
    ("environment", "wants"),
    [
        (b"PATH=/bin\0RAY_AUTH_MODE=token\0", True),
        (b"PATH=/bin\0RAY_AUTH_MODE=disabled\0", False),
        (b"PATH=/bin\0HOME=/root\0", False),
        (b"\0\0\0\0RAY_AUTH_MODE=token\0", True),  # behind what a title has written over
        (b"gent\0\0\0\0\0", None),
        (b"", None),
    ],
)
def test_whether_a_token_is_wanted_is_read_from_what_a_ray_was_started_with(
    environment: bytes, wants: bool | None
) -> None:
    assert machine.wants_token(environment) is wants


def test_one_ray_process_without_a_token_is_enough_to_say_so() -> None:
    found = listening([ray("10.0.0.5", asks=None), ray("10.0.0.6", asks=False)])[1]
    assert found.state == "missing"


def test_where_the_system_tells_nobody_it_stays_unknown() -> None:
    (found,) = listening(None)
    assert (found.state, found.mend) == ("unknown", "sudo ss -ltnp")


def test_a_socket_of_this_process_is_found() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = machine.listeners(os.getuid())
    assert found is not None
    (mine,) = [one for one in found if one.port == port]
    assert (mine.pid, mine.address, mine.is_beyond_loopback) == (os.getpid(), "127.0.0.1", False)


def test_sockets_of_another_user_are_not_ours() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        found = machine.listeners(os.getuid() + 1)
    assert found is not None
    assert port not in [one.port for one in found]


@pytest.mark.parametrize(
    ("environment", "state"),
    [
        ({}, "ok"),
        ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0"}, "ok"),
        ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "1"}, "missing"),
        ({"RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "True"}, "missing"),
    ],
)
def test_a_ray_of_ours_stays_on_loopback_unless_the_environment_says_otherwise(
    environment: Mapping[str, str], state: str
) -> None:
    assert private_ray(environment).state == state


def test_a_cluster_that_is_to_be_joined_must_answer() -> None:
    def answers(address: str) -> None:
        pass

    def refuses(address: str) -> None:
        raise EngineError(f"no Ray control service answers at {address}")

    assert cluster(None, refuses).state == "ok"
    assert cluster("local", refuses).state == "ok"
    assert cluster("head:6379", answers).state == "ok"
    assert cluster("auto", answers).state == "unknown"
    found = cluster("head:6379", refuses)
    assert (found.state, found.seen) == (
        "missing",
        "no Ray control service answers at head:6379",
    )


def test_a_token_is_the_users_secret(tmp_path: Path) -> None:
    path, uid = tmp_path / "auth_token", os.getuid()
    assert token(path, uid, {}).state == "absent"
    assert token(path, uid, {"RAY_AUTH_TOKEN": "x"}).state == "ok"
    path.write_text("secret")
    path.chmod(0o600)
    assert token(path, uid, {}).state == "ok"
    path.chmod(0o644)
    found = token(path, uid, {})
    assert (found.state, found.mend) == ("missing", f"chmod 600 {path}")
    assert "secret" not in found.seen
    path.chmod(0o600)
    assert token(path, uid + 1, {}).state == "missing"


def test_a_token_that_cannot_be_looked_at_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert token(tmp_path / "file/auth_token", os.getuid(), {}).state == "unknown"
