"""Files of users, read with suspicion; our own, replaced whole; the user's cache directory."""

import errno
import os
import stat
import tomllib
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from pydantic import BeforeValidator

LARGEST = 1 << 20  # bytes of a file that a user wrote: a longer one is another file


def cache_directory() -> Path:
    """Return the user's cache directory for this project; it need not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache").expanduser() / "cmaes-orchestrator"


def absolute(path: Any) -> str:
    """Return the absolute path; links stay: a virtual environment's interpreter is one.

    Raises ValueError on what is not a path.
    """
    if not isinstance(path, str | Path) or not str(path).strip() or "\0" in str(path):
        raise ValueError(f"expected a path, got {path!r}")
    return str(Path(os.path.expanduser(path)).absolute())


Place = Annotated[str, BeforeValidator(absolute)]
"""A setting that is a path."""


def read_toml(file: Path, place: str) -> dict[str, Any]:
    """Return the content of a user's TOML file. Raises ValueError beginning with `place`."""
    try:
        return tomllib.loads(read_plain(Path(os.path.realpath(file)), LARGEST).decode())
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{place} is not a TOML file: {error}") from error
    except (OSError, ValueError) as error:  # also of what is not UTF-8
        reason = getattr(error, "strerror", None) or error
        raise ValueError(f"{place} cannot be read: {reason}") from error


def read_plain(path: Path, most_bytes: int | None = None) -> bytes:
    """Return the content of a file that may be anything.

    Raises OSError where it cannot be opened, ValueError on a link, a pipe and what is too long:
    reading those could hang, or read another file.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError as error:
        if error.errno == errno.ELOOP:
            raise ValueError(f"{path} is a symbolic link: expected a plain file") from error
        raise
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise ValueError(f"{path} is not a plain file: expected one. Move it away")
    with os.fdopen(descriptor, "rb") as file:
        data = file.read() if most_bytes is None else file.read(most_bytes + 1)
    if most_bytes is not None and len(data) > most_bytes:
        raise ValueError(f"expected {most_bytes} bytes at most")
    return data


def replace(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the content of `path`: a reader sees the old bytes or the new, never a part.

    If `durable`, the same is true after a power cut. Raises OSError.
    """
    aside = path.with_name(f"{path.name}.{os.getpid()}.partial")  # two may write the same cache
    try:
        with open(aside, "wb", opener=_private) as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        with suppress(OSError):
            aside.unlink(missing_ok=True)  # of a full disk
        if error.filename is not None:  # name what was asked for
            error.filename = str(path)
        raise
    if not durable:
        return
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)  # so that the new name outlives a power cut
    finally:
        os.close(handle)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
