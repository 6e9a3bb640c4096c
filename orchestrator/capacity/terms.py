"""What a person may say about how many evaluations run at once."""

from pathlib import Path
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from budgets.frozen import Frozen

FIRST_WORKERS = 2


class Backpressure(BaseModel):
    """`[backpressure]`: fewer evaluations at once where more do less. Off by default."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)

    enabled: bool = False
    min_workers: int = Field(default=1, ge=1)
    max_workers: int | None = Field(default=None, ge=1)  # None: as many as there are devices
    window: int = Field(default=4, ge=2)  # evaluations, and one a worker, before each decision
    tolerance: float = Field(default=0.05, gt=0, lt=1)  # of the throughput: less is no difference
    patience: int = Field(default=8, ge=1)  # decisions until what did less is tried again, doubling

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.max_workers is not None and self.max_workers < self.min_workers:
            raise ValueError(
                f"max_workers: expected min_workers ({self.min_workers}) or more, got "
                f"{self.max_workers}"
            )
        return self

    def bounds(self, devices: int) -> tuple[int, int]:
        """The fewest and the most workers, on so many devices."""
        most = min(devices, self.max_workers or devices)
        return min(self.min_workers, most), most

    def first(self, devices: int) -> int:
        """How many it begins with."""
        least, most = self.bounds(devices)
        return min(max(FIRST_WORKERS, least), most)


class Pacing(Frozen):
    """How many evaluations run at once, where it is not simply one a device.

    `max_concurrent` and `slots_dir` are of `[backend]`.
    """

    max_concurrent: int | None = Field(default=None, ge=1)  # of all orchestrators sharing the slots
    slots_dir: Path | None = None  # names what is shared; None: this user's, on this host
    backpressure: Backpressure = Backpressure()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.slots_dir is not None and self.max_concurrent is None:
            raise ValueError(
                f"slots_dir: says where slots are shared, so expected max_concurrent too: how many "
                f"there are; got only {self.slots_dir}"
            )
        return self
