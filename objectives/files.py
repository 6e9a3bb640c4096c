"""A person's files, read with suspicion; our own, replaced whole."""

import os
import stat
import tomllib
from pathlib import Path
from typing import Any

LARGEST = 1 << 20
"""Bytes of a file that a person wrote: a longer one is another file."""


def read_text(file: Path, place: str) -> str:
    """What a file says that a person named. Raises ValueError, which begins with `place`."""
    try:
        if not stat.S_ISREG(file.stat().st_mode):  # a pipe may never end
            raise ValueError(f"{place} is no file: expected one with text")
        with file.open("rb") as stream:
            data = stream.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ValueError(f"{place}: expected {LARGEST} bytes at most: this is another file")
        return data.decode()
    except OSError as error:
        raise ValueError(f"{place} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise ValueError(f"{place} is no text in UTF-8: {error}") from error


def read_toml(file: Path, place: str) -> dict[str, Any]:
    """The same as TOML."""
    try:
        return tomllib.loads(read_text(file, place))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise ValueError(f"{place} is no TOML file: {error}") from error


def replace(path: Path, data: bytes) -> None:
    """The file at `path` becomes `data`, whole or not at all. Raises OSError."""
    aside = path.with_name(f"{path.name}.partial")
    with aside.open("wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    rename(aside, path)


def rename(aside: Path, path: Path) -> None:
    """What is `aside` takes the place of `path`, durably. Raises OSError."""
    aside.replace(path)
    handle = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
