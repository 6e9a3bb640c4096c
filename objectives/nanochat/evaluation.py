"""One evaluation: train for the planned FLOPs, then score on held-out text."""

import math
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

import torch

from objectives.api import Context, Measurement, OutOfMemoryError, SetupError
from objectives.nanochat import data
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import INITIAL_SHARE, optimizer_flops, require_steps
from objectives.nanochat.train import Trainer, diagnose

HEARTBEAT_STEPS = 10
HEARTBEAT_SECONDS = 1.0
NO_MEMORY = ("can't allocate memory", "CUDA error: out of memory", "CUBLAS_STATUS_ALLOC_FAILED")


def evaluate(config: NanochatConfig, seed: int, context: Context) -> Measurement:
    """Held-out bits per byte after training. Raises as `Objective.evaluate` does.

    Leaves torch as it was, so that evaluations in one process do not disturb each other.
    """
    with torch_set(context.threads, context.device):
        began = time.perf_counter()
        corpus = data.load(config.data, config.tokenizer)
        _require_same_text(config, corpus, context.pinned)
        trainer = Trainer(config, corpus, seed, context.device)
        require_steps(trainer.plan)
        return _measure(trainer, _Pulse(context), began)


def _require_same_text(
    config: NanochatConfig, corpus: data.Corpus, pinned: Mapping[str, str | int]
) -> None:
    """Raises SetupError if the text is not the one that the run was planned with.

    A condition of a campaign that names another text is not held against the plan's.
    """
    if (pinned.get("data"), pinned.get("tokenizer")) != (config.data, config.tokenizer):
        return
    if corpus.sha256 != pinned.get("data_sha256"):
        raise SetupError(
            f"the text of {config.data} has changed since the run was planned (sha256 "
            f"{str(pinned.get('data_sha256'))[:8]} then, {corpus.sha256[:8]} now): put it back and "
            "repeat the command, or begin another run with --run-id"
        )


class _Pulse:
    """Heartbeats when there is something to tell, and at least every second."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._at = time.monotonic()

    def beat(self, metrics: Mapping[str, float]) -> None:
        self._context.heartbeat({k: v for k, v in metrics.items() if math.isfinite(v)})
        self._at = time.monotonic()

    @property
    def due(self) -> bool:
        return time.monotonic() - self._at >= HEARTBEAT_SECONDS

    def if_due(self) -> None:
        if self.due:
            self.beat({})


def _measure(trainer: Trainer, pulse: _Pulse, began: float) -> Measurement:
    few = trainer.val.every(INITIAL_SHARE, trainer.corpus)
    initial_bpb = trainer.bits_per_byte(few, pulse.if_due)
    started, cpu_started = time.perf_counter(), time.process_time()
    trainer.step()
    trainer.require_finite()
    first_seconds = time.perf_counter() - started  # of which compiling may be the most
    _train(trainer, pulse)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu_started
    score = trainer.bits_per_byte(trainer.val, pulse.if_due)
    config, bought = trainer.config, trainer.plan
    tokens = trainer.done * config.tokens_per_step
    health = diagnose(trainer.losses, trainer.grad_norms, config.max_grad_norm)
    metrics = health | {
        "initial_bpb": initial_bpb,
        "optimizer_flops": trainer.done * optimizer_flops(config),
        "planned_flops": config.target_flops or bought.train_flops,
        "setup_seconds": started - began,  # with the untrained model's score
        "first_step_seconds": first_seconds,
        "tokens_per_second": (tokens - config.tokens_per_step) / (seconds - first_seconds),
        "train_cpu_seconds": cpu_seconds,
        "epochs": tokens / len(trainer.corpus.train),
        **_gpu_memory(trainer.device),
    }
    windows = len(few.tokens) + len(trainer.val.tokens)
    return Measurement(
        score=score,
        train_seconds=seconds,
        steps=trainer.done,
        tokens=tokens,
        train_flops=trainer.done * bought.flops_per_step,
        eval_flops=windows * bought.eval_flops_per_window,
        metrics={name: value for name, value in metrics.items() if math.isfinite(value)},
    )


def _gpu_memory(device: torch.device) -> dict[str, float]:
    """What this evaluation took of the GPU's memory at most, and what there is; empty on a CPU."""
    if device.type != "cuda":
        return {}
    return {
        "gpu_peak_bytes": float(torch.cuda.max_memory_reserved(device)),
        "gpu_memory_bytes": float(torch.cuda.get_device_properties(device).total_memory),
    }


def _train(trainer: Trainer, pulse: _Pulse) -> None:
    """The other steps, looking at the losses now and then: the only moments that wait for a GPU."""
    seen = trainer.done
    while trainer.done < trainer.steps:
        trainer.step()
        done = trainer.done
        often = done % HEARTBEAT_STEPS == 0 and trainer.device.type == "cpu"
        if often or done == trainer.steps or pulse.due:
            trainer.require_finite(seen)
            seen = done
            loss, norm = float(trainer.losses[done - 1]), float(trainer.grad_norms[done - 1])
            pulse.beat({"step": done, "loss": loss, "grad_norm": norm})


@contextmanager
def torch_set(threads: int, device: str) -> Iterator[None]:
    """Torch with `threads` threads, and on a GPU with deterministic kernels, inside.

    What runs out of memory is named as such.
    """
    before = (
        torch.get_num_threads(),
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.set_num_threads(threads)
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # or cuBLAS is not
        torch.use_deterministic_algorithms(True, warn_only=True)
        if torch.cuda.memory_reserved():  # by an earlier evaluation in this process
            torch.cuda.reset_peak_memory_stats()
    try:
        yield
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise OutOfMemoryError(str(error) or "out of memory") from error
    except RuntimeError as error:  # these have no class of their own
        if any(words in str(error) for words in NO_MEMORY):
            raise OutOfMemoryError(str(error)) from error
        raise
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1], warn_only=before[2])
