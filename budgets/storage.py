"""The calls that change a ledger, as a seam.

Everything that changes a ledger's records goes through a `Storage`, so that tests can replace it by
one that fails or loses power at any of these calls. Reading does not.
"""

import errno
import os
from itertools import chain, count
from pathlib import Path
from typing import Any

import orjson


class Storage:
    """Calls that change files, with the meaning of their POSIX names. All raise OSError."""

    def open(self, path: Path) -> int:
        """A handle to read and append with. Creates the file, follows no symbolic link."""
        flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
        return os.open(path, flags, 0o600)

    def write(self, handle: int, data: bytes) -> int:
        """Append; returns how many bytes were taken, perhaps not all. Durable after `sync`."""
        return os.write(handle, data)

    def sync(self, handle: int) -> None:
        """Returns when all that was written and truncated is durable."""
        os.fsync(handle)

    def truncate(self, handle: int, size: int) -> None:
        os.ftruncate(handle, size)

    def sync_directory(self, directory: Path) -> None:
        """Returns when the names in it are durable."""
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)

    def free_bytes(self, directory: Path) -> int:
        """Free space for this user on the file system."""
        found = os.statvfs(directory)
        return found.f_bavail * found.f_frsize


DISK = Storage()


def document(content: Any) -> bytes:
    """`content` as indented JSON."""
    return orjson.dumps(content, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)


def write_all(handle: int, data: bytes, storage: Storage) -> None:
    """Append all of `data`. Raises OSError, ENOSPC when no more is taken."""
    while data:
        taken = storage.write(handle, data)
        if taken == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        data = data[taken:]


def unused(path: Path) -> Path:
    """`path`, or `path` with the first number that makes it new."""
    later = (path.with_name(f"{path.name}.{number}") for number in count(2))
    return next(p for p in chain([path], later) if not p.exists())
