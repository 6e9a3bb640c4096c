"""Documents in a column `text`: Parquet shards laid out as nanochat's, and Hugging Face data sets.

Both are read in small batches, as often as needed: they may be larger than memory.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from pathlib import Path
from typing import Any

from objectives.api import SetupError
from objectives.nanochat.text.documents import (
    COLUMN,
    Apart,
    Documents,
    from_value,
    optional,
    require_column,
    split,
)
from objectives.nanochat.text.files import tree, tree_sha256, unreadable

BATCH = 1024  # documents read at once


@dataclass(frozen=True)
class Shards:
    """The documents of Parquet files, in the order of the files and of their rows."""

    paths: Sequence[Path]

    @classmethod
    def last_held_out(cls, folder: Path, names: Sequence[str]) -> Documents:
        """The last file held out, as in nanochat. Raises SetupError for fewer than two."""
        if len(names) < 2:
            raise SetupError(
                f"the folder {str(folder)!r} needs at least two *.parquet files, the last being "
                f"held out; got {len(names)}"
            )
        paths = [folder / name for name in names]
        train, val = cls(paths[:-1]), cls(paths[-1:])
        return Documents(Apart(train, val), val)

    def __iter__(self) -> Iterator[bytes]:
        for path in self.paths:
            yield from filter(None, _shard(path))


def _shard(path: Path) -> Iterator[bytes]:
    parquet = optional("pyarrow.parquet", "parquet")
    row = 0
    try:
        with parquet.ParquetFile(path) as file:
            require_column(file.schema_arrow.names, path)
            for batch in file.iter_batches(batch_size=BATCH, columns=[COLUMN]):
                for cell in batch.column(0):
                    row += 1
                    yield from_value(cell.as_py(), f"{path}, row {row}")
    except UnicodeDecodeError as error:
        raise SetupError(f"{path}, row {row} is not UTF-8 at byte {error.start} of it") from error
    except (OSError, ValueError) as error:  # pyarrow's ArrowInvalid is a ValueError
        raise unreadable(path, error, "a Parquet file") from error


@dataclass(frozen=True)
class Rows:
    """The documents of one split of a data set."""

    dataset: Any
    where: str

    def __iter__(self) -> Iterator[bytes]:
        require_column(self.dataset.column_names, self.where)
        row = 0
        for batch in self.dataset.select_columns([COLUMN]).iter(batch_size=BATCH):
            for value in batch[COLUMN]:
                row += 1
                if document := from_value(value, f"{self.where}, row {row}"):
                    yield document


@dataclass(frozen=True)
class Hub:
    """A data set on the Hugging Face hub; with HF_HUB_OFFLINE=1, what was loaded of it before.

    Every start imports `datasets` and asks the hub, where the same name may mean new data tomorrow.
    `save_to_disk` and `hf:/FOLDER` avoid both.
    """

    dataset: str
    config: str | None = None

    @property
    def name(self) -> str:
        return f"hf:{self.dataset}" + (f":{self.config}" if self.config else "")

    def fingerprint(self) -> str:
        """Of the `_fingerprint` that `datasets` gives each loaded split: loads, maybe downloads."""
        marks = (f"{name}:{rows._fingerprint}" for name, rows in sorted(self._splits.items()))
        return sha256("\n".join(("hf", *marks)).encode()).hexdigest()

    def documents(self) -> Documents:
        return _documents(self._splits, self.name)

    @cached_property
    def _splits(self) -> Mapping[str, Any]:
        expected = "a data set on the Hugging Face hub, or with HF_HUB_OFFLINE=1 one loaded before"
        here = Path(self.dataset)
        if here.is_dir() and not here.is_absolute():  # which `datasets` would prefer to the hub
            raise SetupError(
                f"data {self.name!r} names a folder in {Path.cwd()}: expected {expected}"
            )
        datasets = optional("datasets", "hf")
        try:
            found = datasets.load_dataset(self.dataset, self.config)
        except (OSError, ValueError, datasets.exceptions.DatasetsError) as error:
            raise unreadable(self.name, error, expected) from error
        return _used(found, self.name)


@dataclass(frozen=True)
class Saved:
    """A data set, or a dictionary of splits, that `save_to_disk` wrote."""

    path: Path

    @property
    def name(self) -> str:
        return f"hf:{self.path}"

    def fingerprint(self) -> str:
        return sha256(f"hf:{tree_sha256(self.path, tree(self.path))}".encode()).hexdigest()

    def documents(self) -> Documents:
        datasets = optional("datasets", "hf")
        try:
            found = datasets.load_from_disk(str(self.path))
        except (OSError, ValueError) as error:
            raise unreadable(self.name, error, "a folder written by save_to_disk") from error
        return _documents(_used(found, self.name), self.name)


def _used(found: Any, name: str) -> dict[str, Any]:
    """The splits that are read, by name; a data set without splits counts as `train`."""
    splits = found if isinstance(found, dict) else {"train": found}
    if "train" not in splits:
        raise SetupError(f"data {name!r} has no split 'train', only {', '.join(splits) or 'none'}")
    return {part: splits[part] for part in ("train", "validation") if part in splits}


def _documents(splits: Mapping[str, Any], name: str) -> Documents:
    """The split `validation` held out, if there is one, else a tenth of `train`."""
    parts = {part: Rows(rows, f"{name}, split {part}") for part, rows in splits.items()}
    if "validation" in parts:
        return Documents(Apart(parts["train"], parts["validation"]), parts["validation"])
    return split(parts["train"], name)
