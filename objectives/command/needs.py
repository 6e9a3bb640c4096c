"""What a program needs of the machine, and whether it is there."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from pydantic import BaseModel, ConfigDict, Field

from objectives.api import Context, SetupError
from objectives.programs.kernel import memory_bytes

GIB = 1 << 30


class Needs(BaseModel):
    """Of one evaluation. What is not said is not asked for."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)

    gpu: bool = Field(default=False, exclude_if=lambda gpu: not gpu)
    threads: int | None = Field(default=None, ge=1)
    memory_gib: float | None = Field(default=None, gt=0)
    disk_gib: float | None = Field(default=None, gt=0)

    def missing_here(self, directory: Path) -> tuple[str, ...]:
        """What this machine can be told to be short of; evaluations may run on another one."""
        return tuple(self._missing_here(directory))

    def _missing_here(self, directory: Path) -> Iterator[str]:
        if self.gpu and not Path("/dev/nvidiactl").exists() and not shutil.which("nvidia-smi"):
            yield "it needs a GPU, and this machine shows none"
        if self.threads is not None and self.threads > (count := _processors()):
            yield f"it needs {self.threads} threads, and this machine has {count} processors"
        if self.memory_gib is not None and self.memory_gib * GIB > (most := memory_bytes()[0]):
            yield _short("memory", self.memory_gib, most)
        if self.disk_gib is not None and self.disk_gib * GIB > (free := _free_bytes(directory)):
            yield _short("free disk", self.disk_gib, free)

    def require(self, context: Context) -> None:
        """Raises SetupError, naming all that is short, unless the evaluation has what it needs."""
        if missing := tuple(self._missing_in(context)):
            raise SetupError(f"needs: {'; '.join(missing)}")

    def _missing_in(self, context: Context) -> Iterator[str]:
        if self.gpu and context.device != "cuda":
            yield f"it needs a GPU, and the evaluation has the device {context.device}"
        if self.threads is not None and self.threads > context.threads:
            yield (
                f"it needs {self.threads} threads, and an evaluation has {context.threads}: "
                f"say --set backend.threads={self.threads}"
            )
        if self.memory_gib is not None and self.memory_gib * GIB > (left := memory_bytes()[1]):
            yield _short("available memory", self.memory_gib, left)
        if self.disk_gib is not None:
            free = _free_bytes(context.directory)
            if self.disk_gib * GIB > free:
                yield _short("free disk", self.disk_gib, free)


def _short(what: str, needed_gib: float, there: int) -> str:
    return f"it needs {needed_gib:g} GiB of {what}, and there are {there / GIB:.3g}"


def _processors() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _free_bytes(directory: Path) -> int:
    return shutil.disk_usage(directory).free
