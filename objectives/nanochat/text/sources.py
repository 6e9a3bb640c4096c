"""What the setting `data` may name, and the documents found there."""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from os.path import isdir  # unlike Path.is_dir it never raises: opening says what is wrong
from pathlib import Path
from typing import Protocol

from objectives.api import SetupError
from objectives.nanochat.text.builtin import BUILTIN, Pinned
from objectives.nanochat.text.columns import Hub, Saved, Shards
from objectives.nanochat.text.documents import COLUMN, Documents, clean, from_value, split
from objectives.nanochat.text.files import (
    file_sha256,
    opened,
    read_text,
    require_utf8,
    tree,
    tree_sha256,
)

EXPECTED = (
    "a UTF-8 text file (also .gz or .xz), a folder of *.txt and *.md files, a folder of *.parquet "
    f"files, jsonl:PATH[:FIELD], hf:NAME[:CONFIG], hf:/FOLDER or one of {', '.join(BUILTIN)}"
)
_BLANK_LINES = re.compile(rb"\n(?:[ \t]*\n)+")
_PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:")
_OWN_FORM = {".jsonl": "jsonl:PATH", ".parquet": "the folder of two or more such files"}


class Source(Protocol):
    """Where documents come from."""

    @property
    def name(self) -> str:
        """What names the same source in any working directory."""

    def fingerprint(self) -> str:
        """SHA-256 (hex) of what decides the documents. Raises SetupError."""

    def documents(self) -> Documents:
        """Raises SetupError, saying how to mend it, when they are not there or not text."""


def parse(data: str) -> Source:
    """The source `data` names, without reading it. Raises ValueError when the form is unknown."""
    if data in BUILTIN:
        return Pinned(data)
    if data.startswith("jsonl:"):
        return _json_lines(data.removeprefix("jsonl:"))
    if data.startswith("hf:"):
        return _data_set(data.removeprefix("hf:"))
    if not data or _PREFIX.match(data):
        raise ValueError(
            f"data {data!r} is not known: expected {EXPECTED}; "
            "a path that looks like a prefix starts with ./"
        )
    return Local(_absolute(data))


def _json_lines(rest: str) -> "JsonLines":
    """PATH[:FIELD]. A path with a colon in its last part is only understood with its field."""
    path, colon, field = rest.rpartition(":")
    if not colon or "/" in field:
        path, field = rest, COLUMN
    if not path or not field:
        raise ValueError(f"data 'jsonl:{rest}' is incomplete: expected jsonl:PATH[:FIELD]")
    return JsonLines(_absolute(path), field)


def _data_set(rest: str) -> Hub | Saved:
    """A folder starts with a slash, a dot or a tilde; anything else is a name on the hub."""
    if rest.startswith(("/", ".", "~")):
        return Saved(_absolute(rest))
    name, colon, config = rest.partition(":")
    if not name or (colon and not config):
        raise ValueError(f"data 'hf:{rest}' is incomplete: expected hf:NAME[:CONFIG] or hf:/FOLDER")
    return Hub(name, config or None)


def _absolute(path: str) -> Path:
    if "\0" in path:
        raise ValueError(f"data {path!r}: expected a path, and none holds a zero byte")
    try:
        return Path(path).expanduser().absolute()
    except RuntimeError as error:  # ~somebody
        raise ValueError(f"data {path!r}: {error}") from error


@dataclass(frozen=True)
class Local:
    """A text file, or a folder of either text files or Parquet shards."""

    path: Path

    @property
    def name(self) -> str:
        return str(self.path)

    def fingerprint(self) -> str:
        """Of a file its bytes; of a folder the names, sizes and hashes of the files used."""
        if isdir(self.path):
            return tree_sha256(self.path, _of_one_kind(self.path))
        return file_sha256(self.path, EXPECTED)

    def documents(self) -> Documents:
        if not isdir(self.path):
            return split(self._paragraphs(), self.name)
        names = _of_one_kind(self.path)
        if _is_shard(names[0]):
            return Shards.last_held_out(self.path, names)
        return split(filter(None, (_whole(self.path / name) for name in names)), self.name)

    def _paragraphs(self) -> Iterator[bytes]:
        """What blank lines separate in a text file."""
        if mend := _OWN_FORM.get(self.path.suffix.lower()):
            raise SetupError(f"data {self.name!r} is no text file: set data to {mend}")
        text = read_text(self.path, EXPECTED).replace(b"\r\n", b"\n")
        return filter(None, (part.strip() for part in _BLANK_LINES.split(text)))


@dataclass(frozen=True)
class JsonLines:
    """A file with a JSON object a line, each with a document in `field`."""

    path: Path
    field: str

    @property
    def name(self) -> str:
        return f"jsonl:{self.path}:{self.field}"

    def fingerprint(self) -> str:
        file = file_sha256(self.path, "a file with a JSON object a line")
        return sha256(f"jsonl:{self.field}:{file}".encode()).hexdigest()

    def documents(self) -> Documents:
        return split(filter(None, self._lines()), self.name)

    def _lines(self) -> Iterator[bytes]:
        offset = 0
        with opened(self.path, "a file with a JSON object a line") as file:
            for number, line in enumerate(file, 1):
                require_utf8(line, self.path, offset)
                offset += len(line)
                if line.strip():
                    yield self._document(line, f"{self.path}, line {number}")

    def _document(self, line: bytes, where: str) -> bytes:
        try:
            row = json.loads(line)
        except ValueError as error:
            raise SetupError(f"{where}: not JSON ({error}); expected one object a line") from error
        if not isinstance(row, dict):
            raise SetupError(f"{where}: expected an object, got {type(row).__name__}")
        if self.field not in row:
            raise SetupError(
                f"{where}: expected the field {self.field!r}, got {', '.join(row) or 'none'}; "
                "another field is named by data = jsonl:PATH:FIELD"
            )
        return from_value(row[self.field], where)


def _whole(path: Path) -> bytes:
    return clean(read_text(path, "a UTF-8 text file"))


def _is_shard(name: str) -> bool:
    return name.lower().endswith(".parquet")


def _of_one_kind(folder: Path) -> list[str]:
    """The text files in `folder`, or the Parquet files. Raises SetupError for both or neither."""
    names = tree(folder)
    texts = [name for name in names if name.lower().endswith((".txt", ".md"))]
    shards = [name for name in names if _is_shard(name)]
    if bool(texts) != bool(shards):
        return texts or shards
    found = f"{texts[0]} and {shards[0]}" if texts else f"{len(names)} files of other kinds"
    raise SetupError(
        f"the folder {str(folder)!r} must hold *.txt and *.md files, or else *.parquet files; "
        f"got {found}: keep the text in a folder of its own"
    )
