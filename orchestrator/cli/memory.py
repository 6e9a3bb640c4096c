"""`calibrate --micro-batches`: the peak of memory at a few sizes, and the largest that is safe."""

from dataclasses import asdict, dataclass, replace
from typing import Annotated, Any

from typer import Option

from budgets.calibration import measure
from budgets.plain import plain
from budgets.table import table
from budgets.terms import Devices
from objectives.api import Objective
from orchestrator.cli.conducting import conducting, finish
from orchestrator.cli.given import numbers_of
from orchestrator.cli.terminal import print_json, print_markdown
from orchestrator.execution.engine import devices_of
from orchestrator.planning.configured import Conduct
from orchestrator.planning.history import Entry, entry_of, read_history
from orchestrator.planning.memory import (
    MemoryLine,
    measured_peaks,
    memory_line,
    with_micro_batch,
)
from orchestrator.planning.request import Request
from orchestrator.running.calibrating import Calibrating

MOST_REPEATS = 2
"""Seeds of each size: a peak of memory hardly differs between them."""

MicroBatches = Annotated[
    str | None,
    Option("--micro-batches", metavar="1,4", help="Measure memory at these sizes, and no noise."),
]


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


def measure_micro_batches(how: Conduct, limits: Request, text: str, repeats: int) -> None:
    """Evaluate the baseline at each size, on record, and print the largest safe one.

    Raises ValueError on sizes that the objective cannot have.
    """
    objective, repeats = limits.objective, min(repeats, MOST_REPEATS)
    sizes = numbers_of("--micro-batches", text)
    sized = {size: with_micro_batch(objective, size) for size in sizes}
    slots = how.engine.slots()
    entries: list[Entry] = []
    seconds: dict[int, float] = {}
    with conducting(how) as (session, live):
        for size, one in sized.items():
            asked = replace(limits, objective=one)
            result = Calibrating(one, slots, repeats, request=asked).carry_out(session, "memory-")
            if result.ruling.decision != "done":
                finish(result, session.stop, live, how.as_json)
            seconds[size] = measure(result.state).median_seconds
            entries.append(entry_of(result.state))
    known = read_history(how.root).entries
    found = memory_of(objective, devices_of(slots), [*known, *entries], seconds)
    if how.as_json:
        print_json(_document(found))
    else:
        print_markdown(to_markdown(found))


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


def _document(found: Memory) -> dict[str, Any]:
    document = asdict(found)
    for name in ("peak_bytes", "seconds"):
        document[name] = {str(size): value for size, value in document[name].items()}
    return {**document, "safe_share": found.line.safe_share}
