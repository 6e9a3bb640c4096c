"""Which tokens are trained on and scored on, and in what order."""

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.text.data import Corpus

CHUNK = 64  # optimiser steps whose tokens are moved to the device at once


class Batches:
    """The training windows of every step: its number says what it reads.

    They are drawn some steps at a time, so memory does not grow with the steps of a run. How an
    effective batch is cut into micro-batches changes nothing of what it reads.
    """

    def __init__(
        self,
        corpus: Corpus,
        config: NanochatConfig,
        steps: int,
        generator: torch.Generator,
        device: torch.device,
    ) -> None:
        self._tokens, self._device = corpus.train, device
        self._shape = (config.gradient_accumulation_steps, config.micro_batch_size)
        self._window = np.arange(config.sequence_len + 1)
        self._steps, self._last = steps, len(corpus.train) - config.sequence_len
        self._generator, self._origin, self._drawn = generator, generator.get_state(), 0
        self._first, self._chunk = -1, torch.empty(0)

    def __getitem__(self, step: int) -> Tensor:
        """Token ids (micro-batch, sequence, token + 1) of `step`, on the device."""
        first = step // CHUNK * CHUNK
        if first != self._first:
            starts = self._starts(first)
            windows = self._tokens[starts[..., None] + self._window]
            chunk = _tensor(windows, self._device)
            self._first, self._chunk = first, chunk.view(-1, *self._shape, chunk.shape[-1])
        return self._chunk[step - first]

    def _starts(self, first: int) -> np.ndarray:
        """Where the windows of the chunk that begins with step `first` begin (step, sequence)."""
        if first < self._drawn:
            self._generator.set_state(self._origin)
            self._drawn = 0
        while self._drawn <= first:
            sequences = (min(CHUNK, self._steps - self._drawn), self._shape[0] * self._shape[1])
            starts = torch.randint(self._last, sequences, generator=self._generator)
            self._drawn += CHUNK
        return starts.numpy()


@dataclass(frozen=True)
class Windows:
    """Held-out text in windows."""

    tokens: Tensor  # (window, token + 1), on the device
    bytes: int  # of text that the targets stand for

    @classmethod
    def evenly(cls, corpus: Corpus, config: NanochatConfig, device: torch.device) -> "Windows":
        """The same windows for every candidate and seed, spread over the held-out text."""
        last = len(corpus.val) - config.sequence_len - 1
        starts = np.linspace(0, last, config.val_windows).astype(np.int64)
        windows = corpus.val[starts[:, None] + np.arange(config.sequence_len + 1)]
        return cls(_tensor(windows, device), int(corpus.token_bytes[windows[:, 1:]].sum()))

    def every(self, nth: int, corpus: Corpus) -> "Windows":
        """Each `nth` window."""
        tokens = self.tokens[::nth]
        return Windows(tokens, int(corpus.token_bytes[tokens[:, 1:].cpu().numpy()].sum()))


def _tensor(tokens: np.ndarray, device: torch.device) -> Tensor:
    tensor = torch.from_numpy(tokens.astype(np.int64))
    if device.type == "cuda":  # from pinned memory the GPU need not be waited for
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor
