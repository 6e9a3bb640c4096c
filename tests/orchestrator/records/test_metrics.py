"""`metrics.jsonl`: a line for each evaluation, whatever happens to the process."""

import errno
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.events import Reserved, Settled, Status
from budgets.ledger import HEAD, LEDGER, read
from orchestrator.records import tables as metrics
from orchestrator.records.runs import Result, load_state
from tests.ledgers import events_of


def lines_of(directory: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (directory / metrics.METRICS).read_bytes().splitlines()]


def test_a_line_says_what_the_evaluation_took_and_gave(finished_run: Path) -> None:
    state = load_state(finished_run)
    lines = lines_of(finished_run)
    assert len(lines) == 16
    assert [line["evaluations"] for line in lines] == list(range(1, 17))
    for line in lines:
        result = state.generation(line["generation"]).result(line["candidate"], line["seed"])
        assert result is not None
        assert (line["status"], line["score"]) == (result.status, result.score)
        assert line["seconds"] == result.seconds
        if result.steps:
            assert line["step_time_s"] == result.train_seconds / result.steps


def test_a_line_says_where_the_run_stood_in_time(finished_run: Path) -> None:
    line, lines = lines_of(finished_run)[-1], lines_of(finished_run)
    assert 0 < line["optimization/actual_hours"] <= line["training/elapsed_hours"]
    assert lines[0]["training/remaining_hours"] > line["training/remaining_hours"] == 0


def test_what_was_written_as_it_happened_is_what_the_ledger_says(confirmed_run: Path) -> None:
    written = (confirmed_run / metrics.METRICS).read_bytes()
    assert written == b"".join(metrics.lines(read(confirmed_run / LEDGER).records))


@pytest.mark.parametrize("keep", [0, 1, 500, -1, -20])
def test_a_file_that_a_dying_process_left_short_is_made_whole(run: Path, keep: int) -> None:
    path = run / metrics.METRICS
    whole = path.read_bytes()
    path.write_bytes(whole[:keep])
    metrics.complete_metrics(run, load_state(run))
    assert path.read_bytes() == whole


def test_a_file_that_cannot_be_written_stops_no_run(
    run_search: Callable[..., Result], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each append fails; at the end all lines are there, from the ledger."""

    opened = os.open

    def full(path: Any, *arguments: Any) -> int:
        if Path(path).name == metrics.METRICS:
            raise OSError(errno.ENOSPC, "no space left on device")
        return opened(path, *arguments)

    monkeypatch.setattr("os.open", full)
    result = run_search(tmp_path, assumed_seconds=1.0)
    assert result.ruling.decision == "done"
    assert len(lines_of(result.directory)) == 16


def test_an_attempt_that_was_lost_has_no_line_and_is_made_up_for(
    run_search: Callable[..., Result], tmp_path: Path
) -> None:
    """The run is taken up where its process died, with all lines of another life in the file."""
    result = run_search(tmp_path, assumed_seconds=1.0)
    kept = 0
    records = read(result.directory / LEDGER).records
    for record in records:
        kept = record.end
        if isinstance(record.event, Reserved) and record.seq > 20:
            break
    (result.directory / LEDGER).write_bytes((result.directory / LEDGER).read_bytes()[:kept])
    (result.directory / HEAD).unlink()
    shutil.rmtree(result.directory / "eval")
    run_search(tmp_path, assumed_seconds=1.0)
    events = events_of(result.directory)
    lost = [e for e in events if isinstance(e, Settled) and e.status is Status.LOST]
    assert len(lost) == 1
    assert len(lines_of(result.directory)) == 16
    written = (result.directory / metrics.METRICS).read_bytes()
    assert written == b"".join(metrics.lines(read(result.directory / LEDGER).records))
