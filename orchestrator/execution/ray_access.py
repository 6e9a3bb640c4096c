"""The way into a Ray cluster, before Ray itself is asked: environment, address, token.

Ray waits long and explains little when one of these is wrong. Nothing here imports ray.
"""

import json
import os
import secrets
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

from orchestrator.execution.api import EngineError

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
    kind, said = "token", "it does not let us in"
except (ConnectionError, RuntimeError, ValueError) as error:
    kind, said = kind or "address", str(error)
print(json.dumps([kind, said]))
"""
"""Asked in a process of its own: Ray itself waits 20 s on a wrong token, explains it as a lost
connection, aborts the process when there is none, and settles on one way for a process's life."""

ADVICE = {
    "address": "Is a Ray running there (ray status)? Start one with: ray start --head",
    "version": "Install the same Ray and Python here and there, or run on the cluster's head",
    "token": "Copy {token} from the cluster's head, readable by you alone (chmod 600), and "
    "unset RAY_AUTH_MODE",
    "open": "Join it with unset RAY_AUTH_MODE, or restart it with a token",
}


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


def prepare_to_join(address: str, ask_seconds: float = ASK_SECONDS) -> None:
    """Set how Ray is to authenticate itself; asks the cluster first.

    Raises EngineError, within seconds and saying what to do, if it would not let us in.
    """
    if address == "local":
        _make_token()
        os.environ["RAY_AUTH_MODE"] = "token"
        return
    demanded = os.environ.get("RAY_AUTH_MODE")
    refusal, said = _ask(address, mode := "disabled", ask_seconds)
    if refusal == "token" and demanded != "disabled":
        refusal, said = _ask(address, mode := "token", ask_seconds)
    elif not refusal and demanded == "token":
        refusal, said = "open", "it asks nobody for a token, but RAY_AUTH_MODE=token is set here"
    if refusal:
        advice = ADVICE[refusal].format(token=token_path())
        raise EngineError(f"cannot join Ray at {address}: {said.strip()}\n{advice}")
    os.environ["RAY_AUTH_MODE"] = mode


def _ask(address: str, mode: str, seconds: float) -> tuple[str, str]:
    """What the cluster would refuse us for, a key of `ADVICE` or nothing, and in words."""
    try:
        asked = subprocess.run(
            [sys.executable, "-c", QUESTION, address],
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
        if mode == "token":
            return "token", "it wants a token, and there is none here"
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
