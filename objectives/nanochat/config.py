"""The settings: what is trained, what a search moves, how a training by itself is carried out.

Every field of `NanochatConfig` decides a score, and none of `RunConfig` but the seed and the device
does. A search moves groups of fields, joined by "+", from where the configuration has them.
"""

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    model_validator,
)

from objectives.files import absolute
from objectives.nanochat.data import parse as source
from objectives.settings import Settings, in_words, parse, unknown
from objectives.space import Kind, Knob, SearchSpace

BLOCK = 16  # queries that see the same synaptic state
VOCAB_SIZE = 256  # every byte is a token
NOT_TRAINED = {"space", "control", "data"}  # what is searched; the text counts, not where it lies
LENGTHS = ("target_flops", "num_batches", "num_epochs")  # the first that is set decides


# A training by itself. Presets say how long and how often, profiles how the work is cut to the
# memory. Every profile has an effective batch of 32 sequences; their lengths, and so the tokens of
# a step, differ.

Named = Mapping[str, Mapping[str, Any]]


def _batch(micro: int, accumulation: int, **more: Any) -> dict[str, Any]:
    return {"micro_batch_size": micro, "gradient_accumulation_steps": accumulation, **more}


EVERY_10 = {"save_interval_steps": 10, "eval_interval_steps": 10, "log_interval_steps": 1}
PRESETS: Named = {
    "quick": _batch(2, 1, num_batches=10, **EVERY_10),  # does it run at all?
    # One sequence at a time, the effective batch of "production".
    "low-memory": _batch(1, 4, num_batches=3738, gradient_checkpointing=True),
    "high": _batch(8, 1, num_batches=10_000, eval_interval_steps=1000),
    "production": _batch(4, 1, num_batches=10_000, save_interval_steps=100),
}
PROFILES: Named = {
    "fast": _batch(8, 4, sequence_len=1024, gradient_checkpointing=False),
    "balanced": _batch(4, 8, sequence_len=2048, gradient_checkpointing=True),
    "quality": _batch(2, 16, sequence_len=4096, gradient_checkpointing=True),
    "memory_efficient": _batch(1, 32, sequence_len=2048, gradient_checkpointing=True),
}


class RunConfig(BaseModel):
    """How a training by itself is carried out: `orchestrator train`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if torch sees one
    seed: int = 42
    threads: int = Field(default=1, ge=1)  # on the CPU; small shapes are slower with more
    checkpoint_dir: Annotated[Path, BeforeValidator(absolute)] = Path("checkpoints/ckpts")
    save_interval_steps: int = Field(default=100, ge=1)
    eval_interval_steps: int = Field(default=500, ge=1)
    log_interval_steps: int = Field(default=10, ge=1)
    keep_checkpoints: int = Field(default=3, ge=1)  # the last so many, and the best

    @property
    def most_checkpoints(self) -> int:
        """Checkpoints on disk at most: those kept, and the one that is being written."""
        return self.keep_checkpoints + 2


SYNAPTIC, OPTIMIZER = GROUPS = ("synaptic", "optimizer")


def _knob(group: str, default: float, kind: Kind, low: float, high: float, **limits: Any) -> Any:
    """Return a setting that a search of `group` moves from `low` to `high` in its x-space."""
    extra: Any = {group: {"kind": kind, "low": low, "high": high}}
    return Field(default=default, json_schema_extra=extra, **limits)


_synaptic, _optimizer = partial(_knob, SYNAPTIC), partial(_knob, OPTIMIZER)


class NanochatConfig(Settings):
    """Every setting of the objective; the defaults train in a few seconds on one CPU core."""

    presets, profiles, alone = PRESETS, PROFILES, tuple(RunConfig.model_fields)

    model: Literal["synaptic", "gpt"] = "synaptic"  # "gpt" has no synapses: the control
    space: str = ""  # groups to search, joined by "+"; "" is the model's own
    # A control is evaluated at another model's points: its space may name knobs it does not have.
    control: bool = Field(default=False, exclude_if=lambda control: not control)
    data: Annotated[str, AfterValidator(lambda name: source(name).name)] = "builtin:wiki-v1"

    n_layer: int = Field(default=2, ge=1)
    n_head: int = Field(default=1, ge=1)
    n_kv_head: int = Field(default=1, ge=1)
    n_embd: int = Field(default=32, ge=2)
    sequence_len: int = Field(default=128, ge=BLOCK, multiple_of=BLOCK)  # tokens
    micro_batch_size: int = Field(default=3, ge=1)  # sequences at once
    gradient_accumulation_steps: int = Field(default=1, ge=1)  # micro-batches per optimiser step
    val_windows: int = Field(default=512, ge=1, le=10**6)  # of sequence_len tokens

    # How long to train: see LENGTHS.
    target_flops: float | None = Field(default=3e10, gt=0)  # forward and backward, not exceeded
    num_batches: int | None = Field(default=None, ge=1, le=10**12)  # optimiser steps
    num_epochs: float | None = Field(default=None, gt=0, le=1e6)  # times the training text

    matrix_lr: float = _optimizer(0.02, "log10", -3.0, -0.7, ge=0)  # Muon
    embedding_lr: float = _optimizer(0.2, "log10", -2.0, 0.3, ge=0)  # AdamW
    unembedding_lr: float = _optimizer(0.02, "log10", -3.4, -0.7, ge=0)  # AdamW
    weight_decay: float = _optimizer(0.0, "linear", 0.0, 0.5, ge=0)  # of the matrices
    momentum: float = _optimizer(0.95, "sigmoid01", 0.8, 4.6, ge=0, lt=1)  # Muon; 0.69 to 0.99
    adam_beta1: float = _optimizer(0.8, "linear", 0.5, 0.95, ge=0, lt=1)
    adam_beta2: float = _optimizer(0.95, "sigmoid01", 0.8, 6.9, ge=0, lt=1)  # 0.69 to 0.999
    warmup_ratio: float = _optimizer(0.0, "linear", 0.0, 0.4, ge=0, le=1)  # share of the steps
    warmdown_ratio: float = _optimizer(0.4, "linear", 0.0, 1.0, ge=0, le=1)  # share of the steps
    max_grad_norm: float = Field(default=1.0, gt=0)

    # Synapses. Rates are per token. Even at the ends of their ranges tau_c, prime_rate and rec_rate
    # move the score by less than one evaluation's noise: docs/objectives.md has the figures.
    tau_c: float = _synaptic(0.85, "linear", 0.70, 0.99, ge=0, lt=1)  # calcium left by one token
    alpha_c: float = _synaptic(0.5, "linear", 0.10, 1.00, ge=1e-6)  # that a full drive lets in
    init_rrp: float = _synaptic(6.0, "linear", 1.0, 18.0, ge=1)  # vesicles ready, and in reserve
    prime_rate: float = _synaptic(0.05, "linear", 0.01, 0.20, gt=0, le=0.5)  # reserve to ready
    rec_rate: float = _synaptic(0.05, "linear", 0.01, 0.20, gt=0, le=0.5)  # spent to reserve
    lambda_loge: float = _synaptic(1.0, "linear", 0.0, 4.0, ge=0)  # weight of log(release)
    barrier_strength: float = _synaptic(0.02, "linear", 0.0, 0.5, ge=0)  # per token of distance
    stochastic_train_frac: float = _synaptic(0.1, "linear", 0.0, 0.4, ge=0, lt=1)  # of the edges
    post_fast_lr: float = _synaptic(1e-3, "log10", -4.5, -2.0, ge=0)  # of a gain soon forgotten
    post_slow_lr: float = _synaptic(1e-4, "log10", -5.5, -3.0, ge=0)  # of a gain that lasts

    # What the same numbers are computed with: each changes the last bits of a score.
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU
    gradient_checkpointing: bool = False  # recompute each layer in the backward pass: less memory

    @model_validator(mode="before")
    @classmethod
    def _length_that_is_set(cls, settings: Any) -> Any:
        is_set = isinstance(settings, dict) and not settings.keys().isdisjoint(LENGTHS)
        return {"target_flops": None, **settings} if is_set else settings

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_head {self.n_head} must divide n_embd {self.n_embd}")
        if self.n_head % self.n_kv_head:
            raise ValueError(f"n_kv_head {self.n_kv_head} must divide n_head {self.n_head}")
        if self.head_dim % 2:
            raise ValueError(f"n_embd / n_head must be even, for rotary positions: {self.head_dim}")
        return self

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def tokens_per_step(self) -> int:
        return self.sequence_len * self.micro_batch_size * self.gradient_accumulation_steps

    def with_knobs(self, knobs: Mapping[str, float]) -> Self:
        """Return the configuration with fields moved. Raises ValueError if they do not fit."""
        return parse(type(self), self.model_dump() | dict(knobs), "nanochat")


def search_space(config: NanochatConfig) -> SearchSpace:
    """Return the knobs of `config.space`; without one, what the model has to tune.

    Raises ValueError on an unknown group, or on a start outside a knob's range.
    """
    default = SYNAPTIC if config.model == "synaptic" else OPTIMIZER
    groups = [name.strip() for name in (config.space or default).split("+")]
    for name in groups:
        if name not in GROUPS:
            raise unknown("search group", name, GROUPS)
        if name == SYNAPTIC and config.model == "gpt" and not config.control:
            raise ValueError('space "synaptic" has nothing to move in model "gpt"')
    fields = type(config).model_fields.items()
    extras: dict[str, Any] = {name: field.json_schema_extra or {} for name, field in fields}
    try:
        knobs = [
            Knob(name=name, baseline=getattr(config, name), **extra[group])
            for group in groups
            for name, extra in extras.items()
            if group in extra
        ]
        return SearchSpace(knobs=tuple(knobs))
    except ValidationError as error:
        raise ValueError(f"space {'+'.join(groups)}: {in_words(error)}") from error
