"""What a finished run was and found, as one JSON document."""

import json
import resource
import sys
from typing import Any

import torch

from objectives.files import replace
from objectives.nanochat.program.identity import versions
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.program.store import SUMMARY, Store
from objectives.nanochat.program.tally import Tally
from objectives.nanochat.train import Trainer, diagnose


def write(
    resolved: Resolved, trainer: Trainer, tally: Tally, store: Store, warnings: list[str]
) -> dict[str, Any]:
    """Write `summary.json` into the run's directory and return it. Raises OSError."""
    best = store.best
    document = {
        "bpb": tally.bpb_at(trainer.done),
        "best": best and best.model_dump(include={"name", "step", "bpb"}),
        **_amounts(trainer, tally),
        "health": diagnose(trainer.losses, trainer.grad_norms, trainer.config.max_grad_norm),
        "peak_memory_bytes": peak_memory_bytes(trainer.device),
        "device": trainer.device.type,
        "data": _data(trainer),
        "warnings": warnings,
        "versions": versions(),
        "preset": resolved.preset,
        "profile": resolved.profile,
        "settings": resolved.values(),
        "sources": dict(resolved.sources),
    }
    text = json.dumps(document, indent=2) + "\n"
    replace(store.directory / SUMMARY, text.encode())
    return document


def _amounts(trainer: Trainer, tally: Tally) -> dict[str, Any]:
    """Steps, tokens, FLOPs and seconds; the evaluations' FLOPs are outside the planned ones."""
    config, bought = trainer.config, trainer.plan
    tokens = trainer.done * config.tokens_per_step
    windows = len(tally.evaluations) * len(trainer.val.tokens)
    return {
        "steps": trainer.done,
        "tokens": tokens,
        "epochs": tokens / len(trainer.corpus.train),
        "paid_by": bought.paid_by,
        "planned_flops": config.target_flops or bought.train_flops,
        "train_flops": trainer.done * bought.flops_per_step,
        "eval_flops": windows * bought.eval_flops_per_window,
        "tokens_per_second": tokens / tally.train_seconds,
        "wall_seconds": tally.wall_seconds,
        "cpu_seconds": tally.cpu_seconds,
        "processes": tally.processes,
        "evaluations": [{"step": step, "bpb": bpb} for step, bpb in tally.evaluations],
    }


def _data(trainer: Trainer) -> dict[str, Any]:
    corpus = trainer.corpus
    return {
        "sha256": corpus.sha256,
        "tokenizer": corpus.tokenizer,
        "tokenizer_sha256": corpus.tokenizer_sha256,
        "documents": corpus.documents,
        "duplicates": corpus.duplicates,
        "train_tokens": len(corpus.train),
        "val_tokens": len(corpus.val),
        "train_bytes": corpus.train_bytes,
        "val_bytes": corpus.val_bytes,
    }


def peak_memory_bytes(device: torch.device) -> int:
    """The most this process has held: on the GPU if it trains there, else of the host's memory."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024  # of ru_maxrss
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
