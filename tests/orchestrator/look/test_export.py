"""A run's evaluations leave as a table, as CSV and as JSON."""

import csv
from pathlib import Path
from typing import TYPE_CHECKING

import orjson

from orchestrator.look.reports import COLUMNS, export_rows, to_csv
from tests.ledgers import cut, state_of

if TYPE_CHECKING:
    from tests.conftest import Command


def test_a_run_without_a_settlement_is_a_table_without_rows(run: Path) -> None:
    cut(run, 3)
    rows = export_rows(state_of(run))
    assert to_csv(rows).splitlines() == [",".join(COLUMNS)]


def test_a_table_is_the_same_as_csv_and_as_json(run: Path, command: "Command") -> None:
    printed, said = command("export", "table", run.name), command("export", "table", "--json")
    rows = list(csv.DictReader(printed.out.splitlines()))
    for row, same in zip(rows, orjson.loads(said.out), strict=True):
        assert set(same) <= set(row)
        assert row["seed"] == str(same["seed"])
