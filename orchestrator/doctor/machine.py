"""The facts that the checks judge, asked of this machine. What it does not say is None."""

import os
import shutil
import time
import tomllib
from collections.abc import Mapping
from contextlib import suppress
from importlib import metadata
from os.path import isdir  # unlike Path.is_dir it never raises
from pathlib import Path

import psutil
from packaging.requirements import Requirement

from orchestrator.doctor.clock import Reading
from orchestrator.doctor.devices import Graphics, Times
from orchestrator.doctor.disk import Room
from orchestrator.doctor.sockets import Listener
from orchestrator.doctor.versions import required
from orchestrator.execution.devices import visible_gpus
from orchestrator.execution.occupancy import look_at_gpus
from orchestrator.version import DISTRIBUTION

CHECKOUT = Path(__file__).parents[2] / "pyproject.toml"


def reading() -> Reading:
    """Both clocks, read one after the other."""
    return Reading(time.monotonic(), time.time())


def cpu_times() -> Times:
    """CPU seconds of every process that can be seen, without this one."""
    found = {}
    for process in psutil.process_iter():
        if process.pid == os.getpid():
            continue
        with suppress(psutil.Error), process.oneshot():
            used = process.cpu_times()
            found[process.pid] = (process.name(), used.user + used.system)
    return found


def load() -> float | None:
    """The load average of the last minute."""
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


def graphics(environment: Mapping[str, str]) -> Graphics:
    """The GPUs and what is on them, by nvidia-smi."""
    if shutil.which("nvidia-smi") is None:
        return Graphics(program=False)
    visible = tuple(visible_gpus(environment))
    hidden = "CUDA_VISIBLE_DEVICES" in environment
    return Graphics(True, visible, tuple(look_at_gpus()) if visible else (), hidden)


def room(directory: Path) -> Room | None:
    """Of the file system that an existing directory is on; None where it cannot be looked at."""
    try:
        found = os.statvfs(directory)
    except OSError:
        return None
    read_only = bool(found.f_flag & os.ST_RDONLY)
    return Room(
        free_bytes=found.f_bavail * found.f_frsize,
        total_bytes=found.f_blocks * found.f_frsize,
        free_inodes=found.f_favail if found.f_files else None,
        writable=os.access(directory, os.W_OK | os.X_OK) and not read_only,
        read_only=read_only,
    )


def nearest(directory: Path) -> Path:
    """The directory itself, or the nearest one above it that exists."""
    where = directory.absolute()
    return next((path for path in (where, *where.parents) if isdir(path)), Path("/"))


def in_the_way(directory: Path) -> Path | None:
    """What is no directory where one is to be made."""
    where = directory.absolute()
    there = (path for path in (where, *where.parents) if os.path.lexists(path))
    first = next(there, None)
    return first if first is not None and not isdir(first) else None


def listeners(uid: int) -> list[Listener] | None:
    """Sockets of this user's processes that accept TCP connections; None if nobody may know."""
    try:
        sockets = psutil.net_connections(kind="tcp")
    except (psutil.Error, OSError):
        return None
    found = []
    for one in sockets:
        if one.status == psutil.CONN_LISTEN and one.pid is not None:
            with suppress(psutil.Error):
                process = psutil.Process(one.pid)
                if process.uids().real == uid:
                    found.append(_listener(process, *one.laddr))
    return sorted(set(found), key=lambda one: (one.port, one.address))


def _listener(process: psutil.Process, address: str, port: int) -> Listener:
    command = " ".join(process.cmdline()[:6])
    started_in = (_environment(one.pid) for one in (process, *process.parents()))
    told = (wants_token(environment) for environment in started_in)
    token = next((one for one in told if one is not None), None)  # its own, or its parent's
    return Listener(address, port, process.pid, process.name(), command, token)


def _environment(pid: int) -> bytes:
    with suppress(OSError):
        return Path(f"/proc/{pid}/environ").read_bytes()
    return b""


def wants_token(environment: bytes) -> bool | None:
    """Whether a Ray process started in this environment wants a token; None if it cannot be seen.

    The environment is as /proc shows it: a process that gives itself a title may have written over
    it, so that a variable that is not there may have been.
    """
    variables = [one.partition(b"=") for one in environment.split(b"\0")]
    modes = [value for name, _, value in variables if name == b"RAY_AUTH_MODE"]
    if modes:
        return modes[0] == b"token"
    return False if any(name == b"PATH" for name, _, _ in variables) else None


def installed(name: str) -> str | None:
    """The version of an installed package."""
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None


def python_bound() -> str | None:
    """What the project's metadata asks of Python; None if it is not installed."""
    try:
        known = metadata.metadata(DISTRIBUTION)
        return known["Requires-Python"] if "Requires-Python" in known else ""  # noqa: SIM401 - no dict
    except metadata.PackageNotFoundError:
        return None


def requirements_on_record() -> tuple[Requirement, ...] | None:
    """What the installed project's metadata requires; None if it is not installed."""
    try:
        return required(metadata.requires(DISTRIBUTION) or ())
    except metadata.PackageNotFoundError:
        return None


def requirements_of_checkout(path: Path = CHECKOUT) -> tuple[Requirement, ...]:
    """What the pyproject.toml beside the packages requires now; empty where there is none."""
    try:
        project = tomllib.loads(path.read_text()).get("project", {})
    except (OSError, ValueError):
        return ()
    return required(project["dependencies"]) if project.get("name") == DISTRIBUTION else ()
