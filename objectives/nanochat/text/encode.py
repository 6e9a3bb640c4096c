"""From documents to a file of tokens, in one pass and little memory."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from hashlib import sha256
from typing import IO

from objectives.nanochat.text.documents import Documents
from objectives.nanochat.text.tokenizer import Tokenizer

BLANK_LINE = b"\n\n"  # between two documents
END = b"\n"  # of a part
BATCH_BYTES = 1 << 20  # of text tokenised at once


@dataclass(frozen=True)
class Summary:
    """What a file of tokens holds: the training part first, the held-out part after it."""

    sha256: str  # of the text of both parts, a blank line between them
    documents: int
    train_bytes: int  # of the documents alone, without separators
    val_bytes: int
    duplicates: int
    train_tokens: int
    tokens_sha256: str  # of the file
    tokenizer_sha256: str
    token_bytes: list[int]  # by token id


def encode(documents: Documents, tokenizer: Tokenizer, file: IO[bytes]) -> Summary:
    """Writes the tokens of both parts to `file`. Raises SetupError when a document is no text, and
    OSError when `file` cannot be written."""
    writer = _Writer(tokenizer, file)
    train = writer.write(documents.train)
    writer.text.update(END)  # with the newline that ends the part: a blank line
    val = writer.write(documents.val)
    return Summary(
        sha256=writer.text.hexdigest(),
        documents=train.documents + val.documents,
        train_bytes=train.bytes,
        val_bytes=val.bytes,
        duplicates=documents.left_out,
        train_tokens=train.tokens,
        tokens_sha256=writer.tokens.hexdigest(),
        tokenizer_sha256=tokenizer.sha256,
        token_bytes=tokenizer.token_bytes.tolist(),
    )


def pieces(documents: Iterable[bytes]) -> Iterator[bytes]:
    """The text of a part, document by document: a blank line after each, a newline at the end."""
    waiting: bytes | None = None
    for document in documents:
        if waiting is not None:
            yield waiting + BLANK_LINE
        waiting = document
    if waiting is not None:
        yield waiting + END


@dataclass
class _Part:
    """Totals of one part."""

    documents: int = 0
    bytes: int = 0
    tokens: int = 0


class _Writer:
    """Appends tokens to a file and hashes what passes."""

    def __init__(self, tokenizer: Tokenizer, file: IO[bytes]) -> None:
        self.tokenizer, self.file = tokenizer, file
        self.text, self.tokens = sha256(), sha256()

    def write(self, documents: Iterable[bytes]) -> _Part:
        part = _Part()
        for texts in _batches(pieces(documents)):
            tokens = self.tokenizer.encode(texts)
            stored = tokens.tobytes()
            self.file.write(stored)
            self.tokens.update(stored)
            self.text.update(b"".join(texts))
            part.documents += len(texts)
            part.bytes += sum(map(len, texts)) - len(BLANK_LINE) * len(texts)
            part.tokens += len(tokens)
        part.bytes += len(BLANK_LINE) - len(END)  # the last document's separator is shorter
        return part


def _batches(texts: Iterable[bytes]) -> Iterator[list[bytes]]:
    batch, size = [], 0
    for text in texts:
        batch.append(text)
        size += len(text)
        if size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch
