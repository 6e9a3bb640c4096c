"""FLOPs by formula, and how many optimiser steps a budget pays for.

Counted: every matrix product, forward and backward, at two FLOPs per multiply and add: weights,
attention over the full square, head, and the synapses' products. `torch.utils.flop_counter` sees
the same ones. Not counted, in either model: what is done element by element (norms, softmax,
activations, release), nor what gradient checkpointing computes a second time, which saves memory
and teaches nothing, nor the optimiser's products. Equal FLOPs are not equal seconds: both are
reported.
"""

from objectives.api import Flops, SetupError
from objectives.nanochat.config import BLOCK, VOCAB_SIZE, NanochatConfig

MIN_STEPS = 20  # below, the score is that of an untrained model
GOOD_STEPS = 200  # below, the score hardly tells candidates apart
MAX_EPOCHS = 4.0  # beyond, repeated text teaches little


def estimate_flops(config: NanochatConfig) -> tuple[float, float]:
    """Return the FLOPs of training on one token: forward, backward."""
    width, length, layers = config.n_embd, config.sequence_len, config.n_layer
    products = 2.0 * (parameters(config) - width * VOCAB_SIZE)  # the embedding is looked up
    products += 4.0 * layers * length * width  # query times key, weight times value
    calcium = chain = 0.0
    if config.model == "synaptic":
        synapses, blocks = layers * config.n_head, length // BLOCK
        calcium = 2.0 * synapses * blocks * length  # (block, query) times (query, key)
        chain = 2.0 * synapses * (blocks - 1) * 12 * BLOCK  # a polynomial's 12 values at each key
    # The kernel of the calcium is constant, and the slopes of the chain are among its values.
    return products + calcium + chain, 2.0 * products + calcium


def parameters(config: NanochatConfig) -> int:
    """Return the number of weights in blocks, token embedding and untied head."""
    width, heads = config.n_embd, config.n_head + 2 * config.n_kv_head
    return config.n_layer * width * (heads * config.head_dim + 9 * width) + 2 * width * VOCAB_SIZE


def checkpoint_bytes(config: NanochatConfig, steps: int) -> int:
    """Return the most bytes of a checkpoint: weights, at most two moments of each, losses."""
    return 4 * (3 * parameters(config) + 2 * steps) + 1024 * (16 + config.n_layer)


def plan(config: NanochatConfig, train_tokens: int) -> Flops:
    """Return the steps that `target_flops` pays for, rounded down.

    Without it `num_batches`, else `num_epochs` of `train_tokens`. May be 0: see `require_steps`.
    """
    forward, backward = estimate_flops(config)
    per_step = (forward + backward) * config.tokens_per_step
    if config.target_flops is not None:
        steps, paid_by = config.target_flops // per_step, "target_flops"
    elif config.num_batches is not None:
        steps, paid_by = config.num_batches, "num_batches"
    else:
        assert config.num_epochs is not None
        steps, paid_by = config.num_epochs * train_tokens // config.tokens_per_step, "num_epochs"
    scored = config.val_windows * config.sequence_len * forward
    return Flops(int(steps), int(steps) * config.tokens_per_step, per_step, scored, paid_by)


def require_steps(bought: Flops) -> None:
    """Raises SetupError below 20 steps, naming a budget that would do."""
    if bought.steps < MIN_STEPS:
        least, good = (1.01 * n * bought.per_step for n in (MIN_STEPS, GOOD_STEPS))
        raise SetupError(
            f"{bought.paid_by} pays for {bought.steps} steps of {bought.per_step:.3g} FLOPs, "
            f"expected at least {MIN_STEPS} (better {GOOD_STEPS}): set target_flops to at least "
            f"{least:.2e} (better {good:.2e})"
        )
