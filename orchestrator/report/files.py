"""Files that attempts left below a run's directory, read with suspicion: whoever wrote them."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import BinaryIO

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read_whole(directory: Path, place: str, most_bytes: int) -> bytes:
    """The file at `place` below the run's directory.

    Raises OSError where it is not there, is reached by a link or is no plain file; ValueError where
    it is larger than that.
    """
    with _opened(directory, place) as file:
        data = file.read(most_bytes + 1)
    if len(data) > most_bytes:
        raise ValueError(f"{place} is larger than {most_bytes} bytes")
    return data


def read_end(directory: Path, place: str, most_bytes: int) -> bytes:
    """The last so many bytes of it, from the beginning of a line. Raises OSError likewise."""
    with _opened(directory, place) as file:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - most_bytes))
        data = file.read(most_bytes)
    return data if size <= most_bytes else data.partition(b"\n")[2]


@contextmanager
def _opened(directory: Path, place: str) -> Iterator[BinaryIO]:
    """Step by step, so that no part of the way below the run's directory is a link."""
    *folders, name = PurePosixPath(place).parts
    step = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for folder in folders:
            inner = os.open(folder, _FLAGS | os.O_DIRECTORY, dir_fd=step)
            os.close(step)
            step = inner
        descriptor = os.open(name, _FLAGS, dir_fd=step)
    finally:
        os.close(step)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(f"{place} is no plain file")
        yield file
