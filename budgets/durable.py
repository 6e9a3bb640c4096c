"""Files that are whole or absent, also after a power cut."""

import os
from contextlib import suppress
from pathlib import Path


def write_aside(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Replace the file at `path`: a reader sees the old bytes or the new, never a part.

    If `durable`, the same holds after a power cut, and the new bytes are there on return. Raises
    OSError, leaving nothing behind.
    """
    aside = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            if durable:
                os.fsync(file.fileno())
        aside.replace(path)
    except OSError:
        with suppress(OSError):
            aside.unlink()
        raise
    if durable:
        sync_directory(path.parent)


def sync_directory(directory: Path) -> None:
    """Make the names in `directory` durable."""
    handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
