"""What a checkout trains on: shards and tokenizer, known by hash without reading all of them."""

import os
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from objectives.api import SetupError

TAIL_BYTES = 64 << 10
"""Of each shard that are hashed: the end of a parquet file says where everything in it lies."""

TOKENIZER = ("tokenizer.pkl", "token_bytes.pt")


class Shards(NamedTuple):
    """What a directory of shards holds."""

    files: int
    bytes: int
    sha256: str


def shards(directory: Path) -> Shards:
    """The shards and their hash: over name, size and the hash of the last 64 KiB of each.

    Hundreds of gigabytes cost nothing, and a change in the middle of a file that keeps its size
    and its end is not seen. Raises SetupError on fewer than two.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(".parquet"))
        found = tuple((name, os.stat(directory / name)) for name in names)
    except OSError as error:
        raise _missing(directory, f"cannot be read ({error.strerror})") from error
    if len(found) < 2:
        raise _missing(directory, f"has {len(found)}")
    stamps = tuple((name, status.st_size, status.st_mtime_ns) for name, status in found)
    return _hashed(directory, stamps)


def _missing(directory: Path, found: str) -> SetupError:
    return SetupError(
        f"data: expected two or more *.parquet in {directory} (the last is held out), which "
        f"{found}: python -m nanochat.dataset -n 8 downloads some, or name another directory"
    )


@lru_cache(maxsize=16)
def _hashed(directory: Path, stamps: tuple[tuple[str, int, int], ...]) -> Shards:
    whole = sha256()
    for name, size, _ in stamps:
        try:
            with (directory / name).open("rb") as file:
                file.seek(max(0, size - TAIL_BYTES))
                tail = sha256(file.read(TAIL_BYTES)).hexdigest()
        except OSError as error:
            raise SetupError(f"data: cannot read {directory / name}: {error.strerror}") from error
        whole.update(f"{name}\0{size}\0{tail}\n".encode())
    return Shards(len(stamps), sum(size for _, size, _ in stamps), whole.hexdigest())


def tokenizer_sha256(directory: Path) -> str:
    """Over the tokenizer and the bytes of its tokens. Raises SetupError if one is not there."""
    whole = sha256()
    for name in TOKENIZER:
        try:
            whole.update(sha256((directory / name).read_bytes()).digest())
        except OSError as error:
            raise SetupError(
                f"tokenizer: expected {' and '.join(TOKENIZER)} in {directory}, where {name} is "
                f"not to be had ({error.strerror}): python -m scripts.tok_train makes both"
            ) from error
    return whole.hexdigest()
