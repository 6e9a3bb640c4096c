"""The text to train on and to be scored on, as tokens, pinned by its SHA-256.

Whatever `data` names becomes documents in a fixed order, a blank line between two, a newline at the
end of each part. What was prepared once stays in the user's cache directory and is mapped into
memory, so that an evaluation starts at once.
"""

from contextlib import suppress
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING

from objectives.api import SetupError
from objectives.files import cache_directory
from objectives.nanochat.text import cache
from objectives.nanochat.text.builtin import BUILTIN
from objectives.nanochat.text.encode import Summary, encode, pieces
from objectives.nanochat.text.sources import Source, parse
from objectives.nanochat.text.tokenizer import learn, library, vocab_size

if TYPE_CHECKING:  # numpy is imported where it is used: plans stay quick
    import numpy as np

__all__ = ["BUILTIN", "Corpus", "absolute", "fingerprint", "load", "require_length"]

LAYOUT = "2"  # to be raised when the same data is split, tokenised or kept in another way


@dataclass(frozen=True)
class Corpus:
    """Training and held-out text as tokens. Two are equal if their text and tokenizer are."""

    sha256: str  # of the text: all documents, the training part first, a blank line between two
    tokenizer: str  # "bytes" or "bpe:N"
    tokenizer_sha256: str  # of its canonical JSON; "" for bytes
    documents: int  # in both parts
    train: "np.ndarray" = field(repr=False, compare=False)  # (tokens,) uint8, uint16 for BPE
    val: "np.ndarray" = field(repr=False, compare=False)  # the same; both are read-only
    train_bytes: int  # of the documents alone, without separators
    val_bytes: int
    token_bytes: "np.ndarray" = field(repr=False, compare=False)  # (vocab_size,) int64, of text
    duplicates: int = 0  # copies of documents that were left out

    @property
    def vocab_size(self) -> int:
        return vocab_size(self.tokenizer)


def absolute(data: str) -> str:
    """What names the same data in any working directory. Raises ValueError for an unknown form."""
    return parse(data).name


def fingerprint(data: str, tokenizer: str = "bytes") -> str:
    """SHA-256 (hex) of what decides the tokens; a run is only resumed with the same.

    A built-in text is known without being read. Of a file its bytes count, of a folder its files'
    names, sizes and hashes. A name on the Hugging Face hub is loaded, to take the fingerprint that
    `datasets` gives it. Raises ValueError for an unknown form, SetupError for unreadable data.
    """
    vocab_size(tokenizer)
    mark = parse(data).fingerprint()
    return mark if tokenizer == "bytes" else sha256(f"{tokenizer}\n{mark}".encode()).hexdigest()


def load(data: str, tokenizer: str = "bytes") -> Corpus:
    """The text `data` names, split and tokenised.

    Raises ValueError for an unknown form, and SetupError, saying how to mend it, when the text is
    missing, damaged, too little, or not the pinned one, or a package is missing.
    """
    vocab_size(tokenizer)
    source = parse(data)
    mark = source.fingerprint()
    kept = _Kept.of(mark, tokenizer)
    return kept.read() or _prepare(source, mark, kept)


def require_length(corpus: Corpus, sequence_len: int) -> None:
    """Raises SetupError unless both parts hold a window of `sequence_len` tokens and its target."""
    for part, tokens in (("training", corpus.train), ("held-out", corpus.val)):
        if len(tokens) <= sequence_len:
            raise SetupError(
                f"the {part} text has {len(tokens)} tokens, expected more than sequence_len "
                f"{sequence_len}: use more text or a smaller sequence_len"
            )


@dataclass(frozen=True)
class _Kept:
    """Where a corpus is kept: the summary is written last, and vouches for the tokens."""

    tokenizer: str
    stem: str

    @classmethod
    def of(cls, mark: str, tokenizer: str) -> "_Kept":
        """Named by all that decides the tokens of the data with fingerprint `mark`."""
        key = sha256("\n".join((LAYOUT, mark, tokenizer, library(tokenizer))).encode())
        return cls(tokenizer, f"{tokenizer.replace(':', '-')}-{key.hexdigest()[:32]}")

    def path(self, kind: str) -> Path:
        return cache_directory() / f"{self.stem}.{kind}"

    def read(self) -> Corpus | None:
        """The corpus, if it is there and whole."""
        stored = cache.recall(self.path("json"))
        if stored is None:
            return None
        summary = Summary(**stored)
        with suppress(OSError):
            if cache.digests(self.path("tokens"))[0][1] == summary.tokens_sha256:
                return self.corpus(summary, self.mapped(self.path("tokens")))
        return None

    def mapped(self, file: Path | IO[bytes]) -> "np.ndarray":
        """The tokens in that file. Raises OSError."""
        import numpy as np

        return np.asarray(np.memmap(file, dtype=self._dtype, mode="r"))

    def in_memory(self, tokens: bytes) -> "np.ndarray":
        import numpy as np

        return np.frombuffer(tokens, dtype=self._dtype)

    @property
    def _dtype(self) -> str:
        return "uint8" if self.tokenizer == "bytes" else "uint16"

    def corpus(self, summary: Summary, tokens: "np.ndarray") -> Corpus:
        import numpy as np

        return Corpus(
            sha256=summary.sha256,
            tokenizer=self.tokenizer,
            tokenizer_sha256=summary.tokenizer_sha256,
            documents=summary.documents,
            train=tokens[: summary.train_tokens],
            val=tokens[summary.train_tokens :],
            train_bytes=summary.train_bytes,
            val_bytes=summary.val_bytes,
            token_bytes=np.array(summary.token_bytes, dtype=np.int64),
            duplicates=summary.duplicates,
        )

    def forget(self) -> None:
        for kind in ("json", "tokens", "tokenizer.json"):
            with suppress(OSError):
                self.path(kind).unlink()


def _prepare(source: Source, mark: str, kept: _Kept) -> Corpus:
    """Read, tokenise and keep. Raises SetupError, also when the data changes meanwhile."""
    documents = source.documents()
    for part, some in (("training", documents.train), ("held-out", documents.val)):
        if next(iter(some), None) is None:
            raise SetupError(f"the {part} part of data {source.name!r} holds no document")
    tokenizer = learn(kept.tokenizer, pieces(documents.train), kept.path("tokenizer.json"))
    try:
        with cache.replacing(kept.path("tokens")) as file:
            summary = encode(documents, tokenizer, file)
            file.flush()
            tokens = kept.mapped(file)
    except OSError:  # the cache cannot be written
        memory = BytesIO()
        summary = encode(documents, tokenizer, memory)
        tokens = kept.in_memory(memory.getvalue())
    if source.fingerprint() != mark:
        kept.forget()
        raise SetupError(f"data {source.name!r} changed while it was read: try again")
    cache.store(kept.path("json"), asdict(summary))
    return kept.corpus(summary, tokens)
