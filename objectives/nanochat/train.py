"""One evaluation: train for a fixed number of FLOPs, then score on held-out bytes.

Nothing here draws from torch's global generators or leaves a global setting changed, so that
evaluations in one process do not disturb each other. All randomness comes from the seed, in three
independent streams: two candidates with the same seed share weights, batches and noise.
"""

import math
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import sha256

import torch
import torch.nn.functional as F  # noqa: N812 - the name everybody knows it by
from torch import Tensor

from objectives.api import Context, DivergedError, Measurement, OutOfMemoryError
from objectives.nanochat import data
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import plan
from objectives.nanochat.knobs import SynapticKnobs
from objectives.nanochat.model import GPT
from objectives.nanochat.optim import lr_factor, optimizers, set_lr

HEARTBEAT_STEPS = 10
HEARTBEAT_SECONDS = 1.0
EVAL_BATCHES = 4  # training batches scored at once: without gradients there is room
INITIAL_SHARE = 8  # the untrained model is scored on every 8th window


def evaluate(
    config: NanochatConfig, knobs: SynapticKnobs, seed: int, context: Context
) -> Measurement:
    """Held-out bits per byte after `config.target_flops`. Raises as `Objective.evaluate` does."""
    with _torch(context.threads):
        return Trial(config, knobs, seed, context).run()


class Trial:
    """The state of one training run."""

    def __init__(
        self, config: NanochatConfig, knobs: SynapticKnobs, seed: int, context: Context
    ) -> None:
        corpus = data.load(config.data)
        data.require_length(corpus, config.sequence_len)
        device = torch.device(context.device)
        self.config, self.context, self.budget = config, context, plan(config)
        self.text = _bytes(corpus.train).to(device)
        self.val = _val_windows(corpus.val, config).to(device)
        self.offsets = torch.randint(
            len(corpus.train) - config.sequence_len,
            (self.budget.steps, config.batch_size, 1),
            generator=_generator(seed, "data", "cpu"),
        ).to(device)
        self.window = torch.arange(config.sequence_len + 1, device=device)
        self.noise = _generator(seed, "noise", context.device)
        synapses = knobs if config.model == "synaptic" else None
        self.model = GPT(config, synapses, _generator(seed, "init", "cpu")).to(device)
        self.optimizers = optimizers(self.model, config)
        self.losses = torch.zeros(self.budget.steps, device=device)
        self.grad_norms = torch.zeros(self.budget.steps, device=device)
        self.beat_at = time.monotonic()

    def run(self) -> Measurement:
        """Score, train, score."""
        few = self.val[::INITIAL_SHARE]
        initial_bpb = self.bits_per_byte(few)
        started = time.perf_counter()
        self._train()
        seconds = time.perf_counter() - started
        score = self.bits_per_byte(self.val)
        tokens = self.budget.steps * self.config.tokens_per_step
        tail = max(1, self.budget.steps // 5)
        metrics = {
            "initial_bpb": initial_bpb,
            "tokens_per_second": tokens / seconds,
            "train_loss_tail": self.losses[-tail:].mean().item(),
            "max_grad_norm": self.grad_norms.max().item(),
            "epochs": tokens / len(self.text),
        }
        return Measurement(
            score=score,
            train_seconds=seconds,
            steps=self.budget.steps,
            tokens=tokens,
            train_flops=self.budget.train_flops,
            eval_flops=(len(few) + len(self.val)) * self.budget.eval_flops_per_window,
            metrics=_finite(metrics),
        )

    @torch.no_grad()
    def bits_per_byte(self, windows: Tensor) -> float:
        """Mean cross-entropy, in bits, over `windows` (window, sequence_len + 1) of bytes."""
        self.model.eval()
        total = torch.zeros((), dtype=torch.float64, device=windows.device)
        for part in torch.split(windows, EVAL_BATCHES * self.config.batch_size):
            total += _loss(self.model(part[:, :-1]), part[:, 1:]).double() * len(part)
            if self._silent():
                self._beat({})
        return float(total) / len(windows) / math.log(2.0)

    def _train(self) -> None:
        self.model.train()
        reported, steps = 0, self.budget.steps
        for done in range(1, steps + 1):
            self._step(done - 1)
            if done % HEARTBEAT_STEPS == 0 or done == steps or self._silent():
                self._report(reported, done)
                reported = done

    def _step(self, step: int) -> None:
        batch = self.text[self.offsets[step] + self.window].long()
        loss = _loss(self.model(batch[:, :-1], self.noise), batch[:, 1:])
        torch.autograd.backward(loss)
        norm = torch.nn.utils.clip_grad_norm_(self.model.parameters(), self.config.max_grad_norm)
        factor = lr_factor(step, self.budget.steps, self.config)
        for optimizer in self.optimizers:
            set_lr(optimizer, factor)
            optimizer.step()
            optimizer.zero_grad()
        self.model.adapt()
        self.losses[step], self.grad_norms[step] = loss.detach(), norm

    def _report(self, since: int, done: int) -> None:
        """Look at the losses of steps `since` to `done`: the only place that waits for a GPU."""
        recent = self.losses[since:done].tolist()
        for step, loss in enumerate(recent, since + 1):
            if not math.isfinite(loss):
                raise DivergedError(f"the training loss is {loss} at step {step}")
        grad_norm = float(self.grad_norms[done - 1])
        self._beat({"step": done, "loss": recent[-1], "grad_norm": grad_norm})

    def _silent(self) -> bool:
        return time.monotonic() - self.beat_at >= HEARTBEAT_SECONDS

    def _beat(self, metrics: Mapping[str, float]) -> None:
        self.context.heartbeat(_finite(metrics))
        self.beat_at = time.monotonic()


def _loss(logits: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(logits.flatten(0, 1), targets.flatten())


def _val_windows(text: bytes, config: NanochatConfig) -> Tensor:
    """The same windows for every candidate and seed, evenly spaced over the held-out text."""
    last = len(text) - config.sequence_len - 1
    starts = torch.linspace(0, last, config.val_windows, dtype=torch.float64).long()
    window = torch.arange(config.sequence_len + 1)
    return _bytes(text)[starts[:, None] + window].long()


def _bytes(text: bytes) -> Tensor:
    return torch.frombuffer(bytearray(text), dtype=torch.uint8)


def _generator(seed: int, stream: str, device: str) -> torch.Generator:
    """An independent stream for each purpose, so that using more of one never shifts another."""
    key = int.from_bytes(sha256(f"{seed}/{stream}".encode()).digest()[:8], "big") >> 1
    return torch.Generator(device).manual_seed(key)


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


@contextmanager
def _torch(threads: int) -> Iterator[None]:
    """Torch with `threads` threads inside; what runs out of memory is named as such."""
    before = torch.get_num_threads()
    torch.set_num_threads(threads)
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(str(error) or "out of memory") from error
    except RuntimeError as error:  # the CPU's allocator has no class of its own
        if "can't allocate memory" in str(error):
            raise OutOfMemoryError(str(error)) from error
        raise
    finally:
        torch.set_num_threads(before)
