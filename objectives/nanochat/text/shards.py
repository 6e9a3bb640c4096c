"""Documents written as the Parquet shards that karpathy/nanochat reads."""

import os
import shutil
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from objectives.api import SetupError
from objectives.nanochat.text.documents import COLUMN, Documents
from objectives.nanochat.text.sources import Source, parse

GROUP = 256
"""Documents of a row group: nanochat tokenises whole ones before its first batch."""

MOST_SHARDS = 10_000


@dataclass(frozen=True)
class Written:
    """What lies where."""

    directory: Path
    files: tuple[str, ...]  # the last one is held out
    train_documents: int
    val_documents: int
    train_bytes: int  # of the documents alone
    val_bytes: int


def write(data: str, directory: Path, shards: int = 1) -> Written:
    """The text that `data` names in `directory`, whole or not at all.

    So many shards to train on, and one more, the last by name, that is held out. Raises ValueError
    where anything is there already, on a text that `data` cannot be, and on more shards than
    documents; SetupError where the text cannot be read.
    """
    arrow = _arrow()
    if directory.exists() or directory.is_symlink():
        raise ValueError(f"{directory}: there is something already; name another directory")
    if not directory.parent.is_dir():
        raise ValueError(f"{directory}: there is no directory {directory.parent}")
    source = parse(data)
    mark, documents = source.fingerprint(), source.documents()
    aside = Path(tempfile.mkdtemp(prefix=f".{directory.name}.", dir=directory.parent))
    try:
        written = _Shards(arrow, aside).write(documents, shards, source)
        if source.fingerprint() != mark:
            raise SetupError(f"data {source.name!r} changed while it was read: try again")
        aside.chmod(0o777 & ~_umask())
        _sync(aside)
        if directory.exists():  # since
            raise ValueError(f"{directory}: there is something now; name another directory")
        aside.rename(directory)
        _sync(directory.parent)
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # nothing is there any more if all went well
    return Written(directory, *written)


def _arrow() -> tuple[Any, Any]:
    try:
        return import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError("shards need pyarrow: pip install 'cmaes-orchestrator[parquet]'") from None


@dataclass
class _Shards:
    """The files of one directory."""

    arrow: tuple[Any, Any]
    directory: Path

    def write(
        self, documents: Documents, shards: int, source: Source
    ) -> tuple[tuple[str, ...], int, int, int, int]:
        """Their names, and documents and bytes of both parts."""
        train, val = (_size(part) for part in (documents.train, documents.val))
        for part, (count, _) in (("training", train), ("held-out", val)):
            if not count:
                raise SetupError(f"the {part} part of data {source.name!r} holds no document")
        most = min(train[0], MOST_SHARDS)
        if not 1 <= shards <= most:
            raise ValueError(
                f"--shards: expected 1 to {most} for {train[0]} documents to train on, got {shards}"
            )
        names = tuple(f"shard_{number:05d}.parquet" for number in range(shards + 1))
        rest = iter(documents.train)
        for number, name in enumerate(names[:-1]):
            first, end = (number * train[0] // shards, (number + 1) * train[0] // shards)
            self._file(name, islice(rest, end - first))
        self._file(names[-1], iter(documents.val))
        return names, train[0], val[0], train[1], val[1]

    def _file(self, name: str, documents: Iterator[bytes]) -> None:
        pyarrow, parquet = self.arrow
        schema = pyarrow.schema([(COLUMN, pyarrow.string())])
        with (
            open(self.directory / name, "xb") as file,
            parquet.ParquetWriter(
                file, schema, compression="zstd", use_dictionary=False, write_statistics=False
            ) as shard,
        ):
            while group := [document.decode() for document in islice(documents, GROUP)]:
                shard.write_table(pyarrow.table({COLUMN: group}, schema), row_group_size=GROUP)
        _sync(self.directory / name)


def _size(documents: Iterable[bytes]) -> tuple[int, int]:
    """How many, and their bytes."""
    count = size = 0
    for document in documents:
        count, size = count + 1, size + len(document)
    return count, size


def _umask() -> int:
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
