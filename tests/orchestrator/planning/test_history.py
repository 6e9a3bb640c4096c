"""What runs took is kept beside them, whatever becomes of the file."""

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from budgets.terms import Devices
from orchestrator.cli.history import to_markdown
from orchestrator.execution.engine import Engine
from orchestrator.look.text import BESIDE, RECALIBRATE
from orchestrator.planning.history import HISTORY, append, read_history, rebuilt
from orchestrator.records.recorded import Result

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.planning.conftest import MakeEntry

DEVICES = Devices(count=2, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)

RunSearch = Callable[..., Result]


def lines(root: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in (root / HISTORY).read_bytes().splitlines()]


def test_a_run_and_its_calibration_leave_a_line_each(run_search: RunSearch, tmp_path: Path) -> None:
    result = run_search(tmp_path, settings={"noise": 0.01}, engine=Engine("inline", workers=2))
    calibration, search = read_history(tmp_path).entries
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
    found = read_history(tmp_path).entries
    assert [(e.run_id, e.evaluations) for e in found] == [("other", 16), ("earlier", 16)]


def test_torn_and_foreign_lines_are_counted_and_left_out(
    tmp_path: Path, make_entry: "MakeEntry"
) -> None:
    append(tmp_path, [make_entry()])
    with (tmp_path / HISTORY).open("ab") as file:
        file.write(b'{"run_id": "foreign"}\n\xff\xfe\n\n{"version":1,"run_id":"torn')
    append(tmp_path, [make_entry(run_id="after", genesis="a" * 32)])
    found = read_history(tmp_path)
    assert [entry.run_id for entry in found.entries] == ["earlier", "after"]
    assert found.left_out == 3


def test_an_evaluation_of_less_than_no_work_is_nobodys(
    tmp_path: Path, make_entry: "MakeEntry"
) -> None:
    append(tmp_path, [make_entry()])
    forged = lines(tmp_path)[0]
    forged["evaluation"]["train_flops"] = -1e12
    (tmp_path / HISTORY).write_bytes(orjson.dumps(forged) + b"\n")
    assert read_history(tmp_path).left_out == 1


def test_a_field_of_a_later_version_is_passed_over(tmp_path: Path, make_entry: "MakeEntry") -> None:
    append(tmp_path, [make_entry()])
    later = {**lines(tmp_path)[0], "version": 2, "colour": "blue"}
    (tmp_path / HISTORY).write_bytes(orjson.dumps(later) + b"\n")
    assert len(read_history(tmp_path).entries) == 1


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
    assert (len(found.entries), found.left_out) == (160, 0)


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

    monkeypatch.setattr("orchestrator.planning.history.append", full)
    said: list[str] = []
    result = run_search(tmp_path, assumed_seconds=1.0, say=said.append)
    assert result.ruling.decision == "done"
    assert any("No space left on device" in text for text in said)


def test_deleted_it_is_made_again_from_the_ledgers(run_search: RunSearch, tmp_path: Path) -> None:
    run_search(tmp_path, settings={"noise": 0.01})
    before = lines(tmp_path)
    (tmp_path / HISTORY).unlink()
    found = rebuilt(tmp_path, read_history(tmp_path))
    assert not (tmp_path / HISTORY).exists()
    append(tmp_path, found.missing)
    assert lines(tmp_path) == before
    assert rebuilt(tmp_path, read_history(tmp_path)).missing == ()


def test_a_damaged_ledger_is_named_and_the_others_are_read(
    run_search: RunSearch, tmp_path: Path
) -> None:
    result = run_search(tmp_path, settings={"noise": 0.01})
    ledger = result.directory / "ledger.jsonl"
    ledger.write_bytes(ledger.read_bytes().replace(b'"seq":3', b'"seq":9', 1))
    found = rebuilt(tmp_path, read_history(tmp_path / "nowhere"))
    assert [entry.phase for entry in found.missing] == ["calibration"]
    assert len(found.unreadable) == 1
    assert "min-sphere-s1" in found.unreadable[0]


# The command


def test_looking_writes_nothing_and_says_what_is_missing(
    run_search: RunSearch, tmp_path: Path, command: "Command"
) -> None:
    root = tmp_path / "artifacts/cmaes"
    run_search(root, settings={"noise": 0.01})
    (root / HISTORY).unlink()
    answer = command("history")
    assert answer.code == 0
    assert "history --write adds them" in answer.out
    assert "min-sphere-s1" in answer.out
    assert not (root / HISTORY).exists()
    answer = command("history", "--write")
    assert "Added from their ledgers" in answer.out
    assert len(lines(root)) == 2
    found = orjson.loads(command("history", "--json").out)
    assert [run["run_id"] for run in found["runs"]][-1] == "min-sphere-s1"
    assert found["missing"] == found["unreadable"] == []


def test_nothing_has_ended_where_nothing_was_run(tmp_path: Path, command: "Command") -> None:
    assert "No run has ended here yet." in command("history").out
    assert not (tmp_path / "artifacts").exists()


@pytest.mark.parametrize(
    ("device_hours", "said"),
    [((1.0, 1.0), BESIDE), ((1.0, 2.5), RECALIBRATE), ((None, None), RECALIBRATE)],
)
def test_another_calibration_is_advised_where_evaluations_took_another_time_than_estimated(
    make_entry: "MakeEntry", device_hours: tuple[float | None, float | None], said: str
) -> None:
    estimated, actual = device_hours
    hours = {"estimated_device_hours": estimated, "actual_device_hours": actual}
    text = to_markdown([make_entry(accuracy=40.0, **hours)])
    assert text.endswith(f"*: not within 85 to 115%. {said}")
