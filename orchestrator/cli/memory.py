"""What `check memory` found: the peak of memory by micro-batch, and the largest that is safe."""

from dataclasses import asdict, dataclass
from typing import Any

from budgets.plain import plain
from budgets.table import table
from budgets.terms import Devices
from objectives.api import Objective
from orchestrator.planning.history import Entry
from orchestrator.planning.memory import (
    MemoryLine,
    measured_peaks,
    memory_line,
)


@dataclass(frozen=True)
class Memory:
    """What was measured, and what follows."""

    peak_bytes: dict[int, float]  # by micro-batch size
    seconds: dict[int, float]  # of an evaluation, by micro-batch size
    line: MemoryLine
    memory_bytes: float
    effective_batch: int
    largest: int | None  # safe micro-batch, a power of two; 0: not even 1; None: nothing says
    why_not: str = ""


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


def to_markdown(found: Memory) -> str:
    """For a person."""
    line, gib = found.line, 2**30
    rows = (
        (size, f"{peak / gib:.3f}", _seconds(found.seconds.get(size)))
        for size, peak in sorted(found.peak_bytes.items())
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
            *table((">micro-batch", ">peak GiB", ">evaluation"), rows),
            "",
            f"{how}; {line.safe_share:g} of the {found.memory_bytes / gib:.1f} GiB that an "
            "evaluation has may be used.",
            "",
            f"**{plain(_verdict(found))}**",
        ]
    )


def _seconds(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds:.1f} s"


def _verdict(found: Memory) -> str:
    if found.largest is None:
        return f"No largest micro-batch: {found.why_not}."
    if found.largest == 0:
        return "Not even a micro-batch of 1 is safe: a smaller model, or shorter sequences."
    said = f"The largest safe micro-batch is {found.largest}."
    if found.largest > found.effective_batch:
        said += (
            f" The effective batch is {found.effective_batch}: all of it fits at once, and a "
            "larger one is another training."
        )
    return said


def as_dict(found: Memory) -> dict[str, Any]:
    """The same for a program."""
    document = asdict(found)
    for name in ("peak_bytes", "seconds"):
        document[name] = {str(size): value for size, value in document[name].items()}
    return {**document, "safe_share": found.line.safe_share}
