"""Tokenizers: every byte a token, or byte-level BPE learnt from the training part."""

import json
import re
from collections.abc import Callable, Sequence
from hashlib import sha256
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple

from objectives.api import SetupError

if TYPE_CHECKING:  # numpy is imported where it is used: plans start quickly
    import numpy as np

BYTES = 256  # the smallest vocabulary that spells everything
LARGEST = 65536  # token ids are stored in 16 bits
BATCH = 256  # documents tokenised at once
LEARN_BYTES = 1 << 28  # of training text that BPE learns from, at most: minutes on one core


class Tokenizer(NamedTuple):
    """Text in, token ids out, no byte lost."""

    encode: "Callable[[Sequence[bytes]], np.ndarray]"  # ids of UTF-8 texts, one after another
    token_bytes: "np.ndarray"  # (vocab_size,) int64: bytes of text each token id stands for
    sha256: str  # of its canonical JSON; "" where a token is a byte


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


def learn(tokenizer: str, texts: Sequence[bytes]) -> Tokenizer:
    """Return the tokenizer of that name, learnt from the first `LEARN_BYTES` of `texts`.

    Every process learns the same. Raises SetupError when the texts cannot fill the vocabulary, or
    the library `tokenizers` is missing.
    """
    import numpy as np

    size = vocab_size(tokenizer)
    sizes = np.ones(size, dtype=np.int64)
    if tokenizer == "bytes":
        return Tokenizer(lambda texts: np.frombuffer(b"".join(texts), np.uint8), sizes, "")
    model = _learnt(size, texts)
    if model.get_vocab_size() < size:
        raise SetupError(
            f"the training text gives only {model.get_vocab_size()} tokens, expected {size} for "
            f"tokenizer {tokenizer!r}: use fewer, the tokenizer bytes, or more text"
        )
    for token, number in model.get_vocab().items():
        sizes[number] = len(token)  # one letter spells one byte

    def encode(texts: Sequence[bytes]) -> "np.ndarray":
        parts = []
        for first in range(0, len(texts), BATCH):
            words = [text.decode() for text in texts[first : first + BATCH]]
            parts += [np.array(p.ids, np.uint16) for p in model.encode_batch_fast(words)]
        return np.concatenate(parts)

    canonical = json.dumps(json.loads(model.to_str()), sort_keys=True, separators=(",", ":"))
    return Tokenizer(encode, sizes, sha256(canonical.encode()).hexdigest())


def _learnt(size: int, texts: Sequence[bytes]) -> Any:
    """Return byte-level BPE with the words and spaces of GPT-2."""
    tokenizers = optional("tokenizers", "bpe")
    byte_level = tokenizers.pre_tokenizers.ByteLevel
    model = tokenizers.Tokenizer(tokenizers.models.BPE())
    model.pre_tokenizer = byte_level(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=size, initial_alphabet=byte_level.alphabet(), show_progress=False
    )
    ends = accumulate(map(len, texts))
    beginning = (
        text.decode()
        for text, end in zip(texts, ends, strict=True)
        if end - len(text) < LEARN_BYTES
    )
    model.train_from_iterator(beginning, trainer)
    return model
