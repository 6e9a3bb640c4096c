"""The settings: what is trained, what a search moves, how a training by itself is carried out.

Every field of `NanochatConfig` decides a score, and none of `RunConfig` but the seed and the device
does. A search moves groups of fields, joined by "+", from where the configuration has them.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    field_validator,
    model_validator,
)

from objectives.files import absolute
from objectives.nanochat import data
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
    def most_kept(self) -> int:
        """Checkpoints on disk between two saves, at most."""
        return self.keep_checkpoints + 1


class NanochatConfig(Settings):
    """Every setting of the objective; the defaults train in a few seconds on one CPU core."""

    presets, profiles, alone = PRESETS, PROFILES, tuple(RunConfig.model_fields)

    model: Literal["synaptic", "gpt"] = "synaptic"  # "gpt" has no synapses: the control
    space: str = ""  # groups to search, joined by "+"; "" is the model's own
    # A control is evaluated at another model's points: its space may name knobs it does not have.
    control: bool = Field(default=False, exclude_if=lambda control: not control)
    data: str = "builtin:wiki-v1"

    n_layer: int = Field(default=2, ge=1)
    n_head: int = Field(default=1, ge=1)
    n_kv_head: int = Field(default=1, ge=1)
    n_embd: int = Field(default=32, ge=2)
    sequence_len: int = Field(default=128, ge=BLOCK)  # tokens
    micro_batch_size: int = Field(default=3, ge=1)  # sequences at once
    gradient_accumulation_steps: int = Field(default=1, ge=1)  # micro-batches per optimiser step
    val_windows: int = Field(default=512, ge=1, le=10**6)  # of sequence_len tokens

    # How long to train: see LENGTHS.
    target_flops: float | None = Field(default=3e10, gt=0)  # forward and backward, not exceeded
    num_batches: int | None = Field(default=None, ge=1, le=10**12)  # optimiser steps
    num_epochs: float | None = Field(default=None, gt=0, le=1e6)  # times the training text

    matrix_lr: float = Field(default=0.02, ge=0)  # Muon
    embedding_lr: float = Field(default=0.2, ge=0)  # AdamW
    unembedding_lr: float = Field(default=0.02, ge=0)  # AdamW
    weight_decay: float = Field(default=0.0, ge=0)  # of the matrices
    momentum: float = Field(default=0.95, ge=0, lt=1)  # Muon
    adam_beta1: float = Field(default=0.8, ge=0, lt=1)
    adam_beta2: float = Field(default=0.95, ge=0, lt=1)
    warmup_ratio: float = Field(default=0.0, ge=0, le=1)  # share of the steps
    warmdown_ratio: float = Field(default=0.4, ge=0, le=1)  # share of the steps
    max_grad_norm: float = Field(default=1.0, gt=0)

    # Synapses. Rates are per token.
    tau_c: float = Field(default=0.85, ge=0, lt=1)  # what one token leaves of the calcium
    alpha_c: float = Field(default=0.5, ge=1e-6)  # calcium that a full drive lets in
    init_rrp: float = Field(default=6.0, ge=1)  # vesicles ready at first, and as many in reserve
    prime_rate: float = Field(default=0.05, gt=0, le=0.5)  # reserve to ready, and back at rest
    rec_rate: float = Field(default=0.05, gt=0, le=0.5)  # spent to reserve
    lambda_loge: float = Field(default=1.0, ge=0)  # weight of log(release) in the logits
    barrier_strength: float = Field(default=0.02, ge=0)  # logits subtracted per token of distance
    stochastic_train_frac: float = Field(default=0.1, ge=0, lt=1)  # of the edges, random release
    post_fast_lr: float = Field(default=1e-3, ge=0)  # post-synaptic gain, forgetting, per step
    post_slow_lr: float = Field(default=1e-4, ge=0)  # post-synaptic gain, lasting, per step

    # What the same numbers are computed with: each changes the last bits of a score.
    dtype: Literal["auto", "float32", "bfloat16"] = "auto"  # auto: bfloat16 on a GPU
    gradient_checkpointing: bool = False  # recompute each layer in the backward pass: less memory

    @model_validator(mode="before")
    @classmethod
    def _length_that_is_set(cls, settings: Any) -> Any:
        is_set = isinstance(settings, dict) and not settings.keys().isdisjoint(LENGTHS)
        return {"target_flops": None, **settings} if is_set else settings

    @field_validator("data")
    @classmethod
    def _absolute(cls, value: str) -> str:
        return data.parse(value).name

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.n_embd % self.n_head:
            raise ValueError(f"n_head {self.n_head} must divide n_embd {self.n_embd}")
        if self.n_head % self.n_kv_head:
            raise ValueError(f"n_kv_head {self.n_kv_head} must divide n_head {self.n_head}")
        if self.head_dim % 2:
            raise ValueError(
                f"n_embd / n_head must be even for rotary positions, "
                f"got {self.n_embd} / {self.n_head} = {self.head_dim}"
            )
        if self.sequence_len % BLOCK:
            raise ValueError(f"sequence_len must be a multiple of {BLOCK}, got {self.sequence_len}")
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


SYNAPTIC, OPTIMIZER = "synaptic", "optimizer"

# Name, scale, ends in x-space. Even at the ends of their ranges tau_c, prime_rate and rec_rate move
# the score by less than one evaluation's noise: docs/objectives.md has the figures.
RANGES: Mapping[str, tuple[tuple[str, Kind, float, float], ...]] = {
    SYNAPTIC: (
        ("tau_c", "linear", 0.70, 0.99),
        ("alpha_c", "linear", 0.10, 1.00),
        ("init_rrp", "linear", 1.0, 18.0),
        ("prime_rate", "linear", 0.01, 0.20),
        ("rec_rate", "linear", 0.01, 0.20),
        ("lambda_loge", "linear", 0.0, 4.0),
        ("barrier_strength", "linear", 0.0, 0.5),
        ("stochastic_train_frac", "linear", 0.0, 0.4),
        ("post_fast_lr", "log10", -4.5, -2.0),
        ("post_slow_lr", "log10", -5.5, -3.0),
    ),
    OPTIMIZER: (
        ("matrix_lr", "log10", -3.0, -0.7),
        ("embedding_lr", "log10", -2.0, 0.3),
        ("unembedding_lr", "log10", -3.4, -0.7),
        ("weight_decay", "linear", 0.0, 0.5),
        ("momentum", "sigmoid01", 0.8, 4.6),  # 0.69 to 0.99
        ("adam_beta1", "linear", 0.5, 0.95),
        ("adam_beta2", "sigmoid01", 0.8, 6.9),  # 0.69 to 0.999
        ("warmup_ratio", "linear", 0.0, 0.4),
        ("warmdown_ratio", "linear", 0.0, 1.0),
    ),
}


def search_space(config: NanochatConfig) -> SearchSpace:
    """Return the knobs of `config.space`; without one, what the model has to tune.

    Raises ValueError on an unknown group, or on a start outside a knob's range.
    """
    default = SYNAPTIC if config.model == "synaptic" else OPTIMIZER
    names = [name.strip() for name in (config.space or default).split("+")]
    for name in names:
        if name not in RANGES:
            raise unknown("search group", name, RANGES)
        if name == SYNAPTIC and config.model == "gpt" and not config.control:
            raise ValueError('space "synaptic" has nothing to move in model "gpt"')
    try:
        knobs = [
            Knob(name=knob, kind=kind, low=low, high=high, baseline=getattr(config, knob))
            for name in names
            for knob, kind, low, high in RANGES[name]
        ]
        return SearchSpace(knobs=tuple(knobs))
    except ValidationError as error:
        raise ValueError(f"space {'+'.join(names)}: {in_words(error)}") from error
