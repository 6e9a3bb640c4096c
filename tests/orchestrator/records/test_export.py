"""A run's evaluations leave as a table, as CSV and as JSON."""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from orchestrator.records.tables import COLUMNS, columns_of, export_rows, to_csv
from tests.ledgers import state_of

if TYPE_CHECKING:
    from tests.conftest import Command


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
