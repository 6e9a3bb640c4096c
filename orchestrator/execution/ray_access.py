"""The way into a Ray cluster, before Ray itself is asked: environment, address, token, signals.

Ray waits long and explains little when one of these is wrong. Nothing here imports ray.
"""

import json
import math
import os
import secrets
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from orchestrator.execution.api import EngineError

PROBE_SECONDS = 5.0
DRAIN_SECONDS = 25.0  # of the 60 s that Ray leaves its driver, for what runs to come to its end
ASK_SECONDS = 10.0  # an answer takes some 0.7 s, nearly all of it to import ray
QUESTION = """
import json, sys
from ray._common.usage.usage_lib import get_cluster_metadata
from ray._private.services import canonicalize_bootstrap_address_or_die
from ray._private.utils import check_version_info
from ray._raylet import GcsClient
from ray.exceptions import AuthenticationError
kind = said = ""
try:
    address = canonicalize_bootstrap_address_or_die(sys.argv[1])
    metadata = get_cluster_metadata(GcsClient(address=address))
    kind = "version"
    check_version_info(metadata, "this machine")
    kind = ""
except AuthenticationError:
    kind = "token"
except (ConnectionError, RuntimeError, ValueError) as error:
    kind, said = kind or "address", str(error)
print(json.dumps([kind, said]))
"""
"""Asked in a process of its own: Ray itself waits 20 s on a wrong token, explains it as a lost
connection, aborts the process when there is none, and settles on one way for a process's life."""


def set_environment() -> None:
    """What Ray reads when it is imported, unless the user has set it."""
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
    if address == "local":
        _check_loopback()
    elif address != "auto":
        reach(address)


def _check_loopback() -> None:
    """Raises EngineError where Ray's own processes could not reach each other: it would hang."""
    try:
        with socket.create_server(("127.0.0.1", 0)) as server:
            socket.create_connection(server.getsockname(), timeout=3.0).close()
    except OSError as error:
        raise EngineError(
            f"Ray cannot start here: nothing can be reached at 127.0.0.1 ({error}). Bring the "
            "loopback up (ip link set lo up), or say --executor local, which does without Ray"
        ) from None


def reach(address: str) -> None:
    """Raises EngineError if nothing listens at HOST:PORT."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=3.0):
            return
    except (OSError, ValueError, OverflowError) as error:
        raise EngineError(
            f"no Ray control service answers at {address} ({error}): is it running there "
            f"(ray start --head), and is this its HOST:PORT (6379 by default)?"
        ) from None


class ControlService:
    """Ray's control service, asked now and then whether it is still there.

    Without it Ray starts nothing new, and ends its driver after 60 s without a word.
    """

    def __init__(self, address: str) -> None:
        self.failure: EngineError | None = None
        self._address = address
        self._asked_at = -math.inf
        self._gone_at = 0.0

    def ask_if_due(self) -> None:
        """Remember since when it is gone. It may come back: some clusters restart it."""
        if time.monotonic() - self._asked_at < PROBE_SECONDS:
            return
        self._asked_at = time.monotonic()
        try:
            reach(self._address)
        except EngineError as error:
            if self.failure is None:
                self._gone_at = time.monotonic()
            self.failure = error
        else:
            self.failure = None

    def raise_if_gone(self, *, nothing_runs: bool) -> None:
        """Raises EngineError once it is gone, and what ran has ended or has had time to."""
        drained = nothing_runs or time.monotonic() - self._gone_at > DRAIN_SECONDS
        if self.failure is not None and drained:
            raise self.failure


def prepare_to_join(address: str, ask_seconds: float = ASK_SECONDS) -> None:
    """Set how Ray is to authenticate itself, as the cluster at the address wants it.

    Asks it in the way that RAY_AUTH_MODE demands, or else without a token and then with one. Raises
    EngineError, within seconds and saying what to do, if it would not let us in.
    """
    if address == "local":
        _make_token()
        os.environ["RAY_AUTH_MODE"] = "token"
        return
    demanded = os.environ.get("RAY_AUTH_MODE")
    has_token = token_path().exists() or "RAY_AUTH_TOKEN" in os.environ
    refusal, said, mode = "token", "", ""
    for mode in (demanded,) if demanded else ("disabled", "token"):
        if mode == "disabled" or has_token:  # Ray aborts the process that has none
            refusal, said = _ask(address, mode, ask_seconds)
        if refusal != "token":
            break
    advice = {
        "address": "Is a Ray running there (ray status)? Start one with: ray start --head",
        "version": "Install the same Ray and Python here and there, or run on the cluster's head",
        "token": f"It wants its token: copy {token_path()} from the cluster's head, readable by "
        "you alone (chmod 600), and unset RAY_AUTH_MODE",
    }
    if refusal:
        said = said.strip() or "the token here is not accepted, or there is none"
        raise EngineError(f"cannot join Ray at {address}: {said}\n{advice[refusal]}")
    os.environ["RAY_AUTH_MODE"] = mode


def _ask(address: str, mode: str, seconds: float) -> tuple[str, str]:
    """What the cluster would refuse us for: `token`, `version`, `address` or nothing; in words."""
    command = [sys.executable, "-c", QUESTION, address]
    try:
        asked = subprocess.run(
            command,
            env={**os.environ, "RAY_AUTH_MODE": mode},
            capture_output=True,
            text=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        said = f"what listens there did not answer like a Ray control service in {seconds:g} s"
        return "address", said
    try:
        refusal, said = json.loads(asked.stdout.splitlines()[-1])
    except (IndexError, ValueError):
        return "", ""  # it could not be asked: joining will show
    return refusal, said


def token_path() -> Path:
    """Where this user's token for Ray lies, if there is one."""
    return Path(os.environ.get("RAY_AUTH_TOKEN_PATH") or Path.home() / ".ray" / "auth_token")


def _make_token() -> None:
    """A local Ray gets a token of this user's, where he has none yet."""
    token = token_path()
    if not token.exists() and "RAY_AUTH_TOKEN" not in os.environ:
        token.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):
            descriptor = os.open(token, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            os.write(descriptor, secrets.token_hex(32).encode())
            os.close(descriptor)
    if token.exists():
        with suppress(PermissionError):
            token.chmod(0o600)  # Ray leaves it readable by everybody


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
