"""Documents written as the Parquet shards that karpathy/nanochat reads."""

import shutil
import tempfile
from collections.abc import Iterable, Iterator
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

from objectives.api import SetupError
from objectives.nanochat.data import COLUMN, parse

GROUP = 256  # documents of a row group: nanochat tokenises whole groups before its first batch
MOST_SHARDS = 10_000


def write(data: str, directory: Path, shards: int = 1) -> dict[str, Any]:
    """Write the text that `data` names to `directory`, whole or not at all.

    There are `shards` files to train on and one more, the last by name, that is held out. Returns
    what was written. Raises ValueError where anything is there already, on an unknown form of data,
    and on more shards than documents; SetupError where the text cannot be read.
    """
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError("shards need pyarrow: pip install 'cmaes-orchestrator[parquet]'") from None
    if directory.exists() or directory.is_symlink():
        raise ValueError(f"{directory}: there is something already; name another directory")
    if not directory.parent.is_dir():
        raise ValueError(f"{directory}: there is no directory {directory.parent}")
    schema = pyarrow.schema([(COLUMN, pyarrow.string())])
    source = parse(data)
    before, documents = source.state(), source.documents()
    train, val = _size(documents.train()), _size(documents.val())
    for part, (count, _) in (("training", train), ("held-out", val)):
        if not count:
            raise SetupError(f"the {part} part of data {source.name!r} holds no document")
    most = min(train[0], MOST_SHARDS)
    if not 1 <= shards <= most:
        raise ValueError(
            f"--shards: expected 1 to {most} for {train[0]} documents to train on, got {shards}"
        )

    def write_file(name: str, rows: Iterator[bytes]) -> None:
        options = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
        with parquet.ParquetWriter(aside / name, schema, **options) as file:
            while group := [document.decode() for document in islice(rows, GROUP)]:
                file.write_table(pyarrow.table({COLUMN: group}, schema), row_group_size=GROUP)

    names = [f"shard_{number:05d}.parquet" for number in range(shards + 1)]
    with tempfile.TemporaryDirectory(prefix=f".{directory.name}.", dir=directory.parent) as place:
        aside = Path(place) / "shards"
        aside.mkdir()
        rest = documents.train()
        for number, name in enumerate(names[:-1]):
            first, end = number * train[0] // shards, (number + 1) * train[0] // shards
            write_file(name, islice(rest, end - first))
        write_file(names[-1], iter(documents.val()))
        if source.state() != before:
            raise SetupError(f"data {source.name!r} changed while it was read: try again")
        if directory.exists():
            raise ValueError(f"{directory}: there is something now; name another directory")
        shutil.move(aside, directory)
    return {
        "directory": str(directory),
        "files": names,
        "train_documents": train[0],
        "train_bytes": train[1],
        "val_documents": val[0],
        "val_bytes": val[1],
    }


def _size(documents: Iterable[bytes]) -> tuple[int, int]:
    """How many, and their bytes."""
    lengths = [len(document) for document in documents]
    return len(lengths), sum(lengths)
