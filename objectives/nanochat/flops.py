"""FLOPs by formula, and how many optimiser steps a target pays for.

Counted: every matrix product of the forward pass, attention over the full square and the head
included, at two FLOPs per multiply and add; the synaptic arithmetic, one FLOP per elementwise
operation and edge. The backward pass counts twice the forward. Not counted: norms, activations,
the optimiser. `torch.utils.flop_counter` sees the same matrix products.
"""

from dataclasses import dataclass

from objectives.api import SetupError
from objectives.nanochat.config import BLOCK, NanochatConfig

VOCABULARY = 256  # bytes
MIN_STEPS = 20  # below, the score is that of an untrained model
GOOD_STEPS = 200  # below, the score hardly tells candidates apart
EDGE_OPS = 14  # elementwise operations of `synaptic.Release` per query and key, pools included


@dataclass(frozen=True)
class Plan:
    """What a target buys."""

    steps: int
    flops_per_step: float
    eval_flops_per_window: float

    @property
    def train_flops(self) -> float:
        return self.steps * self.flops_per_step


def forward_flops_per_token(config: NanochatConfig) -> float:
    """FLOPs of one token's forward pass, everything counted."""
    return matmul_flops_per_token(config) + synaptic_flops_per_token(config)


def matmul_flops_per_token(config: NanochatConfig) -> float:
    """FLOPs of the plain transformer's matrix products in one token's forward pass."""
    width = config.n_embd
    heads = config.n_head + 2 * config.n_kv_head
    weights = width * heads * config.head_dim + width**2 + 8 * width**2
    attention = 2 * config.sequence_len * width  # query times key, weight times value
    return 2.0 * (config.n_layer * (weights + attention) + width * VOCABULARY)


def synaptic_flops_per_token(config: NanochatConfig) -> float:
    """FLOPs of the synapses in one token's forward pass; none in the plain model."""
    if config.model == "gpt":
        return 0.0
    calcium = 2 * config.sequence_len // BLOCK  # decay kernel times drive
    per_head = config.sequence_len * (EDGE_OPS + calcium)
    return float(config.n_layer * config.n_head * per_head)


def plan(config: NanochatConfig) -> Plan:
    """The steps `config.target_flops` pays for, rounded down.

    Raises SetupError below 20 steps, naming a target that would do.
    """
    forward = forward_flops_per_token(config)
    per_step = 3.0 * forward * config.tokens_per_step
    steps = int(config.target_flops // per_step)
    if steps < MIN_STEPS:
        raise SetupError(
            f"target_flops {config.target_flops:.3g} pays for {steps} steps of {per_step:.3g} "
            f"FLOPs, expected at least {MIN_STEPS} (better {GOOD_STEPS}): set target_flops to at "
            f"least {_ceiling(MIN_STEPS * per_step)} (better {_ceiling(GOOD_STEPS * per_step)})"
        )
    return Plan(steps, per_step, forward * config.sequence_len)


def _ceiling(flops: float) -> str:
    """`flops` rounded up to three digits."""
    text = f"{flops:.2e}"
    return text if float(text) >= flops else f"{float(text) + 10.0 ** (int(text[-3:]) - 2):.2e}"
