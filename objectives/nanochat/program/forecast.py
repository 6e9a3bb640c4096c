"""What a training run will amount to, by arithmetic: steps, FLOPs, parameters, bytes on disk."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import GOOD_STEPS, MAX_EPOCHS, MIN_STEPS, Plan, plan
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.program.presets import unusual

FLOAT = 4  # bytes; weights and the optimisers' moments are float32 on every device
PER_TENSOR = 320  # bytes of a checkpoint that describe a tensor, about
GAIN_VECTORS = 4  # of a layer that the post-synaptic gains keep
FEW_WINDOWS = 64  # held-out windows; below, the score is a small sample


@dataclass(frozen=True)
class Forecast:
    """A run before it is run."""

    plan: Plan
    effective_batch: int  # sequences per optimiser step
    tokens: int  # trained on, in all
    epochs: float | None  # times the training text; None without the text
    evaluations: int
    eval_flops: float  # of all evaluations
    parameters: int
    checkpoint_bytes: int
    disk_bytes: int  # of the checkpoints kept, and one more while it is written


def forecast(resolved: Resolved, train_tokens: int | None) -> Forecast:
    """What `resolved` amounts to on `train_tokens` of text, None when they are not known.

    Raises ValueError when nothing but the text says how long to train, or no step is paid for.
    """
    config, program = resolved.training, resolved.program
    if train_tokens is None and config.target_flops is None and config.num_batches is None:
        raise ValueError("num_epochs: how long to train cannot be said without the text")
    bought = plan(config, train_tokens or 0)
    if bought.steps < 1:
        raise ValueError(
            f"{bought.paid_by} pays for no step: one takes {bought.flops_per_step:.3g} FLOPs and "
            f"{config.tokens_per_step} tokens; for {GOOD_STEPS} steps set "
            f"target_flops={GOOD_STEPS * bought.flops_per_step:.2g} or num_batches={GOOD_STEPS}"
        )
    tokens = bought.steps * config.tokens_per_step
    evaluations = math.ceil(bought.steps / program.eval_interval_steps)
    size = checkpoint_bytes(config, bought.steps)
    return Forecast(
        plan=bought,
        effective_batch=config.micro_batch_size * config.gradient_accumulation_steps,
        tokens=tokens,
        epochs=tokens / train_tokens if train_tokens else None,
        evaluations=evaluations,
        eval_flops=evaluations * config.val_windows * bought.eval_flops_per_window,
        parameters=matrix_parameters(config) + table_parameters(config),
        checkpoint_bytes=size,
        disk_bytes=size * (program.most_kept + 1),
    )


def matrix_parameters(config: NanochatConfig) -> int:
    """Weights inside the layers: queries, keys and values, projection, both halves of the MLP."""
    heads = config.n_head + 2 * config.n_kv_head
    return config.n_layer * config.n_embd * (heads * config.head_dim + 9 * config.n_embd)


def table_parameters(config: NanochatConfig) -> int:
    """Weights of the embedding and of the untied head."""
    return 2 * config.vocab_size * config.n_embd


def checkpoint_bytes(config: NanochatConfig, steps: int) -> int:
    """Bytes of a checkpoint, about: weights, one moment of each matrix, two of each table, gains,
    and the loss and the gradient norm of every step."""
    matrices, tables = matrix_parameters(config), table_parameters(config)
    gains = GAIN_VECTORS * config.n_embd * config.n_layer if config.model == "synaptic" else 0
    floats = 2 * matrices + 3 * tables + gains + 2 * steps
    tensors = 5 * config.n_layer + 27  # layers with their moments, and the rest
    return FLOAT * floats + PER_TENSOR * tensors


def warnings(resolved: Resolved, expected: Forecast) -> Iterator[str]:
    """What a person should hear before such a run."""
    values, sources = resolved.values(), resolved.sources
    yield from unusual({n: v for n, v in values.items() if not sources[n].startswith("preset")})
    steps = expected.plan.steps
    for name in resolved.ignored_lengths():
        yield (
            f"{name} ({sources[name]}) is not used: {expected.plan.paid_by} "
            f"({sources[expected.plan.paid_by]}) decides; "
            f"--set {expected.plan.paid_by}=null takes it away"
        )
    if steps < MIN_STEPS:
        yield f"{steps} steps: below {MIN_STEPS} the model is as good as untrained"
    elif steps < GOOD_STEPS:
        yield f"{steps} steps: below {GOOD_STEPS} a score hardly tells two configurations apart"
    if expected.epochs is not None and expected.epochs > MAX_EPOCHS:
        yield (
            f"{expected.epochs:.1f} passes over the training text: above {MAX_EPOCHS:.0f} it "
            "repeats more than it teaches; use more text or train for less"
        )
    if resolved.training.val_windows < FEW_WINDOWS:
        yield (
            f"val_windows {resolved.training.val_windows}: below {FEW_WINDOWS} the score is a "
            "small sample of the held-out text"
        )
