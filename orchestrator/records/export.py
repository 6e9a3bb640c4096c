"""A run's evaluations as a table, for other programs: one row for each settled attempt."""

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from budgets.events import Settled
from budgets.formatting import printable
from budgets.state import Batch, RunState
from budgets.storage import document, write_aside
from orchestrator.records.objective import knobs_of

Format = Literal["csv", "json", "parquet"]
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
"""What a settlement itself says."""

COLUMNS = ("comparison", "configuration", *OWN)
"""Of `progress.csv`; an export has those of `export_rows` too."""


def settlements(state: RunState) -> Iterator[tuple[Batch, Settled]]:
    """Every settled attempt and what it belongs to: the generations, then the panels.

    Within each in the order of candidate, seed and attempt.
    """
    return ((batch, end) for batch in state.batches() for end in batch.ends())


def progress_rows(state: RunState) -> Iterator[Row]:
    """`panel` and `arm` are empty for the search; `generation` is the number of either.

    `arm` is a campaign's condition.
    """
    return (_columns(batch, event) for batch, event in settlements(state))


def _columns(batch: Batch, event: Settled) -> Row:
    own = {name: getattr(event, name) for name in OWN}
    name = arm_of(batch, event.candidate)
    return {"comparison": event.comparison or "", "configuration": name, **own}


def arm_of(batch: Batch, candidate: int) -> str:
    """The name of a panel's arm, of a campaign's condition; empty of any other candidate."""
    if isinstance(batch, Batch):
        return batch.configurations[candidate].name
    conditions = batch.conditions if isinstance(batch, Batch) else ()
    return conditions[candidate].name if conditions else ""


def export_rows(state: RunState) -> list[Row]:
    """The columns of `progress.csv`; what it was charged; `knob.NAME` in units, `metric.NAME`."""
    rows = []
    space = state.plan.space
    for batch, event in settlements(state):
        knobs = knobs_of(batch, event.candidate, space)
        rows.append(
            {
                **_columns(batch, event),
                "status": str(event.status),
                "charged_ms": event.charged_ms,
                "recovered": event.recovered,
                "retry": event.retry,
                **{f"knob.{name}": value for name, value in knobs.items()},
                **{f"metric.{name}": value for name, value in sorted(event.metrics.items())},
            }
        )
    return rows


def to_csv(rows: Sequence[Row] | Iterator[Row], columns: Sequence[str]) -> str:
    """A header and one line a row; text that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in rows:
        writer.writerow([_inert(row.get(name)) for name in columns])
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Text a spreadsheet will not take for a formula, nor a terminal for an order."""
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", " ")
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Every column there is, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row))


def export(state: RunState, kind: Format, out: Path | None) -> bytes:
    """The table in that format, also written to `out` if that is given.

    Raises ValueError when parquet cannot be written here.
    """
    found = export_rows(state)
    columns = columns_of(found) or list(COLUMNS)
    rows = [{name: row.get(name) for name in columns} for row in found]  # all of one shape
    if kind == "json":
        data = document(rows)
    elif kind == "csv":
        data = to_csv(rows, columns).encode()
    else:
        data = _to_parquet(rows, columns)
    if out is not None:
        write_aside(out, data)
    return data


def _to_parquet(rows: Sequence[Row], columns: Sequence[str]) -> bytes:
    try:
        pyarrow, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    except ImportError:
        raise ValueError(
            "--format parquet needs pyarrow: pip install 'cmaes-orchestrator[parquet]'"
        ) from None
    table = pyarrow.table({name: [row.get(name) for row in rows] for name in columns})
    out = io.BytesIO()
    parquet.write_table(table, out)
    return out.getvalue()
