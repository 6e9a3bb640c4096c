"""A run's evaluations leave as a table, in every format the same one."""

import csv
import io
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.events import Settled
from budgets.state import RunState
from orchestrator.records import tables as exports
from orchestrator.records.tables import (
    COLUMNS,
    columns_of,
    export,
    export_rows,
)
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


@pytest.mark.parametrize("of", ["state", "confirmed"])
def test_every_format_holds_the_same_rows(
    of: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    state: RunState = request.getfixturevalue(of)
    parquet = pytest.importorskip("pyarrow.parquet")
    some = export_rows(state)
    rows = [{name: row.get(name) for name in columns_of(some)} for row in some]
    from_json = orjson.loads(export(state, "json", tmp_path / "table.json"))
    from_csv = list(csv.DictReader(io.StringIO(export(state, "csv", None).decode())))
    export(state, "parquet", tmp_path / "table.parquet")
    from_parquet = parquet.read_table(tmp_path / "table.parquet").to_pylist()

    assert from_json == rows
    assert orjson.loads((tmp_path / "table.json").read_bytes()) == rows
    assert from_csv == [as_text(row) for row in rows]
    assert from_parquet == rows
    assert list(from_parquet[0]) == list(from_csv[0]) == list(rows[0])


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
    state = with_settlement(state, cause=evil, device=evil)
    (row, *_) = csv.DictReader(io.StringIO(export(state, "csv", None).decode(), newline=""))
    assert row["cause"] == row["device"] == f"'{evil}"
    assert orjson.loads(export(state, "json", None))[0]["cause"] == evil


def test_a_run_without_a_settlement_is_a_table_without_rows(
    run: Path, cut: Callable[..., None], tmp_path: Path
) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    cut(run, 3)
    state = state_of(run)
    assert export(state, "csv", None).decode().splitlines() == [",".join(COLUMNS)]
    assert orjson.loads(export(state, "json", None)) == []
    export(state, "parquet", tmp_path / "table")
    assert parquet.read_table(tmp_path / "table").num_rows == 0


# By the command line


@pytest.mark.parametrize("kind", ["csv", "json"])
def test_a_table_is_printed_or_written_and_is_the_same(
    run: Path, command: "Command", tmp_path: Path, kind: str
) -> None:
    printed = command("export", "table", run.name, "--format", kind)
    written = command("export", "table", "--format", kind, "--out", "table")
    data = (tmp_path / "table").read_bytes()
    assert (printed.code, printed.out.encode()) == (0, data)
    assert (written.code, written.out) == (0, f"table: {len(data)} bytes\n")


def test_parquet_without_its_library_says_how_to_get_it(
    state: RunState, monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(name: str) -> None:
        raise ImportError(name)

    monkeypatch.setattr(exports, "import_module", missing)
    with pytest.raises(ValueError, match=r"pip install 'cmaes-orchestrator\[parquet\]'"):
        export(state, "parquet", None)
