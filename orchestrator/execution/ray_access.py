"""The way into a Ray cluster, before Ray itself is asked: environment, address, token, signals.

Ray waits long and explains little when one of these is wrong. Nothing here imports ray.
"""

import os
import secrets
import signal
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.execution.server import EngineError


def set_environment() -> None:
    """What Ray reads when it is imported, unless the user has set it. See design.md, section 2."""
    for name, value in {
        "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER": "0",  # a local Ray listens on 127.0.0.1 only
        "RAY_memory_monitor_refresh_ms": "0",  # it kills innocent slots for one heavy child
        "RAY_worker_niceness": "0",  # workers would run at nice 15
        "RAY_USAGE_STATS_ENABLED": "0",
    }.items():
        os.environ.setdefault(name, value)


def check_address(address: str) -> None:
    """Raises EngineError, within seconds, on an address where no Ray can be joined."""
    if address.startswith("ray://"):
        raise EngineError(
            f"Ray Client ({address}) is not supported: run on a node of the cluster and give "
            f"HOST:PORT of its head, or auto"
        )
    if address not in ("local", "auto"):
        reach(address)


def reach(address: str) -> None:
    """Raises EngineError if nothing listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=3.0):
            return
    except (OSError, ValueError) as error:
        raise EngineError(
            f"no Ray control service answers at {address} ({error}): is it running there "
            f"(ray start --head), and is this its HOST:PORT (6379 by default)?"
        ) from None


def prepare_token(address: str) -> None:
    """Token authentication: always for a local Ray, and wherever a token is at hand."""
    token = Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")
    if address == "local" and not token.exists() and "RAY_AUTH_TOKEN" not in os.environ:
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_hex(32).encode())
            os.close(descriptor)
    if token.exists():
        with suppress(PermissionError):
            token.chmod(0o600)  # Ray leaves it readable by everybody
    if token.exists() or "RAY_AUTH_TOKEN" in os.environ:
        os.environ.setdefault("RAY_AUTH_MODE", "token")


@contextmanager
def own_signal_handlers() -> Iterator[None]:
    """Ray replaces the handlers of the process that connects; put them back."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
