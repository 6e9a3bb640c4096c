"""`head.json` has seen every record: a ledger behind it is an older copy, and is left alone."""

import os
import shlex
import stat
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from budgets.events import Event, Overridden, Planned, Reserved, Settled
from budgets.ledger.chain import LEDGER, LedgerCorruptError, read, way_to_keep
from budgets.ledger.head import HEAD, LedgerRolledBackError
from budgets.ledger.lock import LOCK
from budgets.ledger.writer import BALLAST, LedgerChangedError, LedgerStorageError

if TYPE_CHECKING:
    from tests.budgets.conftest import Disk, MakePlan

NOTE = Overridden(rule="crash_rate", generation=0, reason="so")


def files(directory: Path) -> dict[str, bytes]:
    return {p.name: p.read_bytes() for p in directory.iterdir() if p.name != LOCK}


def cut(path: Path, records: int, torn_bytes: int = 0) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:records]) + lines[records][:torn_bytes])


def test_every_append_moves_the_head(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        for number, event in enumerate(whole):
            ledger.append(ledger.seal(event))
            mark = orjson.loads(ledger.path.with_name(HEAD).read_bytes())
            assert mark == {"seq": number, "h": ledger.head}


@pytest.mark.parametrize("lost", [1, 2, 7, 8])
def test_an_older_copy_is_refused_byte_for_byte_as_it_is(
    disk: "Disk", whole: list[Event], lost: int
) -> None:
    path = disk.write(whole[:8])
    cut(path, 8 - lost)
    before = files(path.parent)
    with pytest.raises(LedgerRolledBackError) as refusal:
        disk.open()
    assert f"rolled back by {lost} records" in str(refusal.value)
    run = path.parent
    command = f"python -m orchestrator verify {run} --salvage {run}.salvaged"
    if lost == 8:
        command = f"mv {run} {run}.damaged, then the same command again"
    assert str(refusal.value).endswith(command)
    assert "Nothing was changed" in str(refusal.value)
    assert files(path.parent) == before
    assert isinstance(refusal.value, LedgerCorruptError)  # exit 6
    with pytest.raises(LedgerRolledBackError):  # not LedgerLockedError: the lock was given back
        disk.open()


@pytest.mark.parametrize("records", [0, 3])
def test_the_way_on_can_be_pasted_whatever_the_directory_is_called(records: int) -> None:
    way = way_to_keep(Path("/my runs/it's") / LEDGER, records)
    words = shlex.split(way.partition("with: ")[2].removesuffix(", then the same command again"))
    if records:
        assert words[-4:] == ["verify", "/my runs/it's", "--salvage", "/my runs/it's.salvaged"]
    else:
        assert words == ["mv", "/my runs/it's", "/my runs/it's.damaged"]


def test_an_older_copy_with_a_torn_end_is_refused_too(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write(whole[:8])
    cut(path, 5, torn_bytes=30)
    before = files(path.parent)
    with pytest.raises(match="rolled back by 3 records"):
        disk.open()
    assert files(path.parent) == before


def test_another_story_under_the_same_head_is_refused(
    disk: "Disk", whole: list[Event], make_plan: "MakePlan"
) -> None:
    path = disk.write(whole[:3])
    other = disk.write([Planned(plan=make_plan(run_id="other")), *whole[1:6]], "other")
    path.write_bytes(other.read_bytes())
    before = files(path.parent)
    with pytest.raises(match="rolled back by 3 records"):
        disk.open()
    assert files(path.parent) == before


@pytest.mark.parametrize("torn_bytes", [1, 40, 130])
def test_a_torn_last_record_that_the_head_has_seen_and_only_it_said_is_refused(
    disk: "Disk", whole: list[Event], torn_bytes: int
) -> None:
    path = disk.write([*whole[:7], NOTE])
    cut(path, 7, torn_bytes)
    before = files(path.parent)
    with pytest.raises(LedgerRolledBackError, match="rolled back by 1 records"):
        disk.open()
    assert files(path.parent) == before


@pytest.mark.parametrize("torn_bytes", [120, 150])
def test_a_torn_last_record_that_the_head_has_seen_is_set_aside_where_it_is_known_without_it(
    disk: "Disk", whole: list[Event], torn_bytes: int
) -> None:
    path = disk.write(whole[:8])
    assert isinstance(whole[7], Reserved | Settled)
    start = read(path).records[7].offset
    cut(path, 7, torn_bytes)
    with disk.open() as ledger:
        assert len(disk.found) == 7
        ledger.append(ledger.seal(whole[7]))
    assert path.with_name(f"ledger.torn-{start}").stat().st_size == torn_bytes
    assert [r.event for r in read(path).records] == whole[:8]
    disk.open().close()  # and its head is the new one


def test_a_ledger_ahead_of_its_head_goes_on(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write(whole[:3])
    head = path.with_name(HEAD).read_bytes()
    disk.write(whole[3:5])
    path.with_name(HEAD).write_bytes(head)
    disk.write(whole[5:6])
    assert len(read(path).records) == 6


@pytest.mark.parametrize(
    "content", [None, b"", b"{", b"[]", b"7", b'{"seq":"x","h":""}', b'{"h":"a"}', b"\xff"]
)
def test_a_head_that_is_missing_or_damaged_holds_nothing_up(
    disk: "Disk", whole: list[Event], content: bytes | None
) -> None:
    path = disk.write(whole[:3])
    head = path.with_name(HEAD)
    head.unlink() if content is None else head.write_bytes(content)
    with disk.open() as ledger:
        ledger.append(ledger.seal(whole[3]))
    assert orjson.loads(head.read_bytes())["seq"] == 3


def test_a_head_that_cannot_be_written_stops_nothing(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        ledger.path.with_name(HEAD).mkdir()
        for event in whole[:3]:
            ledger.append(ledger.seal(event))
    assert len(read(ledger.path).records) == 3
    assert not list(ledger.path.parent.glob(".*tmp"))


@pytest.mark.parametrize("how", ["append", "cut", "replace", "longer"])
def test_what_somebody_else_did_to_the_file_is_left_as_it_is(
    disk: "Disk", whole: list[Event], how: str
) -> None:
    with disk.open() as ledger:
        for event in whole[:3]:
            ledger.append(ledger.seal(event))
        data = ledger.path.read_bytes()
        if how == "append":
            ledger.path.write_bytes(data + b"theirs")
        elif how == "cut":
            os.truncate(ledger.path, len(data) - 7)
        else:
            other = ledger.path.with_name("other")
            other.write_bytes(data if how == "replace" else data + b"theirs")
            other.rename(ledger.path)
        before = files(ledger.path.parent)
        with pytest.raises(LedgerChangedError, match="changed by somebody else") as refusal:
            ledger.append(ledger.seal(whole[3]))
        assert f"verify {ledger.path.parent}" in str(refusal.value)
        assert isinstance(refusal.value, LedgerCorruptError)  # exit 6
        with pytest.raises(LedgerStorageError):  # not a second time either
            ledger.seal(whole[3])
        assert files(ledger.path.parent) == before


def test_what_a_ledger_writes_is_its_owners_alone(disk: "Disk", whole: list[Event]) -> None:
    umask = os.umask(0)
    try:
        path = disk.write(whole[:3])
        path.write_bytes(path.read_bytes() + b"torn")
        disk.write([])
    finally:
        os.umask(umask)
    modes = {p.name: stat.S_IMODE(p.stat().st_mode) for p in path.parent.iterdir()}
    torn = next(name for name in modes if name.startswith("ledger.torn-"))
    assert modes == dict.fromkeys((LEDGER, HEAD, LOCK, BALLAST, torn), 0o600)
