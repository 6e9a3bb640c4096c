"""What the runs directory tells."""

import os
from pathlib import Path

import pytest

from budgets.ledger.lock import LOCK, has_open, take_lock
from budgets.ledger.writer import BALLAST
from orchestrator.doctor.disk import ASSUMED
from orchestrator.doctor.runs import Holder, footprint, holder, live, newest_change, run_directories

HOST = os.uname().nodename


def make_run(root: Path, name: str, owner: str = "", changed: float = 1000.0) -> Path:
    run = root / name
    run.mkdir(parents=True)
    (run / LOCK).write_text(owner)
    os.utime(run / LOCK, (changed, changed))
    return run


def test_runs_are_found_wherever_they_lie_the_newest_first(tmp_path: Path) -> None:
    old = make_run(tmp_path, "phase1/old", changed=1000.0)
    new = make_run(tmp_path, "campaign/wide/wide_s1", changed=2000.0)
    make_run(tmp_path, "phase1/old/eval/gen_0000/cand_0000/seed_1")
    (tmp_path / "phase1/empty").mkdir()
    found = run_directories(tmp_path)
    assert found == [new, old]
    assert newest_change(found) == 2000.0


def test_a_directory_that_is_not_there_has_no_runs(tmp_path: Path) -> None:
    assert run_directories(tmp_path / "none") == []
    assert newest_change([]) is None
    assert not (tmp_path / "none").exists()


def test_the_holder_of_a_lock_is_read_from_it(tmp_path: Path) -> None:
    run = make_run(tmp_path, "phase1/a", "host vm, pid 12, since 2026-11-21T13:29:20+00:00")
    assert holder(run) == Holder(run, "vm", 12, "2026-11-21T13:29:20+00:00")
    assert holder(make_run(tmp_path, "phase1/b", "")) is None
    assert holder(tmp_path) is None


def test_a_run_in_hand_is_named_with_its_process(tmp_path: Path) -> None:
    run = make_run(tmp_path, "phase1/a")
    lock = take_lock(run)
    (found,) = live([run], HOST)
    os.close(lock)
    assert (found.item, found.state) == ("live run", "ok")
    assert f"{run}: pid {os.getpid()} on {HOST}" in found.seen
    assert live([run], HOST)[0].seen == "none of 1 here"


@pytest.mark.parametrize(
    ("held", "item", "state"),
    [
        (True, "live run", "ok"),
        (False, "live runs", "ok"),
        (None, "live runs elsewhere", "unknown"),
    ],
)
def test_a_name_in_a_lock_is_not_believed_but_looked_up(
    tmp_path: Path, held: bool | None, item: str, state: str
) -> None:
    run = make_run(tmp_path, "phase1/a", f"host {HOST}, pid 12, since now")
    (found,) = live([run], HOST, lambda pid, path: held)
    assert (found.item, found.state) == (item, state)


def test_of_another_machine_only_a_run_that_has_not_ended_may_be_live(tmp_path: Path) -> None:
    run = make_run(tmp_path, "phase1/a", "host elsewhere, pid 12, since now")
    assert live([run], HOST)[0].state == "ok"
    (run / BALLAST).write_text("")
    (found,) = live([run], HOST)
    assert found.state == "unknown"
    assert "pid 12 on elsewhere" in found.seen


def test_who_has_a_file_open_is_seen(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("")
    assert has_open(os.getpid(), path) is False
    with path.open():
        assert has_open(os.getpid(), path) is True
    assert has_open(2**22 + 1, path) is False  # beyond any pid
    assert has_open(os.getpid(), tmp_path / "none") is False


def test_what_an_evaluation_takes_is_measured_where_one_has_run(tmp_path: Path) -> None:
    run = make_run(tmp_path, "phase1/a")
    small = run / "eval/gen_0000/cand_0000/seed_1"
    large = run / "eval/gen_0000/cand_0001/seed_1/more"
    for place, size in ((small, 10), (large, 100_000)):
        place.mkdir(parents=True)
        (place / "log").write_bytes(os.urandom(size))
    each = footprint([run])
    assert each.measured == 2
    assert 100_000 <= each.largest_bytes <= 200_000
    assert each.inodes == 4  # the file, the folder it is in, its seed's, its candidate's


def test_where_nothing_has_run_it_is_assumed(tmp_path: Path) -> None:
    assert footprint([]) is ASSUMED
    assert footprint([make_run(tmp_path, "phase1/a")]) is ASSUMED
