"""What runs took is kept beside them, whatever becomes of the file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.plan import Devices
from orchestrator.execution.engine import Engine
from orchestrator.plan.history import HISTORY, append, read_history
from orchestrator.records.recorded import Result

if TYPE_CHECKING:
    from tests.orchestrator.plan.conftest import MakeEntry

DEVICES = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)

RunSearch = Callable[..., Result]


def lines(root: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (root / HISTORY).read_bytes().splitlines()]


def test_a_run_and_its_calibration_leave_a_line_each(run_search: RunSearch, tmp_path: Path) -> None:
    result = run_search(tmp_path, settings={"noise": 0.01}, engine=Engine("inline", workers=2))
    calibration, search = read_history(tmp_path)
    assert (calibration.phase, calibration.evaluations, calibration.accuracy) == (
        "calibration",
        8,
        None,
    )
    assert (search.run_id, search.tier, search.decision) == ("min-sphere-s1", "min", "done")
    assert (search.evaluations, search.evaluations_planned) == (16, 16)
    assert (search.head, search.genesis) == (result.state.head, result.state.genesis)
    assert search.fingerprint == result.state.plan.objective_fingerprint
    assert search.settings["noise"] == 0.01
    assert (search.device_kind, search.devices) == ("cpu", 2)
    assert search.evaluation is not None
    assert search.evaluation.samples == 16
    assert search.evaluation.seconds > 0
    assert search.actual_device_hours is not None
    assert search.actual_device_hours > 0


def test_the_estimate_goes_by_the_names_that_trackers_know(
    run_search: RunSearch, tmp_path: Path
) -> None:
    run_search(tmp_path, settings={"noise": 0.01})
    found = lines(tmp_path)[-1]
    estimated, actual = (found[f"optimization/{name}_hours"] for name in ("estimated", "actual"))
    assert found["optimization/time_accuracy"] == pytest.approx(100 * estimated / actual)


def test_a_run_that_is_looked_at_again_leaves_no_second_line(
    run_search: RunSearch, tmp_path: Path
) -> None:
    for _ in range(2):
        run_search(tmp_path, assumed_seconds=1.0)
    assert len(lines(tmp_path)) == 1


def test_the_last_line_of_a_run_counts(tmp_path: Path, make_entry: "MakeEntry") -> None:
    begun = make_entry(decision="continue", evaluations=3, head="1" * 32)
    other = make_entry(run_id="other", genesis="o" * 32)
    append(tmp_path, [begun, other])
    append(tmp_path, [make_entry(head="2" * 32)])
    found = read_history(tmp_path)
    assert [(e.run_id, e.evaluations) for e in found] == [("other", 16), ("earlier", 16)]


def test_torn_and_foreign_lines_are_left_out(tmp_path: Path, make_entry: "MakeEntry") -> None:
    append(tmp_path, [make_entry()])
    with (tmp_path / HISTORY).open("ab") as file:
        file.write(b'{"run_id": "foreign"}\n\xff\xfe\n\n{"version":1,"run_id":"torn')
    append(tmp_path, [make_entry(run_id="after", genesis="a" * 32)])
    found = read_history(tmp_path)
    assert [entry.run_id for entry in found] == ["earlier", "after"]


def test_an_evaluation_of_less_than_no_work_is_nobodys(
    tmp_path: Path, make_entry: "MakeEntry"
) -> None:
    append(tmp_path, [make_entry()])
    forged = lines(tmp_path)[0]
    forged["evaluation"]["train_flops"] = -1e12
    (tmp_path / HISTORY).write_bytes(orjson.dumps(forged) + b"\n")
    assert read_history(tmp_path) == ()


def test_a_field_of_a_later_version_is_passed_over(tmp_path: Path, make_entry: "MakeEntry") -> None:
    append(tmp_path, [make_entry()])
    later = {**lines(tmp_path)[0], "version": 2, "colour": "blue"}
    (tmp_path / HISTORY).write_bytes(orjson.dumps(later) + b"\n")
    assert len(read_history(tmp_path)) == 1


def test_many_may_append_at_once(tmp_path: Path, make_entry: "MakeEntry") -> None:
    def some(writer: int) -> None:
        for number in range(20):
            append(tmp_path, [make_entry(genesis=f"{writer:016d}{number:016d}")])

    writers = [threading.Thread(target=some, args=(n,)) for n in range(8)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    found = read_history(tmp_path)
    assert len(found) == 160


@pytest.mark.parametrize("obstacle", ["directory", "link"])
def test_where_no_line_can_be_written_the_run_says_so_and_ends_well(
    run_search: RunSearch, tmp_path: Path, obstacle: str
) -> None:
    if obstacle == "directory":
        (tmp_path / HISTORY).mkdir()
    else:
        (tmp_path / HISTORY).symlink_to(tmp_path / "elsewhere")
    said: list[str] = []
    result = run_search(tmp_path, assumed_seconds=1.0, say=said.append)
    assert result.ruling.decision == "done"
    assert any("history.jsonl does not have this run" in text for text in said)
    assert not (tmp_path / "elsewhere").exists()


def test_a_full_disk_costs_no_run(
    run_search: RunSearch, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("orchestrator.plan.history.append", full)
    said: list[str] = []
    result = run_search(tmp_path, assumed_seconds=1.0, say=said.append)
    assert result.ruling.decision == "done"
    assert any("No space left on device" in text for text in said)
