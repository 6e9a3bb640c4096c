"""A run's evaluations leave as a table, as CSV and as JSON."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from budgets.events import Settled
from budgets.state import RunState
from orchestrator.records.tables import COLUMNS, columns_of, export_rows, to_csv
from tests.ledgers import state_of

if TYPE_CHECKING:
    from tests.conftest import Command


@pytest.fixture
def state(run: Path) -> RunState:
    return state_of(run)


@pytest.fixture
def confirmed(confirmed_run: Path) -> RunState:
    """A search whose finds were compared."""
    return state_of(confirmed_run)


def as_text(row: dict[str, Any]) -> dict[str, str]:
    """What a CSV file holds of a row."""
    return {name: "" if value is None else str(value) for name, value in row.items()}


def test_a_row_says_place_result_cost_and_knobs_in_their_units(state: RunState) -> None:
    rows = export_rows(state)
    number, result = next(
        (n, r) for n, r in enumerate(state.generations[0].results()) if r.score is not None
    )
    assert len(rows) == 16
    assert [(r["generation"], r["candidate"]) for r in rows] == [
        (g, c) for g in range(2) for c in range(8)
    ]
    row = rows[number]
    assert row["score"] == result.score
    assert row["charged_ms"] == result.charged_ms
    assert row["status"] == "ok"
    point = state.generations[0].points[number]
    assert [row[f"knob.x{n}"] for n in range(10)] == pytest.approx([2 * u - 1 for u in point])
    failed = next(row for row in rows if row["status"] != "ok")
    assert failed["score"] is None
    assert failed["cause"]


def test_panels_come_after_the_generations_with_their_arms_and_the_knobs_of_those(
    confirmed: RunState,
) -> None:
    rows = export_rows(confirmed)
    assert [row["comparison"] for row in rows] == (
        [""] * 8 + ["reference"] * 5 + ["finalists"] * 9 + ["winner"] * 2 + ["long_run"] * 2
    )
    assert {row["configuration"] for row in rows[:8]} == {""}
    assert {row["configuration"] for row in rows[8:13]} == {"baseline"}
    assert [row["configuration"] for row in rows[-2:]] == ["baseline", rows[-3]["configuration"]]
    assert {row["knob.x0"] for row in rows[8:13]} == {0.0}
    for batch in confirmed.batches():
        for candidate, point in enumerate(batch.points):
            found = [
                row["knob.x0"]
                for row in rows
                if (row["comparison"] or None, row["generation"], row["candidate"])
                == (batch.comparison, batch.number, candidate)
            ]
            assert found == [pytest.approx(2 * point[0] - 1)] * len(batch.seeds[candidate])


def csv_of(state: RunState) -> list[dict[str, str]]:
    rows = export_rows(state)
    return list(csv.DictReader(io.StringIO(to_csv(rows, columns_of(rows)), newline="")))


@pytest.mark.parametrize("of", ["state", "confirmed"])
def test_csv_holds_the_rows(of: str, request: pytest.FixtureRequest) -> None:
    state: RunState = request.getfixturevalue(of)
    some = export_rows(state)
    rows = [{name: row.get(name) for name in columns_of(some)} for row in some]
    assert csv_of(state) == [as_text(row) for row in rows]


def with_settlement(state: RunState, **fields: Any) -> RunState:
    """The run, its first settlement saying something else."""
    generation = state.completed[0]
    key = next(iter(generation.attempts))
    (attempt,) = generation.attempts[key]
    assert isinstance(attempt.settled, Settled)
    generation.attempts[key] = (attempt._replace(settled=replace(attempt.settled, **fields)),)
    return state


@pytest.mark.parametrize("start", ["=", "+", "-", "@"])
def test_text_that_a_spreadsheet_would_run_is_inert(state: RunState, start: str) -> None:
    evil = f'{start}cmd|" /C calc"!A0'
    row = csv_of(with_settlement(state, cause=evil, device=evil))[0]
    assert row["cause"] == row["device"] == f"'{evil}"


def test_a_run_without_a_settlement_is_a_table_without_rows(
    run: Path, cut: Callable[..., None]
) -> None:
    cut(run, 3)
    rows = export_rows(state_of(run))
    assert to_csv(rows, columns_of(rows)).splitlines() == [",".join(COLUMNS)]


@pytest.mark.parametrize(("kind", "more"), [("csv", ()), ("json", ("--json",))])
def test_a_table_is_printed_or_written_and_is_the_same(
    run: Path, command: "Command", tmp_path: Path, kind: str, more: tuple[str, ...]
) -> None:
    printed = command("export", "table", run.name, *more)
    written = command("export", "table", "--out", f"table.{kind}")
    data = (tmp_path / f"table.{kind}").read_bytes()
    assert (printed.code, printed.out.encode()) == (0, data)
    assert (written.code, written.out) == (0, f"table.{kind}: {len(data)} bytes\n")
