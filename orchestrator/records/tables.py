"""A run's evaluations as tables: `progress.csv`, `metrics.jsonl`, `export table`."""

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import orjson

from budgets.events import Settled
from budgets.formatting import printable
from budgets.state import Batch, RunState

Row = dict[str, Any]

OWN = (
    *("generation", "candidate", "seed", "attempt", "status", "score", "seconds"),
    *("startup_seconds", "train_seconds", "cpu_seconds", "peak_memory_bytes", "device"),
    *("steps", "tokens", "train_flops", "eval_flops", "cause"),
)
"""Columns that are fields of a settlement."""

COLUMNS = ("comparison", "configuration", *OWN)


def export_rows(state: RunState) -> list[Row]:
    """Return a row for each settled attempt: the generations, then the comparisons.

    Columns are COLUMNS (`configuration` is the condition's name in a campaign), what it was
    charged, its rates, `knob.NAME` in the knob's unit, and `metric.NAME`.
    """
    return [_row(state, batch, event) for batch in state.batches() for event in batch.ends()]


def _row(state: RunState, batch: Batch, event: Settled) -> Row:
    configuration = batch.configurations[event.candidate]
    knobs = configuration.knobs_in(state.plan.space)
    return {
        "comparison": event.comparison or "",
        "configuration": configuration.name,
        **{name: getattr(event, name) for name in OWN},
        "status": str(event.status),
        **{name: getattr(event, name) for name in ("charged_ms", "recovered", "retry")},
        **rates(event),
        **{f"knob.{name}": value for name, value in knobs.items()},
        **{f"metric.{name}": value for name, value in sorted(event.metrics.items())},
    }


def rates(event: Settled) -> dict[str, float | None]:
    """Return the seconds a step and the tokens a second of a training; None where unknown."""
    trained, steps, tokens = event.train_seconds, event.steps, event.tokens
    return {
        "step_time_s": trained / steps if trained and steps else None,
        "tokens_per_second": tokens / trained if trained and tokens else None,
    }


def to_csv(rows: Sequence[Row]) -> str:
    """Return CSV; text that a spreadsheet would take for a formula is quoted."""
    out = io.StringIO()
    writer = csv.DictWriter(out, columns_of(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows({name: _inert(value) for name, value in row.items()} for row in rows)
    return out.getvalue()


def _inert(value: Any) -> Any:
    """Return text that is neither a formula to a spreadsheet nor a control code to a terminal."""
    if not isinstance(value, str):
        return value
    text = printable(value).replace("\n", " ")
    return f"'{text}" if text.startswith(("=", "+", "-", "@")) else text


def columns_of(rows: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return every column, in the order in which they first appear."""
    return list(dict.fromkeys(name for row in rows for name in row)) or list(COLUMNS)


def metrics_lines(state: RunState) -> bytes:
    """Return `metrics.jsonl`: the table's rows as JSON, one a line."""
    rows = (orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in export_rows(state))
    return b"".join(rows)
