"""Documents: what a text is made of, and how it is split into a training and a held-out part."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import import_module
from typing import Any

from objectives.api import SetupError

COLUMN = "text"  # the column, or field, that holds the documents


@dataclass(frozen=True)
class Documents:
    """UTF-8 documents, none of them blank. Both parts can be read several times."""

    train: Iterable[bytes]
    val: Iterable[bytes]
    duplicates: int = 0  # copies left out, so that no held-out document is trained on

    @property
    def left_out(self) -> int:
        """All copies that were left out, once both parts have been read."""
        return self.duplicates + (self.train.left_out if isinstance(self.train, Apart) else 0)


@dataclass
class Apart:
    """The documents of a training part that the held-out part does not have."""

    documents: Iterable[bytes]
    held_out: Iterable[bytes]
    left_out: int = 0  # when it was read last

    def __iter__(self) -> Iterator[bytes]:
        held, self.left_out = {sha256(document).digest() for document in self.held_out}, 0
        for document in self.documents:
            if sha256(document).digest() in held:
                self.left_out += 1
            else:
                yield document


def tenth_held_out(ordered: Sequence[bytes], duplicates: int = 0) -> Documents:
    """Two or more documents, the last tenth of them held out."""
    val = max(1, len(ordered) // 10)
    return Documents(ordered[:-val], ordered[-val:], duplicates)


def split(documents: Iterable[bytes], data: str) -> Documents:
    """The documents that differ, by their SHA-256 (a shuffle without a seed), the last tenth held
    out. Raises SetupError, naming `data`, when fewer than two differ."""
    count, distinct = 0, {}
    for document in documents:
        count += 1
        distinct[sha256(document).digest()] = document
    if len(distinct) < 2:
        copies = f" in {count} copies" if count > 1 else ""
        raise SetupError(
            f"data {data!r} needs at least two documents that differ, got {len(distinct)}{copies}; "
            "in a text file a blank line separates two"
        )
    return tenth_held_out([distinct[key] for key in sorted(distinct)], count - len(distinct))


def clean(text: bytes) -> bytes:
    """`text` with LF line ends and without white space around it."""
    return text.replace(b"\r\n", b"\n").strip()


def from_value(value: object, where: str) -> bytes:
    """The document in one cell of a table; an empty cell holds a blank one.

    Raises SetupError, saying `where`, for anything but text.
    """
    if value is None:
        return b""
    if not isinstance(value, str):
        raise SetupError(f"{where}: expected text, got {type(value).__name__}")
    try:
        return clean(value.encode())
    except UnicodeEncodeError as error:  # JSON can spell half of a surrogate pair
        raise SetupError(f"{where}: character {error.start} is not Unicode text") from error


def require_column(columns: Iterable[str], where: object) -> None:
    """Raises SetupError unless one of the columns is that of the documents."""
    names = sorted(columns)
    if COLUMN not in names:
        raise SetupError(
            f"{where} has no column {COLUMN!r}, only {', '.join(names) or 'none at all'}: "
            f"rename the column of the documents to {COLUMN!r}"
        )


def optional(module: str, extra: str) -> Any:
    """A module that comes with an extra. Raises SetupError naming the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SetupError(
            f"this data or tokenizer needs the package {module.partition('.')[0]} ({error}): "
            f'pip install "cmaes-orchestrator[{extra}]"'
        ) from error
