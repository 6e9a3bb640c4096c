"""Muon for the matrices inside the layers, AdamW for embedding and head, and their schedule."""

from torch.optim import AdamW, Optimizer

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.model import GPT
from objectives.nanochat.muon import Muon


def optimizers(model: GPT, config: NanochatConfig) -> tuple[Optimizer, ...]:
    """The optimisers of every parameter of `model`, each exactly once."""
    muon = Muon(
        model.matrices(),
        lr=config.matrix_lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    adamw = AdamW(
        [
            {"params": [model.embedding], "lr": config.embedding_lr},
            {"params": [model.head], "lr": config.unembedding_lr},
        ],
        betas=(config.adam_beta1, config.adam_beta2),
        eps=1e-10,
        weight_decay=0.0,
        fused=True,
    )
    for optimizer in (muon, adamw):
        for group in optimizer.param_groups:
            group["peak_lr"] = group["lr"]
    return muon, adamw


def lr_factor(step: int, steps: int, config: NanochatConfig) -> float:
    """Share of the peak learning rate at `step` of `steps`: linear up, flat, linear down.

    Where warm-up and warm-down overlap, the lower of the two holds.
    """
    warmup, warmdown = config.warmup_ratio * steps, config.warmdown_ratio * steps
    up = (step + 1) / warmup if warmup else 1.0
    down = (steps - step) / warmdown if warmdown else 1.0
    return min(1.0, up, down)


def set_lr(optimizer: Optimizer, factor: float) -> None:
    for group in optimizer.param_groups:
        group["lr"] = group["peak_lr"] * factor
