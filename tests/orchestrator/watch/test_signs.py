"""What attempts write is read with suspicion, a little of it, and never waited for."""

import json
import os
from pathlib import Path

import pytest

from orchestrator.watch.signs import READ_BYTES, Beat, Signs, heartbeat
from orchestrator.watch.snapshot import DeviceRow, Snapshot
from tests.orchestrator.watch.conftest import Watched

NOTHING = Beat(None, None, None)


@pytest.fixture
def found(watched: Watched) -> Snapshot:
    watched.ask()
    watched.reserve(0)
    watched.reserve(1)
    return watched.snapshot(1.0)


def place(run: Path, candidate: int = 0) -> Path:
    directory = run / "eval" / f"gen_0000/cand_{candidate:04d}/seed_5"
    directory.mkdir(parents=True, exist_ok=True)
    return directory


def start(run: Path, candidate: int = 0, device: object = "cpu on here") -> Path:
    directory = place(run, candidate)
    started = {"attempt_id": "a", "pid": 1, "device": device}
    (directory / "started.json").write_text(json.dumps(started))
    return directory


def row(found: Snapshot, slot: int = 0) -> DeviceRow:
    return next(row for row in found.devices if row.slot == slot)


def beats(directory: Path, *said: object) -> None:
    with (directory / "metrics.jsonl").open("a") as file:
        file.writelines(f"{json.dumps(one)}\n" for one in said)


def test_an_attempt_says_on_which_device_it_is_and_how_far(tmp_path: Path, found: Snapshot) -> None:
    beats(start(tmp_path), {"t": 1.0, "step": 4.0, "loss": 2.5})
    own = row(Signs(tmp_path).seen(found))
    assert (own.doing, own.device) == ("running", "cpu on here")
    assert (own.step, own.loss, own.progress) == (4, 2.5, 0.4)  # the baseline took 10 steps


def test_an_attempt_that_nobody_has_taken_on_is_starting(tmp_path: Path, found: Snapshot) -> None:
    place(tmp_path)
    assert row(Signs(tmp_path).seen(found)).doing == "starting"


def test_nothing_is_said_of_a_run_whose_attempts_lie_elsewhere(
    tmp_path: Path, found: Snapshot
) -> None:
    assert Signs(tmp_path / "elsewhere").seen(found) is found


def test_idle_devices_stay_as_they_are(tmp_path: Path, watched: Watched) -> None:
    start(tmp_path)
    found = watched.snapshot()
    assert Signs(tmp_path).seen(found).devices == found.devices


def test_where_it_says_its_progress_that_is_believed(tmp_path: Path, found: Snapshot) -> None:
    beats(start(tmp_path), {"step": 4, "progress": 0.9})
    assert row(Signs(tmp_path).seen(found)).progress == 0.9


def test_more_steps_than_others_took_are_all_of_them(tmp_path: Path, found: Snapshot) -> None:
    beats(start(tmp_path), {"step": 400})
    assert row(Signs(tmp_path).seen(found)).progress == 1.0


def test_an_old_attempt_did_not_say_its_device(tmp_path: Path, found: Snapshot) -> None:
    (place(tmp_path) / "started.json").write_text('{"attempt_id": "a"}')
    own = row(Signs(tmp_path).seen(found))
    assert (own.doing, own.device) == ("running", "cpu")


@pytest.mark.parametrize("device", [5, None, ["x"], "x" * 10_000])
def test_a_device_that_is_no_short_name_does_not_spread(
    device: object, tmp_path: Path, found: Snapshot
) -> None:
    start(tmp_path, device=device)
    assert len(row(Signs(tmp_path).seen(found)).device) <= 80


def test_the_device_of_another_attempt_at_the_same_place_is_read_again(
    tmp_path: Path, watched: Watched
) -> None:
    signs = Signs(tmp_path)
    watched.ask()
    watched.reserve(0)
    start(tmp_path, device="GPU-1")
    assert row(signs.seen(watched.snapshot())).device == "GPU-1"
    watched.end(0)
    watched.reserve(1)
    start(tmp_path, 1, device="GPU-2")
    assert row(signs.seen(watched.snapshot())).device == "GPU-2"


def test_only_the_files_of_those_nearest_to_their_end_are_read(
    tmp_path: Path, watched: Watched
) -> None:
    watched.ask()
    watched.reserve(0)
    watched.at(1.0).reserve(1)
    for candidate in (0, 1):
        beats(start(tmp_path, candidate), {"step": 1})
    found = Signs(tmp_path).seen(watched.snapshot(2.0), most=1)
    assert [one.step for one in found.devices] == [1, None]


def test_the_last_that_was_said_of_each_counts(tmp_path: Path) -> None:
    beats(tmp_path, {"step": 1, "loss": 9.0}, {"step": 2}, {"t": 3.0})
    assert heartbeat(tmp_path) == Beat(2.0, 9.0, None)


def test_a_line_that_is_being_written_does_not_count(tmp_path: Path) -> None:
    beats(tmp_path, {"step": 1})
    with (tmp_path / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2')
    assert heartbeat(tmp_path).step == 1


@pytest.mark.parametrize(
    "line",
    [
        b"\xff\xfe",
        b"nonsense",
        b"[1]",
        b'{"step": "1"}',
        b'{"step": true, "loss": null}',
        b'{"loss": NaN, "step": Infinity}',
        b'{"step": 1e999}',
        b'{"progress": 7}',
        b'{"progress": -1}',
        b"[" * 100_000,
        b"",
    ],
    ids=lambda line: line[:30].decode(errors="replace"),
)
def test_nonsense_is_no_sign(line: bytes, tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_bytes(line + b"\n")
    assert heartbeat(tmp_path) == NOTHING


def test_only_the_end_of_a_long_file_is_read(tmp_path: Path) -> None:
    path = tmp_path / "metrics.jsonl"
    path.write_bytes(b'{"step": 1}\n' + READ_BYTES * b"x" + b"\n")
    assert heartbeat(tmp_path) == NOTHING
    with path.open("ab") as file:
        file.write(b'{"step": 2}\n')
    assert heartbeat(tmp_path).step == 2


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    beats(tmp_path, {"step": 1})
    (tmp_path / "other").mkdir()
    (tmp_path / "other/metrics.jsonl").symlink_to(tmp_path / "metrics.jsonl")
    assert heartbeat(tmp_path / "other") == NOTHING


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "metrics.jsonl")
    assert heartbeat(tmp_path) == NOTHING


def test_a_file_that_may_not_be_read_is_no_sign(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").mkdir()
    assert heartbeat(tmp_path) == NOTHING
