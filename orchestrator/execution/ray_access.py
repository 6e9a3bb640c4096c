"""Preparing to join or start Ray: its environment, a check of the address, its token.

Ray waits long and explains little when one of these is wrong. Nothing here imports ray.
"""

import os
import secrets
import socket
from contextlib import suppress
from pathlib import Path

from orchestrator.execution.api import EngineError

HTTP2_GREETING = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + bytes((0, 0, 0, 4, 0, 0, 0, 0, 0))
"""What a gRPC client sends first (RFC 9113, 3.4); a server answers with its own settings."""


def set_environment() -> None:
    """Set the variables that Ray reads when it is imported, unless the user has set them."""
    for name, value in {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # a local Ray listens on 127.0.0.1 only
        "RAY_memory_monitor_refresh_ms": "0",  # it would kill innocent slots for one heavy child
        "RAY_worker_niceness": "0",  # workers would run at nice 15
        "RAY_USAGE_STATS_ENABLED": "0",
    }.items():
        os.environ.setdefault(name, value)


def check_address(address: str) -> None:
    """Raise EngineError, within seconds, if no Ray can be started or joined at the address."""
    if address.startswith("ray://"):
        raise EngineError(
            f"Ray Client ({address}) is not supported: run on a node of the cluster and give "
            f"HOST:PORT of its head, or auto"
        )
    if address == "local":
        _check_loopback()
    elif address != "auto":
        reach(address)


def _check_loopback() -> None:
    """Raise EngineError if Ray's own processes could not reach each other: it would hang."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=3.0).close()
    except OSError as error:
        raise EngineError(
            f"Ray cannot start here: nothing can be reached at 127.0.0.1 ({error}). Bring the "
            "loopback up (ip link set lo up), or say --executor local, which does without Ray"
        ) from None


def reach(address: str) -> None:
    """Raise EngineError if no gRPC server answers at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=5.0) as connection:
            connection.sendall(HTTP2_GREETING)
            if connection.recv(9)[3:4] != b"\x04":
                raise ConnectionError("another protocol is spoken there")
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"no Ray control service answers at {address} ({error}): is it running there "
            f"(ray start --head), and is this its HOST:PORT (6379 by default)?"
        ) from None


def use_own_token() -> None:
    """Let a Ray that is started here demand a token; make one for this user if there is none."""
    os.environ["RAY_AUTH_MODE"] = "token"
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if not token.exists() and "RAY_AUTH_TOKEN" not in os.environ:
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_hex(32).encode())
            os.close(descriptor)
    if token.exists():
        with suppress(PermissionError):
            token.chmod(0o600)  # Ray leaves it readable by everyone
