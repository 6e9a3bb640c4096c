"""`check memory`: from the peak memory of a few micro-batch sizes to the largest that is safe."""

from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from math import inf
from statistics import linear_regression
from typing import Any

from budgets.formatting import plain, table
from budgets.plan import Devices
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from orchestrator.plan.history import BUDGET, Entry, on_such

SAFE_SHARE = 0.7
"""Of the memory there is, where two sizes or more say how the peak grows."""

SAFE_SHARE_OF_ONE = 0.6
"""... and where it is taken to grow from nothing, because one size was measured."""

CUTS = frozenset({"micro_batch_size", "gradient_accumulation_steps"})
"""Settings that cut the same effective batch to the memory."""


@dataclass(frozen=True)
class MemoryLine:
    """peak = base + each * micro-batch size, in bytes."""

    base_bytes: float
    bytes_each: float
    sizes: tuple[int, ...]  # measured

    @property
    def safe_share(self) -> float:
        return SAFE_SHARE if len(self.sizes) > 1 else SAFE_SHARE_OF_ONE

    def peak_bytes(self, micro_batch_size: int) -> float:
        return self.base_bytes + self.bytes_each * micro_batch_size

    def largest(self, memory_bytes: float) -> int:
        """The largest power of two whose peak keeps within the safe share of `memory_bytes`.

        0 where not even 1 does. Raises ValueError where the peak does not grow with the size.
        """
        if self.bytes_each <= 0:
            raise ValueError(
                f"micro-batches of {' and '.join(map(str, self.sizes))} take the same memory, so "
                "nothing says where it ends: measure sizes that lie further apart"
            )
        room = (self.safe_share * memory_bytes - self.base_bytes) / self.bytes_each
        return 0 if room < 1 else 1 << (int(min(room, 2**62)).bit_length() - 1)


def memory_line(peaks: Mapping[int, float]) -> MemoryLine:
    """The line through what was measured: bytes by micro-batch size.

    Least squares of two sizes or more, through the origin of one. Raises ValueError without any.
    """
    if not peaks:
        raise ValueError("no peak of memory was measured: check memory --sizes 1,4 measures")
    sizes = tuple(sorted(peaks))
    if len(sizes) == 1:
        return MemoryLine(0.0, peaks[sizes[0]] / sizes[0], sizes)
    slope, intercept = linear_regression(sizes, [peaks[size] for size in sizes])
    return MemoryLine(intercept, slope, sizes)


def measured_peaks(
    history: Iterable[Entry], objective: Objective, devices: Devices
) -> tuple[dict[int, float], float]:
    """Peaks in bytes by micro-batch size, of the same model on such devices; the least memory.

    The memory that there is for an evaluation is infinite where nothing was measured.
    """
    peaks: dict[int, float] = {}
    memory_bytes = inf
    for entry in history:
        there, size = entry.evaluation, entry.micro_batch_size
        if there is None or size is None or not there.peak_memory_bytes:
            continue
        if on_such(entry, devices) and _is_same_model(entry, objective.spec):
            peaks[size] = max(peaks.get(size, 0.0), there.peak_memory_bytes)
            memory_bytes = min(memory_bytes, there.memory_bytes)
    return peaks, memory_bytes


def with_micro_batch(objective: Objective, size: int) -> Objective:
    """The same effective batch in micro-batches of `size`.

    Raises ValueError where the objective has none, or `size` does not divide its effective batch.
    """
    settings = objective.spec.settings
    if "micro_batch_size" not in settings:
        raise ValueError(f"--sizes: objective {objective.spec.name} has no micro-batches")
    batch = settings["micro_batch_size"] * settings.get("gradient_accumulation_steps", 1)
    if size < 1 or batch % size:
        divisors = [n for n in range(1, batch + 1) if batch % n == 0]
        raise ValueError(
            f"--sizes: expected sizes that divide the effective batch of {batch} "
            f"({', '.join(map(str, divisors))}), got {size}; another effective batch is another "
            "training: --set gradient_accumulation_steps=N"
        )
    changed = {"micro_batch_size": size, "gradient_accumulation_steps": batch // size}
    return registry.load(registry.varied(objective.spec, changed))


def _is_same_model(entry: Entry, spec: ObjectiveSpec) -> bool:
    return entry.objective == spec.name and _uncut(entry.settings) == _uncut(spec.settings)


def _uncut(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in settings.items() if name not in CUTS | set(BUDGET)}


@dataclass(frozen=True)
class Memory:
    """What was measured, and what follows."""

    peak_bytes: dict[int, float]  # by micro-batch size
    seconds: dict[int, float]  # of an evaluation, by micro-batch size
    line: MemoryLine
    memory_bytes: float  # that an evaluation has
    effective_batch: int
    largest: int | None  # safe micro-batch, a power of two; 0: not even 1; None: nothing says
    why_not: str = ""

    def as_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        by_size = {
            name: {str(size): value for size, value in getattr(self, name).items()}
            for name in ("peak_bytes", "seconds")
        }
        return {**asdict(self), **by_size, "safe_share": self.line.safe_share}

    def to_markdown(self) -> str:
        """For people."""
        line, gib = self.line, 2**30
        rows = (
            (
                size,
                f"{peak / gib:.3f}",
                f"{self.seconds[size]:.1f} s" if size in self.seconds else "-",
            )
            for size, peak in sorted(self.peak_bytes.items())
        )
        how = (
            f"peak = {line.base_bytes / gib:.3f} + {line.bytes_each / gib:.4f} x micro-batch GiB"
            if len(line.sizes) > 1
            else f"peak = {line.bytes_each / gib:.4f} x micro-batch GiB, from one size"
        )
        return "\n".join(
            [
                "# Memory by micro-batch size",
                "",
                *table((">micro-batch", ">peak GiB", ">seconds"), rows),
                "",
                f"{how}; {line.safe_share:g} of the {self.memory_bytes / gib:.1f} GiB that an "
                "evaluation has may be used.",
                "",
                f"**{plain(self._conclusion())}**",
            ]
        )

    def _conclusion(self) -> str:
        if self.largest is None:
            return f"No largest micro-batch: {self.why_not}."
        if self.largest == 0:
            return "Not even a micro-batch of 1 is safe: a smaller model, or shorter sequences."
        said = f"The largest safe micro-batch is {self.largest}."
        if self.largest > self.effective_batch:
            said += (
                f" The effective batch is {self.effective_batch}: all of it fits at once, and a "
                "larger one is another training."
            )
        return said


def memory_of(
    objective: Objective, devices: Devices, entries: list[Entry], seconds: dict[int, float]
) -> Memory:
    """What the entries say of the objective's memory on such devices."""
    peaks, memory_bytes = measured_peaks(entries, objective, devices)
    line, settings = memory_line(peaks), objective.spec.settings
    effective = settings["micro_batch_size"] * settings.get("gradient_accumulation_steps", 1)
    try:
        largest, why_not = line.largest(memory_bytes), ""
    except ValueError as error:
        largest, why_not = None, str(error)
    return Memory(peaks, seconds, line, memory_bytes, effective, largest, why_not)
