"""What earlier runs took: `history.jsonl` beside them, from which the next plan learns.

One JSON line when a run ends for now; the last line of a run counts. A run that has no line in it
loses nothing: only plans without a calibration read it.
"""

import os
import stat
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, suppress
from datetime import datetime
from pathlib import Path
from statistics import median
from typing import Any

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from budgets.events import Settled, Status
from budgets.pace import last_seen, timing
from budgets.plan import Devices, Phase, Tier
from budgets.rules import Decision, Ruling, ruling_of
from budgets.state import RunState
from budgets.storage import DISK, read_plain

HISTORY = "history.jsonl"

GPU_PEAK, GPU_MEMORY = "gpu_peak_bytes", "gpu_memory_bytes"
"""Metrics of an evaluation on a GPU: what it allocated there at most, and what there is."""

_Estimate = Field(default=None, alias="optimization/estimated_hours")
_Actual = Field(default=None, alias="optimization/actual_hours")
_Accuracy = Field(default=None, alias="optimization/time_accuracy")


class Typical(BaseModel):
    """A healthy evaluation of the objective as it is: medians, and the peak of memory."""

    model_config = ConfigDict(frozen=True)

    samples: int = Field(ge=1)
    seconds: float = Field(gt=0)
    startup_seconds: float = Field(ge=0)
    cpu_seconds: float = Field(ge=0)
    steps: float = 0.0
    tokens: float = 0.0
    train_flops: float = Field(default=0.0, ge=0)
    eval_flops: float = Field(default=0.0, ge=0)
    tokens_per_second: float | None = None  # of training
    peak_memory_bytes: int = 0  # on the GPU where it ran on one that says so, otherwise resident
    memory_bytes: int = 0  # that there was for it


class Entry(BaseModel):
    """A run as the history keeps it. Fields that a later version adds are passed over."""

    model_config = ConfigDict(frozen=True, populate_by_name=True, allow_inf_nan=False)

    version: int = 1
    run_id: str
    phase: Phase
    tier: Tier | None
    genesis: str  # digest of the ledger's first record: names the run
    head: str  # of the ledger
    ended_at: datetime  # moment of the last record
    decision: Decision  # continue: it was interrupted
    objective: str
    fingerprint: str
    settings: dict[str, Any]
    micro_batch_size: int | None
    device_kind: str
    device_name: str
    threads: int
    devices: int  # evaluations at once
    evaluations: int  # done
    evaluations_planned: int  # with those beside the search
    evaluation: Typical | None  # None: no healthy one
    startup_seconds: float  # of a session, until its first evaluation could begin
    idle_device_hours: float
    estimated_hours: float | None = _Estimate  # by its plan, for what it has done
    actual_hours: float | None = _Actual
    accuracy: float | None = _Accuracy  # estimated / actual * 100
    estimated_device_hours: float | None = None
    actual_device_hours: float | None = None


def entry_of(state: RunState, ruling: Ruling | None = None) -> Entry:
    """The run as it stands, with this ruling or the one that its records allow."""
    from budgets.pace import idle_hours

    plan, took = state.plan, timing(state)
    settings = dict(plan.objective.get("settings", {}))
    starts = list(state.starts_ms.values())
    micro = settings.get("micro_batch_size")
    return Entry(
        run_id=plan.run_id,
        phase=plan.phase,
        tier=plan.tier,
        genesis=state.genesis,
        head=state.head,
        ended_at=last_seen(state),
        decision=(ruling or ruling_of(state)).decision,
        objective=plan.objective["name"],
        fingerprint=plan.objective_fingerprint,
        settings=settings,
        micro_batch_size=micro if isinstance(micro, int) else None,
        device_kind=plan.devices.kind,
        device_name=plan.devices.name,
        threads=plan.devices.threads,
        devices=plan.devices.count,
        evaluations=state.accounts.evaluations + state.accounts.apart,
        evaluations_planned=plan.resolved.evaluations + plan.apart,
        evaluation=_typical(state),
        startup_seconds=median(starts) / 1000 if starts else 0.0,
        idle_device_hours=idle_hours(state),
        estimated_hours=None if took is None else took.estimated_hours,
        actual_hours=None if took is None else took.actual_hours,
        accuracy=None if took is None else took.accuracy,
        estimated_device_hours=None if took is None else took.estimated_device_hours,
        actual_device_hours=None if took is None else took.actual_device_hours,
    )


def _typical(state: RunState) -> Typical | None:
    healthy = list(_of_the_objective(state))
    if not healthy:
        return None
    on_gpu = [r.metrics[GPU_PEAK] for r in healthy if GPU_PEAK in r.metrics]
    there = [r.metrics[GPU_MEMORY] for r in healthy if GPU_MEMORY in r.metrics]
    rates = [r.tokens / r.train_seconds for r in healthy if r.tokens and r.train_seconds]
    memory = state.plan.devices.memory_bytes if not there else min(there)
    return Typical(
        samples=len(healthy),
        seconds=median(r.seconds for r in healthy),
        startup_seconds=median(r.startup_seconds for r in healthy),
        cpu_seconds=median(r.cpu_seconds for r in healthy),
        steps=median(r.steps for r in healthy),
        tokens=median(r.tokens for r in healthy),
        train_flops=median(r.train_flops for r in healthy),
        eval_flops=median(r.eval_flops for r in healthy),
        tokens_per_second=median(rates) if rates else None,
        peak_memory_bytes=int(max(on_gpu or (r.peak_memory_bytes for r in healthy))),
        memory_bytes=int(memory),
    )


def _of_the_objective(state: RunState) -> Iterator[Settled]:
    """Healthy results of evaluations that changed none of its settings."""
    for generation in state.generations:
        for result in generation.results():
            is_plain = not generation.settings(result.candidate)
            if is_plain and result.status is Status.OK and result.seconds > 0:
                yield result


def read_history(root: Path) -> tuple[Entry, ...]:
    """Each run's last line, in the order of the file; none where there is no file.

    Lines that are torn or somebody else's are left out. Raises ValueError where the file is a link
    or no plain file.
    """
    try:
        data = read_plain(root / HISTORY)
    except (FileNotFoundError, NotADirectoryError):
        return ()
    latest: dict[str, Entry] = {}
    for line in filter(None, data.split(b"\n")):
        with suppress(ValidationError):
            entry = Entry.model_validate_json(line)
            latest.pop(entry.genesis, None)  # so that the order is that of last lines
            latest[entry.genesis] = entry
    return tuple(latest.values())


def append(root: Path, entries: Sequence[Entry]) -> None:
    """Add their lines by one write each, also beside others that do. Raises OSError, ValueError."""
    path = root / HISTORY
    handle = DISK.open(path)
    with closing(os.fdopen(handle, "rb", closefd=True)) as file:
        found = os.fstat(handle)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError(f"{path} is no plain file: expected one. Move it away")
        is_torn = found.st_size > 0 and os.pread(handle, 1, found.st_size - 1) != b"\n"
        for number, entry in enumerate(entries):
            data = orjson.dumps(entry.model_dump(mode="json", by_alias=True)) + b"\n"
            data = b"\n" + data if is_torn and number == 0 else data
            if os.write(file.fileno(), data) < len(data):
                raise OSError(f"{path} takes no more: a line was cut short")


def keep(root: Path, state: RunState, ruling: Ruling, say: Callable[[str], None]) -> None:
    """Keep what the run took, unless that is known; what goes wrong is said and stops nothing."""
    try:
        if not _knows(root, state.head):
            append(root, [entry_of(state, ruling)])
    except (OSError, ValueError) as error:
        say(f"Warning: {root / HISTORY} does not have this run: {error}.")


def _knows(root: Path, head: str) -> bool:
    try:
        return f'"head":"{head}"'.encode() in read_plain(root / HISTORY)
    except FileNotFoundError:
        return False


def on_such(entry: Entry, devices: Devices) -> bool:
    """Whether it ran on that kind of device, by name and with as many threads."""
    mine = (devices.kind, devices.name, devices.threads)
    return (entry.device_kind, entry.device_name, entry.threads) == mine
