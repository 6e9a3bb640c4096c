"""Tokenizers: every byte a token, or byte-level BPE learnt from the training part."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from objectives.api import SetupError
from objectives.nanochat.text import cache
from objectives.nanochat.text.documents import optional

if TYPE_CHECKING:  # numpy is imported where it is used: plans stay quick
    import numpy as np

BYTES = 256  # the smallest vocabulary that spells everything
LARGEST = 65536  # token ids are stored in 16 bits
LEARN_BYTES = 1 << 28  # of training text that BPE learns from, at most: minutes on one core
_BPE = re.compile(r"bpe:([1-9][0-9]{2,4})")


def vocab_size(tokenizer: str) -> int:
    """How many token ids `tokenizer` has. Raises ValueError when it is none."""
    if tokenizer == "bytes":
        return BYTES
    match = _BPE.fullmatch(tokenizer)
    if match is None or not BYTES < int(match[1]) <= LARGEST:
        raise ValueError(
            f"tokenizer {tokenizer!r} is not known: expected bytes or bpe:N, "
            f"with N above {BYTES} and up to {LARGEST}"
        )
    return int(match[1])


class Tokenizer(Protocol):
    """Text in, token ids out, no byte lost."""

    @property
    def sha256(self) -> str:
        """Of its canonical JSON; "" for bytes, which need no description."""

    @property
    def token_bytes(self) -> "np.ndarray":
        """(vocab_size,) int64: bytes of text each token id stands for."""

    def encode(self, texts: Sequence[bytes]) -> "np.ndarray":
        """(tokens,) ids of the UTF-8 `texts`, one after another."""


class Bytes:
    """A token is a byte."""

    sha256 = ""

    @property
    def token_bytes(self) -> "np.ndarray":
        import numpy as np

        return np.ones(BYTES, dtype=np.int64)

    def encode(self, texts: Sequence[bytes]) -> "np.ndarray":
        import numpy as np

        return np.frombuffer(b"".join(texts), dtype=np.uint8)


class Bpe:
    """Byte-level BPE with the words and spaces of GPT-2, from the library `tokenizers`."""

    def __init__(self, description: Any) -> None:
        """From the parsed JSON of a trained tokenizer. Raises SetupError without the library."""
        import numpy as np

        text = cache.canonical(description)
        self.sha256 = sha256(text).hexdigest()
        self._model = optional("tokenizers", "bpe").Tokenizer.from_str(text.decode())
        self.token_bytes = np.zeros(self._model.get_vocab_size(), dtype=np.int64)
        for token, number in self._model.get_vocab().items():
            self.token_bytes[number] = len(token)  # one letter spells one byte

    def encode(self, texts: Sequence[bytes]) -> "np.ndarray":
        import numpy as np

        parts = self._model.encode_batch_fast([text.decode() for text in texts])
        tokens = np.concatenate([np.asarray(part.ids, dtype=np.uint16) for part in parts])
        assert self.token_bytes[tokens].sum() == sum(map(len, texts))
        return tokens


def library(tokenizer: str) -> str:
    """The version that decides what `tokenizer` makes of a text; "" for bytes.

    Raises SetupError when the library is not installed.
    """
    if tokenizer == "bytes":
        return ""
    with suppress(PackageNotFoundError):
        return f"tokenizers {version('tokenizers')}"
    return f"tokenizers {optional('tokenizers', 'bpe').__version__}"


def learn(tokenizer: str, texts: Iterable[bytes], kept: Path) -> Tokenizer:
    """The tokenizer named, learnt from `texts` unless `kept` holds it already.

    The same texts and library give the same tokenizer in every process, so that it does not
    matter which of several writes `kept`. Raises SetupError.
    """
    if tokenizer == "bytes":
        return Bytes()
    description = cache.recall(kept)
    if description is None:
        description = _trained(vocab_size(tokenizer), texts)
        cache.store(kept, description)
    return Bpe(description)


def _trained(size: int, texts: Iterable[bytes]) -> Any:
    tokenizers = optional("tokenizers", "bpe")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = byte_level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    model.train_from_iterator(_beginning(texts), trainer)
    learnt = model.get_vocab_size()
    if learnt < size:
        mend = f"bpe:{learnt}" if learnt > BYTES else "bytes"
        raise SetupError(
            f"the training text gives only {learnt} tokens, expected {size} for tokenizer "
            f"'bpe:{size}': use tokenizer {mend} or more text"
        )
    return json.loads(model.to_str())


def _beginning(texts: Iterable[bytes]) -> Iterator[str]:
    left = LEARN_BYTES
    for text in texts:
        if left <= 0:
            return
        left -= len(text)
        yield text.decode()
