"""Tokenizers: every byte a token, or byte-level BPE learnt from the training part."""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from hashlib import sha256
from importlib import import_module
from typing import TYPE_CHECKING, Any

from objectives.api import SetupError

if TYPE_CHECKING:  # numpy is imported where it is used: plans start quickly
    import numpy as np

BYTES = 256  # the smallest vocabulary that spells everything
LARGEST = 65536  # token ids are stored in 16 bits
BATCH = 256  # documents tokenised at once
LEARN_BYTES = 1 << 28  # of training text that BPE learns from, at most: minutes on one core


def vocab_size(tokenizer: str) -> int:
    """Return how many token ids `tokenizer` has. Raises ValueError on an unknown one."""
    if tokenizer == "bytes":
        return BYTES
    match = re.fullmatch(r"bpe:([1-9][0-9]{2,4})", tokenizer)
    if match is None or not BYTES < int(match[1]) <= LARGEST:
        raise ValueError(
            f"tokenizer {tokenizer!r} is not known: expected bytes or bpe:N, "
            f"with N above {BYTES} and up to {LARGEST}"
        )
    return int(match[1])


def optional(module: str, extra: str) -> Any:
    """Import a module of an extra. Raises SetupError naming the command that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SetupError(
            f"this data or tokenizer needs the package {module.partition('.')[0]} ({error}): "
            f'pip install "cmaes-orchestrator[{extra}]"'
        ) from error


def library(tokenizer: str) -> str:
    """Return the version of the library that decides the tokens. Raises SetupError without it."""
    return "" if tokenizer == "bytes" else str(optional("tokenizers", "bpe").__version__)


class Tokenizer:
    """Text in, token ids out, no byte lost. In this one a token is a byte."""

    sha256 = ""  # of a tokenizer's canonical JSON

    @property
    def token_bytes(self) -> "np.ndarray":
        """(vocab_size,) int64: bytes of text each token id stands for."""
        import numpy as np

        return np.ones(BYTES, dtype=np.int64)

    def encode(self, texts: Sequence[bytes]) -> "np.ndarray":
        """(tokens,) ids of the UTF-8 `texts`, one after another."""
        import numpy as np

        return np.frombuffer(b"".join(texts), dtype=np.uint8)


class Bpe(Tokenizer):
    """Byte-level BPE with the words and spaces of GPT-2, from the library `tokenizers`."""

    def __init__(self, name: str, texts: Iterable[bytes]) -> None:
        """Learn from the first `LEARN_BYTES` of `texts`; every process learns the same.

        Raises SetupError when the texts cannot fill the vocabulary, or the library is missing.
        """
        size = vocab_size(name)
        tokenizers = optional("tokenizers", "bpe")
        byte_level = tokenizers.pre_tokenizers.ByteLevel
        self._model = tokenizers.Tokenizer(tokenizers.models.BPE())
        self._model.pre_tokenizer = byte_level(add_prefix_space=False)
        trainer = tokenizers.trainers.BpeTrainer(
            vocab_size=size, initial_alphabet=byte_level.alphabet(), show_progress=False
        )
        self._model.train_from_iterator(_beginning(texts), trainer)
        learnt = self._model.get_vocab_size()
        if learnt < size:
            smaller = f"bpe:{learnt}" if learnt > BYTES else "bytes"
            raise SetupError(
                f"the training text gives only {learnt} tokens, expected {size} for tokenizer "
                f"{name!r}: use tokenizer {smaller} or more text"
            )
        description = json.loads(self._model.to_str())
        canonical = json.dumps(description, sort_keys=True, separators=(",", ":"))
        self.sha256 = sha256(canonical.encode()).hexdigest()

    @property
    def token_bytes(self) -> "np.ndarray":
        import numpy as np

        sizes = np.zeros(self._model.get_vocab_size(), dtype=np.int64)
        for token, number in self._model.get_vocab().items():
            sizes[number] = len(token)  # one letter spells one byte
        return sizes

    def encode(self, texts: Sequence[bytes]) -> "np.ndarray":
        import numpy as np

        parts = []
        for first in range(0, len(texts), BATCH):
            words = [text.decode() for text in texts[first : first + BATCH]]
            parts += [np.array(p.ids, np.uint16) for p in self._model.encode_batch_fast(words)]
        return np.concatenate(parts)


def learn(tokenizer: str, texts: Iterable[bytes]) -> Tokenizer:
    """Return the tokenizer of that name, learnt from `texts`. Raises SetupError."""
    return Tokenizer() if tokenizer == "bytes" else Bpe(tokenizer, texts)


def _beginning(texts: Iterable[bytes]) -> Iterator[str]:
    left = LEARN_BYTES
    for text in texts:
        if left <= 0:
            return
        left -= len(text)
        yield text.decode()
