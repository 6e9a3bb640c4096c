"""Room for what a search writes."""

from pathlib import Path

import pytest

from budgets.ledger.writer import BALLAST_BYTES, LEAST_FREE_BYTES
from orchestrator.doctor import machine
from orchestrator.doctor.disk import ASSUMED, LEDGER_BYTES, Footprint, Room, disk, needs, writable

RUNS = Path("/data/runs")
EACH = Footprint(largest_bytes=1 << 20, inodes=10, measured=7)
TIERS = {"phase1 min": 16, "phase1 max": 480}
NEEDS = needs(TIERS, EACH)


def room(free: int, inodes: int | None = 10**6, *, may_write: bool = True) -> Room:
    return Room(free, 1 << 40, inodes, may_write)


def test_a_tier_takes_its_evaluations_and_the_room_that_a_run_keeps_free() -> None:
    beside = BALLAST_BYTES + LEAST_FREE_BYTES
    assert [need.name for need in NEEDS] == ["phase1 min", "phase1 max"]
    assert NEEDS[0].size_bytes == beside + 16 * ((1 << 20) + LEDGER_BYTES)
    assert NEEDS[1].inodes == 4800


def test_room_for_every_tier_is_ok_and_says_what_it_rests_on() -> None:
    found = disk(RUNS, room(1 << 34), NEEDS, EACH)
    assert found.state == "ok"
    assert "16 GiB of 1 TiB free" in found.seen
    assert "the most of 7 here" in found.seen
    assert "too much" not in found.seen
    assert "assumed" in disk(RUNS, room(1 << 34), NEEDS, ASSUMED).seen


def test_room_for_the_least_tier_is_enough_to_begin_and_the_others_are_named() -> None:
    found = disk(RUNS, room(100 << 20), NEEDS, EACH)
    assert found.state == "ok"
    assert "max takes 490 MiB: too much" in found.seen


@pytest.mark.parametrize(("free", "inodes"), [(20 << 20, None), (1 << 34, 100), (0, 0)])
def test_room_for_no_tier_is_missing_by_bytes_or_by_inodes(free: int, inodes: int | None) -> None:
    found = disk(RUNS, room(free, inodes), NEEDS, EACH)
    assert found.state == "missing"
    assert "df -h /data/runs" in found.mend


def test_a_file_system_that_cannot_be_looked_at_is_unknown() -> None:
    assert disk(RUNS, None, NEEDS, EACH).state == "unknown"
    assert writable(RUNS, RUNS, None).state == "unknown"


def test_where_nothing_can_be_written_no_run_can_begin() -> None:
    assert writable(RUNS, RUNS, room(1)).state == "ok"
    found = writable(RUNS, Path("/data"), room(1, may_write=False))
    assert (found.state, found.mend.split(",")[0]) == (
        "missing",
        "chmod u+rwx /data (as its owner)",
    )
    assert "/data/runs would be made in it" in found.seen


def test_a_file_system_that_is_mounted_to_be_read_only_wants_another_mount() -> None:
    found = writable(RUNS, RUNS, Room(1, 1, None, writable=False, read_only=True))
    assert found.state == "missing"
    assert found.mend.startswith("mount -o remount,rw /data/runs")


def test_a_file_with_the_directorys_name_is_in_the_way(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("")
    blocked = tmp_path / "runs/phase1"
    assert machine.in_the_way(blocked) == tmp_path / "runs"
    assert machine.in_the_way(tmp_path) is None
    assert machine.nearest(blocked) == tmp_path
    found = writable(blocked, tmp_path, room(1), machine.in_the_way(blocked))
    assert found.state == "missing"
    assert "is no directory" in found.seen


def test_the_room_of_a_real_directory_is_measured(tmp_path: Path) -> None:
    found = machine.room(tmp_path)
    assert found is not None
    assert 0 < found.free_bytes <= found.total_bytes
    assert found.writable
    assert machine.room(tmp_path / "none") is None
