"""A run's evaluations as tables: `progress.csv`, `metrics.jsonl`, and `export table`.

`metrics.jsonl` has a line for each evaluation, in the order in which they ended. It grows while the
run goes on; a session that begins adds the lines that are missing, from the ledger.
"""

import csv
import io
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal

import orjson

from budgets.events import Event, Settled
from budgets.formatting import printable
from budgets.ledger import LEDGER, Record, read
from budgets.pace import pace, timing
from budgets.state import Observer, RunState, apply, begin
from budgets.storage import document, write_aside
from orchestrator.records.objective import knobs_of

Row = dict[str, Any]

OWN = (
    "generation",
    "candidate",
    "seed",
    "attempt",
    "status",
    "score",
    "seconds",
    "startup_seconds",
    "train_seconds",
    "cpu_seconds",
    "peak_memory_bytes",
    "device",
    "steps",
    "tokens",
    "train_flops",
    "eval_flops",
    "cause",
)
"""Columns that are fields of a settlement."""

COLUMNS = ("comparison", "configuration", *OWN)
"""Columns of `progress.csv`; `configuration` is the condition's name in a campaign."""


def export_rows(state: RunState) -> list[Row]:
    """Return a row for each settled attempt: the generations, then the comparisons.

    Columns are COLUMNS, what it was charged, `knob.NAME` in the knob's unit, and `metric.NAME`.
    """
    rows = []
    for batch in state.batches():
        for event in batch.ends():
            knobs = knobs_of(batch, event.candidate, state.plan.space)
            rows.append(
                {
                    "comparison": event.comparison or "",
                    "configuration": batch.configurations[event.candidate].name,
                    **{name: getattr(event, name) for name in OWN},
                    "status": str(event.status),
                    "charged_ms": event.charged_ms,
                    "recovered": event.recovered,
                    "retry": event.retry,
                    **{f"knob.{name}": value for name, value in knobs.items()},
                    **{f"metric.{name}": value for name, value in sorted(event.metrics.items())},
                }
            )
    return rows


def to_csv(rows: Sequence[Row], columns: Sequence[str]) -> str:
    """Return CSV; text that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_inert(row.get(name)) for name in columns])
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Return text that is no formula to a spreadsheet, and no control code to a terminal."""
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", " ")
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every column, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def table_of(state: RunState, form: Literal["csv", "json"]) -> bytes:
    """Return every settled attempt as a row."""
    found = export_rows(state)
    columns = columns_of(found) or list(COLUMNS)
    if form == "csv":
        return to_csv(found, columns).encode()
    return document([{name: row.get(name) for name in columns} for row in found])


# metrics.jsonl

METRICS = "metrics.jsonl"

IN_TIME = (
    *("training/elapsed_hours", "training/remaining_hours", "training/on_track"),
    *("optimization/estimated_hours", "optimization/actual_hours", "optimization/time_accuracy"),
)


def line(state: RunState, event: Settled) -> bytes:
    """Return the evaluation's line; `state` is the run once it is settled."""
    return orjson.dumps(
        {**_place(state, event), **measured(state, event)}, option=orjson.OPT_APPEND_NEWLINE
    )


def measured(state: RunState, event: Settled) -> dict[str, Any]:
    """Return the evaluation's figures, and the run's time and evaluations once it is settled.

    `elapsed_seconds` is the wall clock of all its sessions.
    """
    accounts, trained = state.accounts, event.train_seconds
    before = 0 if state.plan.calibration is None else state.plan.calibration.open_ms
    return {
        "seed": event.seed,
        "attempt": event.attempt,
        "status": event.status,
        "score": event.score,
        "seconds": event.seconds,
        "step_time_s": trained / event.steps if event.steps else None,
        "tokens_per_second": event.tokens / trained if event.tokens and trained else None,
        "steps": event.steps,
        "train_flops": event.train_flops,
        "peak_memory_bytes": event.peak_memory_bytes,
        "elapsed_seconds": (accounts.wall_ms - before) / 1000,
        "evaluations": accounts.evaluations + accounts.comparisons,
        **in_time(state),
    }


def in_time(state: RunState) -> dict[str, float | None]:
    """Return the run's times by their names in trackers; None: not known yet."""
    taken, stands = timing(state), pace(state)
    on_track = None if stands.on_track is None else float(stands.on_track)
    estimated: tuple[float | None, ...] = (None,) * 3
    if taken is not None:
        estimated = (taken.estimated_hours, taken.actual_hours, taken.accuracy)
    found = (stands.elapsed_hours, stands.remaining_hours, on_track, *estimated)
    return dict(zip(IN_TIME, found, strict=True))


def _place(state: RunState, event: Settled) -> dict[str, Any]:
    """Return which evaluation it was: of a condition, a comparison or a generation."""
    if state.plan.campaign is not None:
        return {"condition": state.plan.campaign.conditions[event.candidate].name}
    if event.comparison is not None:
        own = state.comparisons[event.comparison].configurations[event.candidate]
        return {"comparison": event.comparison, "configuration": own.name}
    return {"generation": event.generation, "candidate": event.candidate}


def recording(directory: Path, observe: Observer) -> Observer:
    """Return an observer that also appends each evaluation's line, if the disk has room."""

    def told(state: RunState, event: Event) -> None:
        if isinstance(event, Settled) and event.final:
            _append(directory / METRICS, line(state, event))
        observe(state, event)

    return told


def _append(path: Path, data: bytes) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    with (
        suppress(OSError),  # `complete_metrics` writes what is missing
        os.fdopen(os.open(path, flags, 0o600), "ab", buffering=0) as file,
    ):
        file.write(data)


def complete_metrics(directory: Path, state: RunState) -> None:
    """Write the file again unless it has a line for each evaluation that has ended."""
    path = directory / METRICS
    expected = state.accounts.evaluations + state.accounts.comparisons
    found = path.read_bytes() if path.is_file() and not path.is_symlink() else b""
    if found.count(b"\n") != expected or (found and not found.endswith(b"\n")):
        write_metrics(directory, read(directory / LEDGER).records)


def write_metrics(directory: Path, records: tuple[Record, ...]) -> None:
    """Write the file again, from a whole ledger's records."""
    write_aside(directory / METRICS, b"".join(lines(records)))


def lines(records: tuple[Record, ...]) -> Iterator[bytes]:
    """Yield a line for each evaluation that has ended, in the order in which they ended."""
    state = begin(records[0])
    for record in records[1:]:
        apply(state, record)
        if isinstance(record.event, Settled) and record.event.final:
            yield line(state, record.event)
