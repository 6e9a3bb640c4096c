"""`check memory`: the largest safe micro-batch, by the peak memory of a few sizes."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from statistics import linear_regression, median
from typing import Any

from budgets.events import Status
from budgets.formatting import table
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective

SAFE_SHARE, SAFE_SHARE_OF_ONE = 0.7, 0.6
"""Of the memory: by a line through two sizes or more, and from one size through the origin."""

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: its peak allocation, and the memory of the GPU."""

GIB = 2**30


def with_micro_batch(objective: Objective, size: int) -> Objective:
    """Return the objective with micro-batches of `size` and the same effective batch.

    Raises ValueError if it has no micro-batches, or `size` does not divide its effective batch.
    """
    settings = objective.spec.settings
    if "micro_batch_size" not in settings:
        raise ValueError(f"--size: objective {objective.spec.name} has no micro-batches")
    batch = int(settings["micro_batch_size"] * settings.get("gradient_accumulation_steps", 1))
    if size < 1 or batch % size:
        divisors = [n for n in range(1, batch + 1) if batch % n == 0]
        raise ValueError(
            f"--size: expected sizes that divide the effective batch of {batch} "
            f"({', '.join(map(str, divisors))}), got {size}; another effective batch is another "
            "training: --set gradient_accumulation_steps=N"
        )
    changed = {"micro_batch_size": size, "gradient_accumulation_steps": batch // size}
    return registry.load(registry.varied(objective.spec, changed))


@dataclass(frozen=True)
class Memory:
    """The measured peaks and their line: peak = base + each * micro-batch size, in bytes."""

    peak_bytes: Mapping[int, float]  # by micro-batch size
    seconds: Mapping[int, float]  # of an evaluation, by micro-batch size
    base_bytes: float
    bytes_each: float
    safe_share: float
    memory_bytes: float  # available to an evaluation

    @property
    def largest(self) -> int | None:
        """The largest power of two whose peak keeps within the safe share of the memory.

        0 if not even 1 does; None if the peak does not grow with the size.
        """
        if self.bytes_each <= 0:
            return None
        room = (self.safe_share * self.memory_bytes - self.base_bytes) / self.bytes_each
        return 0 if room < 1 else 1 << (int(min(room, 2**62)).bit_length() - 1)

    def as_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        by_size = {
            name: {str(size): value for size, value in getattr(self, name).items()}
            for name in ("peak_bytes", "seconds")
        }
        return {**asdict(self), **by_size, "largest": self.largest}

    def to_markdown(self) -> str:
        """Return a table of the sizes, the line and the conclusion."""
        rows = (
            (size, f"{peak / GIB:.3f}", f"{self.seconds[size]:.1f} s")
            for size, peak in sorted(self.peak_bytes.items())
        )
        lines = [
            "# Memory by micro-batch size",
            "",
            *table((">micro-batch", ">peak GiB", ">seconds"), rows),
            "",
            f"peak = {self.base_bytes / GIB:.3f} + {self.bytes_each / GIB:.4f} x micro-batch GiB. "
            f"Safe: {self.safe_share:g} of the {self.memory_bytes / GIB:.1f} GiB there are.",
            "",
            f"**{self._conclusion()}**",
        ]
        return "\n".join(lines)

    def _conclusion(self) -> str:
        if self.largest is None:
            return (
                "No largest micro-batch: the peak does not grow with the size. Measure sizes that "
                "are further apart."
            )
        if self.largest == 0:
            return "Not even a micro-batch of 1 is safe: a smaller model, or shorter sequences."
        return f"The largest safe micro-batch is {self.largest}."


def memory_of(states: Mapping[int, RunState]) -> Memory:
    """Return the memory of runs of the baseline, by micro-batch size.

    The line is by least squares; one size gives a line through the origin. Raises ValueError if no
    evaluation of a size was healthy.
    """
    peaks, seconds, memory = dict[int, float](), dict[int, float](), inf
    for size, state in states.items():
        ends = [end for end in state.ends() if end.status is Status.OK]
        if not ends:
            raise ValueError(f"no evaluation with micro-batches of {size} was healthy")
        peaks[size] = max(end.metrics.get(GPU_PEAK, end.peak_memory_bytes) for end in ends)
        seconds[size] = median(end.seconds for end in ends)
        host = state.plan.devices.memory_bytes
        memory = min(memory, *(end.metrics.get(GPU_MEMORY, host) for end in ends))
    if len(peaks) == 1:
        [(size, peak)] = peaks.items()
        return Memory(peaks, seconds, 0.0, peak / size, SAFE_SHARE_OF_ONE, memory)
    each, base = linear_regression(list(peaks), list(peaks.values()))
    return Memory(peaks, seconds, base, each, SAFE_SHARE, memory)
