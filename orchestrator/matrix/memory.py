"""`check memory`: from the peak memory of a few micro-batch sizes to the largest that is safe."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import inf
from statistics import linear_regression, median
from typing import Any

from budgets.events import Settled, Status
from budgets.formatting import plain, table
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective

SAFE_SHARE = 0.7
"""Of the memory there is, where two sizes or more say how the peak grows."""

SAFE_SHARE_OF_ONE = 0.6
"""... and where it is taken to grow from nothing, because one size was measured."""

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: what it allocated there at most, and what there is."""


def with_micro_batch(objective: Objective, size: int) -> Objective:
    """The same effective batch in micro-batches of `size`.

    Raises ValueError where the objective has none, or `size` does not divide its effective batch.
    """
    settings = objective.spec.settings
    if "micro_batch_size" not in settings:
        raise ValueError(f"--sizes: objective {objective.spec.name} has no micro-batches")
    batch = _effective_batch(objective)
    if size < 1 or batch % size:
        divisors = [n for n in range(1, batch + 1) if batch % n == 0]
        raise ValueError(
            f"--sizes: expected sizes that divide the effective batch of {batch} "
            f"({', '.join(map(str, divisors))}), got {size}; another effective batch is another "
            "training: --set gradient_accumulation_steps=N"
        )
    changed = {"micro_batch_size": size, "gradient_accumulation_steps": batch // size}
    return registry.load(registry.varied(objective.spec, changed))


def _effective_batch(objective: Objective) -> int:
    settings = objective.spec.settings
    return int(settings["micro_batch_size"] * settings.get("gradient_accumulation_steps", 1))


@dataclass(frozen=True)
class Memory:
    """What was measured, and what follows: peak = base + each * micro-batch size, in bytes."""

    peak_bytes: Mapping[int, float]  # by micro-batch size
    seconds: Mapping[int, float]  # of an evaluation, by micro-batch size
    base_bytes: float
    bytes_each: float
    safe_share: float
    memory_bytes: float  # that an evaluation has
    effective_batch: int

    @property
    def largest(self) -> int | None:
        """The largest power of two whose peak keeps within the safe share of the memory.

        0 where not even 1 does; None where the peak does not grow with the size.
        """
        if self.bytes_each <= 0:
            return None
        room = (self.safe_share * self.memory_bytes - self.base_bytes) / self.bytes_each
        return 0 if room < 1 else 1 << (int(min(room, 2**62)).bit_length() - 1)

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        by_size = {
            name: {str(size): value for size, value in getattr(self, name).items()}
            for name in ("peak_bytes", "seconds")
        }
        return {**asdict(self), **by_size, "largest": self.largest}

    def to_markdown(self) -> str:
        """For people."""
        gib = 2**30
        rows = (
            (size, f"{peak / gib:.3f}", f"{self.seconds[size]:.1f} s")
            for size, peak in sorted(self.peak_bytes.items())
        )
        base = f"{self.base_bytes / gib:.3f} + " if len(self.peak_bytes) > 1 else ""
        return "\n".join(
            [
                "# Memory by micro-batch size",
                "",
                *table((">micro-batch", ">peak GiB", ">seconds"), rows),
                "",
                f"peak = {base}{self.bytes_each / gib:.4f} x micro-batch GiB; "
                f"{self.safe_share:g} of the {self.memory_bytes / gib:.1f} GiB that an evaluation "
                "has may be used.",
                "",
                f"**{plain(self._conclusion())}**",
            ]
        )

    def _conclusion(self) -> str:
        if self.largest is None:
            sizes = " and ".join(map(str, sorted(self.peak_bytes)))
            return (
                f"No largest micro-batch: those of {sizes} take the same memory, so nothing says "
                "where it ends. Measure sizes that lie further apart."
            )
        if self.largest == 0:
            return "Not even a micro-batch of 1 is safe: a smaller model, or shorter sequences."
        said = f"The largest safe micro-batch is {self.largest}."
        if self.largest > self.effective_batch:
            said += f" The effective batch is {self.effective_batch}: all of it fits at once."
        return said


def memory_of(objective: Objective, states: Mapping[int, RunState]) -> Memory:
    """What runs of the objective's baseline, by micro-batch size, say of its memory.

    The line is by least squares, of one size through the origin. Raises ValueError where no
    evaluation of a size was healthy.
    """
    peaks, seconds, memory = dict[int, float](), dict[int, float](), inf
    for size, state in states.items():
        ends = [end for end in state.ends() if end.status is Status.OK]
        if not ends:
            raise ValueError(f"no evaluation with micro-batches of {size} was healthy")
        peaks[size] = max(map(_peak, ends))
        seconds[size] = median(end.seconds for end in ends)
        host = state.plan.devices.memory_bytes
        memory = min(memory, *(end.metrics.get(GPU_MEMORY, host) for end in ends))
    slope, base, share = sum(peaks.values()) / sum(peaks), 0.0, SAFE_SHARE_OF_ONE
    if len(peaks) > 1:
        slope, base = linear_regression(list(peaks), list(peaks.values()))
        share = SAFE_SHARE
    return Memory(peaks, seconds, base, slope, share, memory, _effective_batch(objective))


def _peak(end: Settled) -> float:
    """On the GPU where it ran on one that says so, otherwise resident."""
    return end.metrics.get(GPU_PEAK, end.peak_memory_bytes)
