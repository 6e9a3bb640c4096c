"""Reading what a person names, with errors that say what was expected and where."""

import errno
import gzip
import lzma
import os
import stat
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from hashlib import sha256
from io import BufferedIOBase
from pathlib import Path

from objectives.api import SetupError
from objectives.nanochat.text import cache


def unreadable(path: object, error: Exception, expected: str) -> SetupError:
    """The error to raise when `path`, where `expected` should be, cannot be read."""
    reason = getattr(error, "strerror", None) or error
    return SetupError(f"cannot read data {str(path)!r} ({reason}): expected {expected}")


@contextmanager
def opened(path: Path, expected: str) -> Iterator[BufferedIOBase]:
    """`path` for reading, unpacked if its name ends in .gz or .xz.

    Raises SetupError, saying what was `expected`, when it cannot be opened or read to the end.
    """
    try:
        _check_ends(path)
        with _unpacked(path) as file:
            yield file
    except (OSError, EOFError, zlib.error, lzma.LZMAError) as error:
        raise unreadable(path, error, expected) from error


def _check_ends(path: Path) -> None:
    """Raises OSError on a pipe, a device or a socket: to read one may take for ever."""
    kind = path.stat().st_mode
    if not stat.S_ISREG(kind) and not stat.S_ISDIR(kind):
        raise OSError(errno.EINVAL, "it is neither a file nor a folder", str(path))


def _unpacked(path: Path) -> BufferedIOBase:
    match path.suffix.lower():
        case ".gz":
            return gzip.open(path)
        case ".xz":
            return lzma.open(path)
        case _:
            return path.open("rb")


def read_text(path: Path, expected: str) -> bytes:
    """The UTF-8 text in `path`, unpacked. Raises SetupError."""
    with opened(path, expected) as file:
        text = file.read()
    require_utf8(text, path)
    return text


def require_utf8(text: bytes, path: Path, offset: int = 0) -> None:
    """Raises SetupError naming the byte of `path`, in which `text` starts at `offset`."""
    try:
        text.decode()
    except UnicodeDecodeError as error:
        raise SetupError(
            f"{path} is not UTF-8 at byte {offset + error.start} (0x{text[error.start]:02x}): "
            "convert it to UTF-8, for example with iconv"
        ) from error


def tree(folder: Path) -> list[str]:
    """Paths of the files below `folder`, sorted; names that start with a dot are left out.

    Raises SetupError when it cannot be listed.
    """

    def refuse(error: OSError) -> None:
        raise unreadable(error.filename, error, "a folder that can be listed") from error

    names: list[str] = []
    for directory, folders, files in os.walk(folder, onerror=refuse):
        folders[:] = [name for name in folders if not name.startswith(".")]
        below = Path(directory).relative_to(folder)
        names += [str(below / name) for name in files if not name.startswith(".")]
    return sorted(names)


def file_sha256(path: Path, expected: str) -> str:
    """SHA-256 (hex) of the bytes of `path`. Raises SetupError."""
    try:
        _check_ends(path)
        return cache.digests(path)[0][1]
    except OSError as error:
        raise unreadable(path, error, expected) from error


def tree_sha256(folder: Path, names: Sequence[str]) -> str:
    """SHA-256 (hex) of the names, sizes and hashes of files in `folder`. Raises SetupError."""
    try:
        for name in names:
            _check_ends(folder / name)
        found = cache.digests(folder, names)
    except OSError as error:
        raise unreadable(error.filename, error, "a file that can be read") from error
    lines = (
        os.fsencode(name) + f"\0{size}\0{digest}\n".encode()
        for name, (size, digest) in sorted(zip(names, found, strict=True))
    )
    return sha256(b"".join(lines)).hexdigest()
