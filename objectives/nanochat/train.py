"""Batches, a step, bits per byte: to be read beside nanochat's base_train.py.

Nothing here draws from torch's global generators. All randomness comes from the seed, in three
independent streams: two candidates with the same seed share weights, batches and noise.
"""

import math
import os
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from hashlib import sha256
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.utils import clip_grad_norm_

from objectives.api import DivergedError, OutOfMemoryError
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.data import Corpus, require_length
from objectives.nanochat.flops import plan
from objectives.nanochat.model import GPT
from objectives.nanochat.optim import get_lr_multiplier, setup_optimizer
from objectives.nanochat.synaptic import release_noise
from objectives.process import OUT_OF_MEMORY

CHUNK = 64  # optimiser steps whose tokens are moved to the device at once
ROOM = 1024  # steps whose losses have room at first
EVAL_BATCHES = 4  # micro-batches scored at once: without gradients there is room
SPIKE_WINDOW = 32  # steps before a loss that say what was to be expected
SPIKE = 6.0  # robust standard deviations above them
SPIKE_FLOOR = 0.1  # nats a loss must rise at least to be a spike
UNSTABLE_SHARE = 0.02  # of the steps being spikes
EXPLODING = 0.3  # nats the end lies above the lowest level on the way
TAIL = 5  # the last fifth of the steps is the end
MAD = 1.4826  # median absolute deviations in a normal's standard deviation


def batches(
    tokens: np.ndarray, config: NanochatConfig, left: range, seed: int, device: torch.device
) -> Iterator[Tensor]:
    """Yield token ids (micro-batch, sequence, token + 1) of every step that is `left`.

    They are drawn `CHUNK` steps at a time, so memory does not grow with the steps of a run. How an
    effective batch is cut into micro-batches changes nothing of what is read.
    """
    cut = (config.gradient_accumulation_steps, config.micro_batch_size)
    last, generator = len(tokens) - config.sequence_len, _generator(seed, "data", "cpu")
    for first in range(0, left.stop, CHUNK):
        steps = min(CHUNK, left.stop - first)
        starts = torch.randint(last, (steps, math.prod(cut)), generator=generator)
        if first + steps > left.start:
            chunk = _windows(tokens, starts.numpy(), config, device).view(steps, *cut, -1)
            yield from chunk[max(0, left.start - first) :]


def _windows(
    tokens: np.ndarray, starts: np.ndarray, config: NanochatConfig, device: torch.device
) -> Tensor:
    found = tokens[starts[..., None] + np.arange(config.sequence_len + 1)]
    return torch.from_numpy(found.astype(np.int64)).to(device)


class Trainer:
    """One training run on one device; `step()` until `done == steps`."""

    def __init__(self, config: NanochatConfig, corpus: Corpus, seed: int, device: str) -> None:
        """Raises SetupError when the text is too short."""
        require_length(corpus, config.sequence_len)
        self.config, self.corpus, self.device = config, corpus, torch.device(device)
        self.plan = plan(config, len(corpus.train))
        self.steps = self.plan.steps
        self._seed, self.done = seed, 0
        self.batches = self._batches()
        # Windows spread over the held-out text, the same for every candidate and seed.
        last = len(corpus.val) - config.sequence_len - 1
        starts = np.linspace(0, last, config.val_windows).astype(np.int64)
        self.val = _windows(corpus.val, starts, config, self.device)  # (window, token + 1)
        self.noise = _generator(seed, "noise", device)
        self.model = GPT(config, _generator(seed, "init", "cpu"), self.device)
        self.optimizers = setup_optimizer(self.model, config)
        self.losses = self.grad_norms = torch.zeros(0, device=self.device)

    def _batches(self) -> Iterator[Tensor]:
        left = range(self.done, self.steps)
        return batches(self.corpus.train, self.config, left, self._seed, self.device)

    def step(self) -> None:
        """One optimiser step. Waits for nothing on the device."""
        self.model.train()
        noise = release_noise(self.config, self.noise)
        loss = torch.zeros((), device=self.device)
        for batch in next(self.batches).unbind():
            with self._autocast():
                part = self.model(batch[:, :-1], batch[:, 1:], noise)
            part = part / self.config.gradient_accumulation_steps
            torch.autograd.backward(part)
            loss += part.detach()
        if self.done == len(self.losses):  # twice the room
            more = torch.zeros(min(max(self.done, ROOM), self.steps - self.done)).to(self.device)
            self.losses, self.grad_norms = (
                torch.cat((one, more)) for one in (self.losses, self.grad_norms)
            )
        norm = clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm, foreach=True)
        self.losses[self.done], self.grad_norms[self.done] = loss, norm
        lrm = get_lr_multiplier(self.done, self.steps, self.config)
        for optimizer in self.optimizers:
            for group in optimizer.param_groups:
                group["lr"] = group["initial_lr"] * lrm
            optimizer.step()
            optimizer.zero_grad()
        self.model.adapt()
        self.done += 1

    def require_finite(self, since: int = 0) -> None:
        """Raises DivergedError on a loss from step `since` on that is not finite.

        Waits for the device.
        """
        for step, loss in enumerate(self.losses[since : self.done].tolist(), since + 1):
            if not math.isfinite(loss):
                raise DivergedError(f"the training loss is {loss} at step {step}")

    @torch.no_grad()
    def evaluate_bpb(self, alive: Callable[[], None] = lambda: None) -> float:
        """Return the bits per byte of the held-out text; `alive` is called between parts.

        Changes no state of the training.
        """
        self.model.eval()
        nats = torch.zeros((), dtype=torch.float64, device=self.device)
        for part in torch.split(self.val, EVAL_BATCHES * self.config.micro_batch_size):
            with self._autocast():
                nats += self.model(part[:, :-1], part[:, 1:]).double() * part[:, 1:].numel()
            alive()
        return float(nats) / self.val[:, 1:].numel() / math.log(2.0)  # a token is a byte

    def gpu_memory(self) -> dict[str, float]:
        """Return the peak of the GPU's memory in use and its size; empty on a CPU."""
        if self.device.type != "cuda":
            return {}
        return {
            "gpu_peak_bytes": float(torch.cuda.max_memory_reserved(self.device)),
            "gpu_memory_bytes": float(torch.cuda.get_device_properties(self.device).total_memory),
        }

    def _autocast(self) -> AbstractContextManager[Any]:
        dtype = self.config.dtype
        if dtype == "bfloat16" or (dtype == "auto" and self.device.type == "cuda"):
            return torch.autocast(self.device.type, torch.bfloat16)
        return nullcontext()

    def state_dict(self) -> dict[str, Any]:
        """Return the state that training resumes from, bit for bit on a CPU: live, not a copy."""
        return {
            "done": self.done,
            "model": self.model.state_dict(),
            "optimizers": [optimizer.state_dict() for optimizer in self.optimizers],
            "noise": self.noise.get_state(),
            "losses": self.losses,
            "grad_norms": self.grad_norms,
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Resume from what `state_dict` gave, in a run with the same configuration."""
        self.done = state["done"]
        self.batches = self._batches()
        self.model.load_state_dict(state["model"])
        for optimizer, saved in zip(self.optimizers, state["optimizers"], strict=True):
            optimizer.load_state_dict(saved)
        self.noise.set_state(state["noise"])
        self.losses = state["losses"].to(self.device, copy=True)
        self.grad_norms = state["grad_norms"].to(self.device, copy=True)


def _generator(seed: int, stream: str, device: str) -> torch.Generator:
    """Return a stream for one purpose: using more of one never shifts another."""
    key = int.from_bytes(sha256(f"{seed}/{stream}".encode()).digest()[:8], "big") >> 1
    return torch.Generator(device).manual_seed(key)


@contextmanager
def torch_set(threads: int, device: str) -> Iterator[None]:
    """Let torch use `threads` threads, and deterministic kernels on a GPU.

    Raises OutOfMemoryError where the block runs out of memory.
    """
    torch.set_num_threads(threads)
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or cuBLAS is not
        torch.use_deterministic_algorithms(True, warn_only=True)
        if torch.cuda.memory_reserved():  # by an earlier evaluation in this process
            torch.cuda.reset_peak_memory_stats()
    try:
        yield
    except (RuntimeError, MemoryError) as error:  # on a CPU it has no class of its own
        named = isinstance(error, MemoryError | torch.OutOfMemoryError)
        if named or OUT_OF_MEMORY.search(str(error)):
            raise OutOfMemoryError(str(error) or "out of memory") from error
        raise


def diagnose(losses: Tensor, grad_norms: Tensor) -> dict[str, float]:
    """Return figures and flags (0 or 1) on a run's `losses` (step), in nats, and `grad_norms`."""
    losses, grad_norms = losses.double().cpu(), grad_norms.double().cpu()
    levels = losses.unfold(0, max(1, len(losses) // TAIL), 1).mean(1)
    lowest = losses[0].minimum(levels.min())
    spikes = _spikes(losses)
    return {
        "train_loss_tail": levels[-1].item(),
        "largest_grad_norm": grad_norms.max().item(),
        "loss_spikes": float(spikes),
        "unstable": float(spikes > UNSTABLE_SHARE * len(losses)),
        "exploding": float(levels[-1] > lowest + EXPLODING),
    }


def _spikes(losses: Tensor) -> int:
    """Return how many losses stand out above the window before them."""
    if len(losses) <= SPIKE_WINDOW:
        return 0
    before = losses.unfold(0, SPIKE_WINDOW, 1)[:-1]
    median = before.median(1).values
    spread = MAD * (before - median[:, None]).abs().median(1).values
    rise = losses[SPIKE_WINDOW:] - median
    return int(((rise > SPIKE * spread) & (rise > SPIKE_FLOOR)).sum())
