"""Named settings, and how a training run outside a search is carried out.

Presets say how long and how often, profiles how the work is cut to the memory. Every profile has
an effective batch of 32 sequences; their lengths, and so the tokens of a step, differ.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator

Named = Mapping[str, Mapping[str, Any]]

PRESETS: Named = {
    "quick": {  # does it run at all?
        "micro_batch_size": 2,
        "num_batches": 10,
        "save_interval_steps": 10,
        "eval_interval_steps": 10,
        "log_interval_steps": 1,
    },
    "low-memory": {  # one sequence at a time, the effective batch of "production"
        "micro_batch_size": 1,
        "gradient_accumulation_steps": 4,
        "gradient_checkpointing": True,
        "num_batches": 3738,
    },
    "high": {
        "micro_batch_size": 8,
        "gradient_accumulation_steps": 1,
        "num_batches": 10_000,
        "eval_interval_steps": 1000,
    },
    "production": {
        "micro_batch_size": 4,
        "gradient_accumulation_steps": 1,
        "num_batches": 10_000,
        "save_interval_steps": 100,
        "keep_best": True,
    },
}


def _profile(micro: int, accumulation: int, length: int, recompute: bool = True) -> dict[str, Any]:
    return {
        "micro_batch_size": micro,
        "gradient_accumulation_steps": accumulation,
        "sequence_len": length,
        "gradient_checkpointing": recompute,
        "dtype": "auto",
    }


PROFILES: Named = {
    "fast": _profile(8, 4, 1024, recompute=False),
    "balanced": _profile(4, 8, 2048),
    "quality": _profile(2, 16, 4096),
    "memory_efficient": _profile(1, 32, 2048),
}


class RunConfig(BaseModel):
    """What `NanochatConfig` leaves open. Only the seed and the device are part of the result."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    device: Literal["auto", "cpu", "cuda"] = "auto"  # auto: a GPU if torch sees one
    seed: int = 42
    threads: int = Field(default=1, ge=1)  # on the CPU; small shapes are slower with more
    checkpoint_dir: Path = Path("checkpoints/ckpts")
    save_interval_steps: int = Field(default=100, ge=1)
    eval_interval_steps: int = Field(default=500, ge=1)
    log_interval_steps: int = Field(default=10, ge=1)
    keep_checkpoints: int = Field(default=3, ge=1)  # the last so many
    keep_best: bool = True  # and the one with the lowest validation bits per byte

    @field_validator("checkpoint_dir", mode="before")
    @classmethod
    def _not_empty(cls, value: object) -> object:
        if value == "":
            raise ValueError("expected a directory's name")
        return value

    @field_validator("checkpoint_dir")
    @classmethod
    def _with_home(cls, value: Path) -> Path:
        return value.expanduser()

    @property
    def most_kept(self) -> int:
        """Checkpoints on disk between two saves, at most."""
        return self.keep_checkpoints + self.keep_best
