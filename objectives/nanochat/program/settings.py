"""How a training run is carried out: where it saves, how often it looks, on what it computes."""

from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator


class ProgramConfig(BaseModel):
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
    tensorboard: bool = False

    @field_validator("checkpoint_dir", mode="before")
    @classmethod
    def _named(cls, value: object) -> object:
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
