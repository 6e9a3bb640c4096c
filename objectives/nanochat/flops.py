"""FLOPs by formula, and how many optimiser steps a budget pays for.

Counted: every matrix product, forward and backward, at two FLOPs per multiply and add: weights,
attention over the full square, head, and the synapses' products. `torch.utils.flop_counter` sees
the same ones. Not counted, in either model: what is done element by element (norms, softmax,
activations, release) and the optimiser. Equal FLOPs are not equal seconds: both are reported.
"""

import math
from dataclasses import dataclass

from objectives.api import SetupError
from objectives.nanochat.config import BLOCK, NanochatConfig

MIN_STEPS = 20  # below, the score is that of an untrained model
GOOD_STEPS = 200  # below, the score hardly tells candidates apart


@dataclass(frozen=True)
class Flops:
    """FLOPs of one token, or of anything else that goes forward and backward."""

    forward: float
    backward: float

    @property
    def train(self) -> float:
        return self.forward + self.backward


@dataclass(frozen=True)
class Plan:
    """What a budget buys."""

    steps: int
    flops_per_step: float
    eval_flops_per_window: float
    paid_by: str  # the setting that decided

    @property
    def train_flops(self) -> float:
        return self.steps * self.flops_per_step


def per_token(config: NanochatConfig) -> Flops:
    """FLOPs of training on one token."""
    plain, calcium, chain = plain_flops(config), calcium_flops(config), chain_flops(config)
    backward = 2.0 * plain + calcium  # the calcium kernel is constant, the chain's slopes are known
    if config.gradient_checkpointing:  # the layers a second time, as far as they are needed
        unneeded = 8.0 * config.n_layer * config.n_embd**2 if config.model == "gpt" else 0.0
        backward += plain - head_flops(config) - unneeded + calcium + chain
    return Flops(plain + calcium + chain, backward)


def plain_flops(config: NanochatConfig) -> float:
    """Forward FLOPs per token of the plain transformer."""
    width = config.n_embd
    heads = config.n_head + 2 * config.n_kv_head
    weights = width * heads * config.head_dim + width**2 + 8 * width**2
    attention = 2 * config.sequence_len * width  # query times key, weight times value
    return 2.0 * config.n_layer * (weights + attention) + head_flops(config)


def head_flops(config: NanochatConfig) -> float:
    """Forward FLOPs per token of the output head."""
    return 2.0 * config.n_embd * config.vocab_size


def calcium_flops(config: NanochatConfig) -> float:
    """Forward FLOPs per token of the calcium: (block, query) times (query, key)."""
    if config.model == "gpt":
        return 0.0
    return 2.0 * config.n_layer * config.n_head * _blocks(config) * config.sequence_len


def chain_flops(config: NanochatConfig) -> float:
    """Forward FLOPs per token of the pools: a polynomial with 12 values for each block and key."""
    if config.model == "gpt":
        return 0.0
    return 2.0 * config.n_layer * config.n_head * (_blocks(config) - 1) * 12 * BLOCK


def _blocks(config: NanochatConfig) -> int:
    return config.sequence_len // BLOCK


def plan(config: NanochatConfig, train_tokens: int) -> Plan:
    """The steps that `target_flops` pays for, rounded down; else `num_batches`, else `num_epochs`
    of `train_tokens`. Never fewer than one."""
    cost = per_token(config)
    per_step = cost.train * config.tokens_per_step
    if config.target_flops is not None:
        steps, paid_by = config.target_flops // per_step, "target_flops"
    elif config.num_batches is not None:
        steps, paid_by = config.num_batches, "num_batches"
    else:
        assert config.num_epochs is not None
        steps, paid_by = config.num_epochs * train_tokens // config.tokens_per_step, "num_epochs"
    window = cost.forward * config.sequence_len
    return Plan(int(steps), per_step, window, paid_by)


def require_steps(bought: Plan) -> None:
    """Raises SetupError below 20 steps, naming a budget that would do."""
    if bought.steps >= MIN_STEPS:
        return
    least, good = MIN_STEPS * bought.flops_per_step, GOOD_STEPS * bought.flops_per_step
    raise SetupError(
        f"{bought.paid_by} pays for {bought.steps} steps of {bought.flops_per_step:.3g} FLOPs, "
        f"expected at least {MIN_STEPS} (better {GOOD_STEPS}): set target_flops to at least "
        f"{_ceiling(least)} (better {_ceiling(good)})"
    )


def _ceiling(flops: float) -> str:
    """`flops` rounded up to three digits."""
    digits = 10.0 ** (math.floor(math.log10(flops)) - 2)
    text = f"{math.ceil(flops / digits) * digits:.2e}"
    return text if float(text) >= flops else f"{(math.ceil(flops / digits) + 1) * digits:.2e}"
