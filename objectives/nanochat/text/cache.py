"""What is remembered between processes: files that are whole or absent, and never needed.

A damaged file is noticed by its hash and made again. A cache that cannot be written is not used.
"""

import json
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import file_digest, sha256
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, Any

from objectives.files import cache_directory

RACY_NS = 2_000_000_000  # a change so soon after another may leave the same time stamp


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A file that takes the place of `path` if the block ends well. Raises OSError."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as aside:
        try:
            yield aside
            aside.flush()
            os.fsync(aside.fileno())
            Path(aside.name).replace(path)
        finally:
            Path(aside.name).unlink(missing_ok=True)


def canonical(content: Any) -> bytes:
    """The one JSON text of `content`, in ASCII: the same content always hashes the same."""
    return json.dumps(content, sort_keys=True, separators=(",", ":")).encode()


def store(path: Path, content: Any) -> None:
    """Keep JSON `content` in `path` beside its hash, if that can be written."""
    sealed = {"sha256": sha256(canonical(content)).hexdigest(), "content": content}
    with suppress(OSError), replacing(path) as file:
        file.write(canonical(sealed))


def recall(path: Path) -> Any:
    """What `store` kept in `path`, or None when there is nothing whole."""
    try:
        sealed = json.loads(path.read_bytes())
        content, expected = sealed["content"], sealed["sha256"]
    except (OSError, ValueError, LookupError, TypeError):
        return None
    return content if sha256(canonical(content)).hexdigest() == expected else None


def digests(
    root: Path, names: Sequence[str] = ("",), clock: Callable[[], int] = time.time_ns
) -> list[tuple[int, str]]:
    """Size in bytes and SHA-256 (hex) of each file `root / name`; "" names `root` itself.

    A file is hashed once and then known by its size, inode and times, as git's index knows it,
    unless it had changed less than 2 s before it was hashed. Raises OSError.
    """
    key = sha256(os.fsencode(root.absolute())).hexdigest()
    index = cache_directory() / "files" / f"{key[:32]}.json"
    known = recall(index) or {}
    found = {name: _entry(root / name, known.get(name), clock) for name in names}
    settled = {name: entry for name, (entry, steady) in found.items() if steady}
    if settled != known:
        store(index, settled)
    return [(entry[0], entry[-1]) for entry, _ in found.values()]


def _entry(path: Path, known: list[Any] | None, clock: Callable[[], int]) -> tuple[list[Any], bool]:
    """A file's stamp and hash, and whether its stamp can be trusted to tell of the next change."""
    with path.open("rb") as file:
        now, stamp = clock(), _stamp(file)
        if known is not None and known[:-1] == stamp:
            return known, True
        digest = file_digest(file, "sha256").hexdigest()
        steady = _stamp(file) == stamp and now - max(stamp[1:3]) >= RACY_NS
    return [*stamp, digest], steady


def _stamp(file: IO[bytes]) -> list[int]:
    status = os.fstat(file.fileno())
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]
