"""What one evaluation trains: shape, budget, optimiser and data, checked before anything runs."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

from objectives.nanochat.data import BUILTIN
from objectives.settings import parse

BLOCK = 16  # queries that see the same synaptic state


class NanochatConfig(BaseModel):
    """Every setting of the objective; the defaults train in a few seconds on one CPU core."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    model: Literal["synaptic", "gpt"] = "synaptic"  # "gpt" ignores the knobs: the control
    data: str = "builtin:wiki-v1"

    n_layer: int = Field(default=2, ge=1)
    n_head: int = Field(default=1, ge=1)
    n_kv_head: int = Field(default=1, ge=1)
    n_embd: int = Field(default=32, ge=2)
    sequence_len: int = Field(default=128, ge=BLOCK)  # bytes
    batch_size: int = Field(default=3, ge=1)  # sequences per optimiser step
    target_flops: float = Field(default=3e10, gt=0)  # forward and backward, never exceeded
    val_windows: int = Field(default=256, ge=1)  # of sequence_len bytes

    matrix_lr: float = Field(default=0.02, ge=0)  # Muon
    embedding_lr: float = Field(default=0.2, ge=0)  # AdamW
    unembedding_lr: float = Field(default=0.02, ge=0)  # AdamW
    weight_decay: float = Field(default=0.0, ge=0)  # of the matrices
    warmup_ratio: float = Field(default=0.0, ge=0, le=1)  # share of the steps
    warmdown_ratio: float = Field(default=0.4, ge=0, le=1)  # share of the steps
    max_grad_norm: float = Field(default=1.0, gt=0)

    @field_validator("data")
    @classmethod
    def _builtin_or_absolute(cls, data: str) -> str:
        """Evaluations run in directories of their own: a path must not depend on where."""
        if data in BUILTIN:
            return data
        if data.startswith("builtin:"):
            raise ValueError(
                f"{data!r} is not built in: expected one of {', '.join(BUILTIN)}, "
                "or the path of a text file"
            )
        return str(Path(data).expanduser().absolute())

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
        if self.warmup_ratio + self.warmdown_ratio > 1:
            raise ValueError(
                "warmup_ratio + warmdown_ratio must be at most 1, "
                f"got {self.warmup_ratio} + {self.warmdown_ratio}"
            )
        return self

    @property
    def head_dim(self) -> int:
        return self.n_embd // self.n_head

    @property
    def tokens_per_step(self) -> int:
        return self.batch_size * self.sequence_len

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """The configuration `settings` asks for. Raises ValueError, in one line, saying what is
        wrong with which setting."""
        return parse(cls, settings, "nanochat")
