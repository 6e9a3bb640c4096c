"""Muon for the matrices in the blocks, AdamW for token embedding and head, and their schedule.

Muon: K. Jordan et al., "Muon: an optimizer for hidden layers in neural networks", 2024. The update
is that of `torch.optim.Muon`, which takes one matrix at a time and always works in bfloat16: on a
CPU, where bfloat16 is emulated, that took half of a training step.
"""

from collections import defaultdict
from collections.abc import Iterable

import torch
from torch import Tensor
from torch.optim import AdamW, Optimizer

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.model import GPT

ITERATIONS = 5  # of Newton and Schulz, a step
COEFFICIENTS = (3.4445, -4.775, 2.0315)  # of the odd quintic that pulls singular values to one


class Muon(Optimizer):
    """Momentum whose step is orthogonalised, all matrices of one shape together."""

    def __init__(
        self, matrices: Iterable[Tensor], lr: float, momentum: float, weight_decay: float
    ) -> None:
        by_shape: dict[torch.Size, list[Tensor]] = defaultdict(list)
        for matrix in matrices:
            by_shape[matrix.shape].append(matrix)
        groups = [{"params": same} for same in by_shape.values()]
        super().__init__(groups, {"lr": lr, "momentum": momentum, "weight_decay": weight_decay})

    @torch.no_grad()
    def step(self) -> None:  # type: ignore[override]  # takes no closure
        """One update of every matrix from its gradient."""
        for group in self.param_groups:
            matrices = group["params"]
            gradient = torch.stack([matrix.grad for matrix in matrices])
            state = self.state[matrices[0]]
            if "velocity" not in state:
                state["velocity"] = torch.zeros_like(gradient)
            velocity = state["velocity"]
            velocity.lerp_(gradient, 1.0 - group["momentum"])
            direction = orthogonal(gradient.lerp(velocity, group["momentum"]))  # Nesterov
            rows, columns = matrices[0].shape
            size = group["lr"] * max(1.0, rows / columns) ** 0.5
            if group["weight_decay"]:
                torch._foreach_mul_(matrices, 1.0 - group["lr"] * group["weight_decay"])
            torch._foreach_add_(matrices, direction.unbind(), alpha=-size)


def orthogonal(x: Tensor) -> Tensor:
    """Return about the nearest matrices with orthonormal rows or columns to `x` (..., row, column).

    Newton-Schulz iterations; the singular values end near one, not at it. bfloat16 on a GPU,
    float32 elsewhere.
    """
    if x.shape[-2] > x.shape[-1]:
        return orthogonal(x.mT).mT
    a, b, c = COEFFICIENTS
    y = x.bfloat16() if x.is_cuda else x
    y = y / y.norm(dim=(-2, -1), keepdim=True).clamp(min=1e-7)
    for _ in range(ITERATIONS):
        gram = torch.bmm(y, y.mT)
        polynomial = torch.baddbmm(gram, gram, gram, beta=b, alpha=c)
        y = torch.baddbmm(y, polynomial, y, beta=a)
    return y.to(x.dtype)


def setup_optimizer(model: GPT, config: NanochatConfig) -> tuple[Optimizer, ...]:
    """Return Muon for the matrices in the blocks, and AdamW for token embedding and head."""
    muon = Muon(
        model.h.parameters(),
        lr=config.matrix_lr,
        momentum=config.momentum,
        weight_decay=config.weight_decay,
    )
    adamw = AdamW(
        [
            {"params": [model.wte], "lr": config.embedding_lr},
            {"params": [model.lm_head], "lr": config.unembedding_lr},
        ],
        betas=(config.adam_beta1, config.adam_beta2),
        eps=1e-10,
        weight_decay=0.0,
        fused=True,
    )
    for group in (*muon.param_groups, *adamw.param_groups):
        group["initial_lr"] = group["lr"]
    return muon, adamw


def get_lr_multiplier(step: int, steps: int, config: NanochatConfig) -> float:
    """Return the share of the initial learning rate at `step`: linear up, flat, linear down.

    Where warm-up and warm-down overlap, the lower of the two holds.
    """
    warmup, warmdown = config.warmup_ratio * steps, config.warmdown_ratio * steps
    up = (step + 1) / warmup if warmup else 1.0
    down = (steps - step) / warmdown if warmdown else 1.0
    return min(1.0, up, down)
