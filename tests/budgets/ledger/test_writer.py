"""The file: what it gives back, what it mends, what it refuses and where."""

import hashlib
import math
import os
import struct
from collections.abc import Callable, Iterator
from dataclasses import FrozenInstanceError
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from budgets import events
from budgets.events import Event, Fired, Opened, Overridden, Planned, Settled, Status
from budgets.fold import fold
from budgets.ledger import storage
from budgets.ledger.chain import LEDGER, LedgerCorruptError, Record, RecordCorruptError, read
from budgets.ledger.head import HEAD, records_lost
from budgets.ledger.lock import LOCK, LedgerLockedError
from budgets.ledger.storage import write_aside
from budgets.ledger.writer import Clock, Ledger, LedgerChangedError, LedgerStorageError
from tests.ledgers import sealed

if TYPE_CHECKING:
    from tests.budgets.conftest import Disk, MakePlan


AT = "2030-01-01T00:00:00.000+00:00"


def note(reason: str = "so") -> Overridden:
    return Overridden(rule="crash_rate", generation=0, reason=reason)


def append(ledger: Ledger, event: Event) -> None:
    ledger.append(ledger.seal(event))


def planned(plan: Any, **fields: Any) -> bytes:
    event = {**events.fields(Planned(plan=plan)), **fields}
    return sealed([{"seq": 0, "at": AT, "elapsed_ms": 0, "event": event}])


def test_what_was_appended_is_read_back_event_for_event(disk: "Disk", whole: list[Event]) -> None:
    records = read(disk.write(whole)).records
    assert [record.event for record in records] == whole
    assert [record.seq for record in records] == list(range(len(whole)))
    assert {record.event.kind for record in records} == {
        "planned",
        "opened",
        "generation_asked",
        "reserved",
        "settled",
        "generation_told",
        "fired",
        "overridden",
        "concluded",
    }


def test_records_lie_end_to_end_and_carry_both_clocks(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write(whole[:3])
    data = path.read_bytes()
    records = read(path).records
    assert [r.elapsed_ms for r in records] == [2, 4, 6]
    assert records[1].at == "2030-01-01T00:16:40.004+00:00"
    assert records[-1].end == len(data)
    assert b"".join(data[r.offset : r.end] for r in records) == data


def test_elapsed_time_restarts_with_each_session(disk: "Disk", whole: list[Event]) -> None:
    disk.write(whole[:2])
    disk.time.turn(3600.0)
    with disk.open() as ledger:
        disk.time.turn(1.5)
        append(ledger, note())
    assert [r.elapsed_ms for r in read(ledger.path).records] == [2, 4, 1500]


def test_a_second_session_continues_the_chain(disk: "Disk", whole: list[Event]) -> None:
    disk.write(whole[:4])
    path = disk.write(whole[4:])
    assert [record.event for record in read(path).records] == whole


def test_a_run_directory_without_a_ledger_has_nothing_to_read(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / LEDGER)


def test_an_begun_ledger_is_empty_and_can_begin(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write([])
    assert read(path).records == ()
    with disk.open() as ledger:
        assert ledger.head == ""
        append(ledger, whole[0])
        assert ledger.head == read(ledger.path).records[0].digest
    assert len(read(path).records) == 1


def test_a_flipped_bit_anywhere_is_refused_with_its_record_and_offset(
    disk: "Disk", whole: list[Event]
) -> None:
    path = disk.write(whole[:4])
    data = path.read_bytes()
    records = read(path).records
    for record in records:
        for place in range(record.offset, record.end):
            damaged = bytearray(data)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            if place == len(data) - 1:
                assert read(path).records == records
                continue
            with pytest.raises(RecordCorruptError) as refusal:
                read(path)
            assert (refusal.value.record, refusal.value.offset) == (record.seq, record.offset)


def lines(data: bytes) -> list[bytes]:
    return data.splitlines(keepends=True)


def without(data: bytes, n: int) -> bytes:
    return b"".join(line for k, line in enumerate(lines(data)) if k != n)


def swapped(data: bytes, n: int) -> bytes:
    kept = lines(data)
    kept[n : n + 2] = kept[n + 1], kept[n]
    return b"".join(kept)


def inserted(data: bytes, n: int, line: bytes) -> bytes:
    kept = lines(data)
    return b"".join([*kept[:n], line, *kept[n:]])


def doubled(data: bytes, n: int) -> bytes:
    return inserted(data, n, lines(data)[n - 1])


def blank(data: bytes, n: int) -> bytes:
    return inserted(data, n, b"\n")


def foreign_line(data: bytes, n: int) -> bytes:
    return inserted(data, n, sealed([{"seq": n, "at": "", "elapsed_ms": 0, "event": {}}]))


def edited(data: bytes, n: int) -> bytes:
    kept = lines(data)
    kept[n] = kept[n].replace(b'"generation":0', b'"generation":1').replace(b'"pid":11', b'"pid":1')
    kept[n] = kept[n].replace(b'"run_id":"whole"', b'"run_id":"other"')
    return b"".join(kept)


def with_crlf(data: bytes, n: int) -> bytes:
    kept = lines(data)
    kept[n] = kept[n][:-1] + b"\r\n"
    return b"".join(kept)


def with_bom(data: bytes, n: int) -> bytes:
    kept = lines(data)
    kept[n] = b"\xef\xbb\xbf" + kept[n]
    return b"".join(kept)


@pytest.mark.parametrize("n", [0, 1, 3, 5])
@pytest.mark.parametrize(
    "damage",
    [without, swapped, doubled, blank, foreign_line, edited, with_crlf, with_bom],
    ids=lambda damage: damage.__name__,
)
def test_a_line_that_is_not_what_was_written_is_refused_where_it_stands(
    disk: "Disk", whole: list[Event], damage: Callable[[bytes, int], bytes], n: int
) -> None:
    if damage is doubled and n == 0:
        n = 1
    path = disk.write(whole[:8])
    data, offset = path.read_bytes(), read(path).records[n].offset
    damaged = damage(data, n)
    assert damaged != data
    path.write_bytes(damaged)
    with pytest.raises(RecordCorruptError, match=f"record {n} at byte {offset}: ") as refusal:
        disk.open()
    assert (refusal.value.record, refusal.value.offset) == (n, offset)
    assert path.read_bytes() == damaged
    with pytest.raises(LedgerCorruptError):  # not LedgerLockedError: the refusal freed the lock
        disk.open()


def test_a_line_of_another_run_does_not_fit_in(
    disk: "Disk", whole: list[Event], make_plan: "MakePlan"
) -> None:
    path = disk.write(whole)
    other = disk.write([Planned(plan=make_plan(run_id="other")), *whole[1:]], "other")
    theirs = lines(other.read_bytes())
    assert len(read(other).records) == len(whole)
    for n in range(1, len(whole)):
        mine = lines(path.read_bytes())
        (path.parent / "spliced").write_bytes(b"".join([*mine[:n], theirs[n], *mine[n + 1 :]]))
        with pytest.raises(RecordCorruptError, match="hash does not follow") as refusal:
            read(path.parent / "spliced")
        assert refusal.value.record == n


def test_a_tail_torn_at_any_byte_is_set_aside_and_the_chain_goes_on(
    disk: "Disk", whole: list[Event]
) -> None:
    path = disk.write([*whole[:2], note()])
    data = path.read_bytes()
    earlier, last = read(path).records[:2], read(path).records[2]
    for length in range(last.offset + 1, last.end - 1):
        path.write_bytes(data[:length])
        path.with_name(HEAD).unlink()  # nobody was told of a record that was never finished
        assert read(path).torn == data[last.offset : length]
        with disk.open() as ledger:
            assert disk.found == earlier
            append(ledger, note("again"))
        aside = path.with_name(f"ledger.torn-{last.offset}")
        assert aside.read_bytes() == data[last.offset : length]
        assert aside.name in ledger.repairs[0]
        assert read(path).torn == b""
        assert [r.event for r in read(path).records] == [*whole[:2], note("again")]
        aside.unlink()


def test_a_torn_first_record_leaves_an_begun_ledger_that_can_begin(
    disk: "Disk", whole: list[Event]
) -> None:
    path = disk.write(whole[:1])
    data = path.read_bytes()
    path.write_bytes(data[:-10])
    path.with_name(HEAD).unlink()
    with disk.open() as ledger:
        assert disk.found == ()
        append(ledger, whole[0])
    assert path.with_name("ledger.torn-0").read_bytes() == data[:-10]
    assert [r.event for r in read(path).records] == whole[:1]


def test_two_tails_torn_at_the_same_place_are_both_kept(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write(whole[:2])
    data = path.read_bytes()
    for torn in (b"first", b"second", b"third"):
        path.write_bytes(data + torn)
        disk.open().close()
        assert path.read_bytes() == data
    kept = sorted(path.parent.glob("ledger.torn-*"))
    assert [file.name for file in kept] == [
        f"ledger.torn-{len(data)}",
        f"ledger.torn-{len(data)}.2",
        f"ledger.torn-{len(data)}.3",
    ]
    assert [file.read_bytes() for file in kept] == [b"first", b"second", b"third"]


@pytest.mark.parametrize("zeros", [1, 512, 4096])
def test_a_tail_of_zeros_is_set_aside(disk: "Disk", whole: list[Event], zeros: int) -> None:
    path = disk.write(whole)
    data = path.read_bytes()
    path.write_bytes(data + bytes(zeros))
    with disk.open():
        assert [r.event for r in disk.found] == whole
    assert path.read_bytes() == data
    assert path.with_name(f"ledger.torn-{len(data)}").read_bytes() == bytes(zeros)


def test_a_missing_last_newline_is_put_back_without_losing_the_record(
    disk: "Disk", whole: list[Event]
) -> None:
    path = disk.write(whole)
    data = path.read_bytes()
    path.write_bytes(data[:-1])
    with disk.open() as ledger:
        assert [r.event for r in disk.found] == whole
        assert ledger.repairs == ("the last line had lost its newline",)
        assert path.read_bytes() == data
        append(ledger, note())
    assert len(read(path).records) == len(whole) + 1
    assert not list(path.parent.glob("ledger.torn-*"))


@pytest.mark.parametrize("instead", [b"\x00", b"\x0b", b"x", b"\x00\x00garbage"])
def test_a_damaged_last_newline_is_put_back_without_losing_the_record(
    disk: "Disk", whole: list[Event], instead: bytes
) -> None:
    path = disk.write(whole)
    data = path.read_bytes()
    path.write_bytes(data[:-1] + instead)
    with disk.open() as ledger:
        assert [r.event for r in disk.found] == whole
        append(ledger, note())
    assert path.read_bytes().startswith(data)
    assert len(read(path).records) == len(whole) + 1
    assert path.with_name(f"ledger.torn-{len(data)}").read_bytes() == instead


def test_an_undamaged_ledger_needs_no_repair(disk: "Disk", whole: list[Event]) -> None:
    path = disk.write(whole)
    data = path.read_bytes()
    with disk.open() as ledger:
        assert ledger.repairs == ()
    assert path.read_bytes() == data


def test_a_newer_schema_is_refused_with_the_command_that_upgrades(
    disk: "Disk", make_plan: "MakePlan"
) -> None:
    path = disk.directory() / LEDGER
    path.write_bytes(planned(make_plan(), schema_version=99, tidings="new"))
    with pytest.raises(ValueError, match=r"schema 99; .* up to schema 7\. Upgrade with"):
        read(path)
    path.write_bytes(planned(make_plan(), schema_version=1))
    assert len(read(path).records) == 1


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ([1, 2], "sealed, but no event"),
        ({"seq": 0}, "sealed, but no event"),
        ({"seq": 0, "event": None}, "sealed, but no event"),
        (
            {"seq": 0, "at": AT, "elapsed_ms": -1, "event": {"kind": "opened"}},
            "sealed, but no event",
        ),
        ({"seq": 1, "at": AT, "elapsed_ms": 0, "event": {}}, "it says it is number 1"),
        ({"seq": 0, "event": events.fields(note())}, "sealed, but no event"),
        (
            {"seq": 0, "at": AT, "elapsed_ms": 0, "event": events.fields(note())},
            "the first record is no plan",
        ),
        (
            {"seq": 0, "at": AT, "elapsed_ms": 0, "event": {**events.fields(note()), "more": 1}},
            "sealed, but no event",
        ),
    ],
)
def test_a_sealed_line_that_is_no_event_is_refused(tmp_path: Path, fields: Any, why: str) -> None:
    path = tmp_path / LEDGER
    path.write_bytes(sealed([fields if isinstance(fields, dict) else {"a": fields}]))
    with pytest.raises(RecordCorruptError, match=why) as refusal:
        read(path)
    assert (refusal.value.record, refusal.value.offset) == (0, 0)


def test_json_that_is_no_object_is_refused(tmp_path: Path) -> None:
    body = b'["seq"'
    digest = hashlib.sha256(body).hexdigest()[:32].encode()
    (tmp_path / LEDGER).write_bytes(body + b',"h":"' + digest + b'"}\n')
    with pytest.raises(LedgerCorruptError, match="sealed, but no event"):
        read(tmp_path / LEDGER)


def test_a_seal_inside_a_setting_is_not_taken_for_the_records_own(
    disk: "Disk", make_plan: "MakePlan"
) -> None:
    settings = {"a": 1, "h": "0" * 32}
    plan = make_plan(objective={"name": "sphere", "settings": settings})
    path = disk.write([Planned(plan=plan), note()])
    assert read(path).records[0].event == Planned(plan=plan)


def test_a_second_writer_is_refused_by_name_and_the_first_goes_on(
    disk: "Disk", whole: list[Event]
) -> None:
    with disk.open() as first:
        append(first, whole[0])
        owner = f"host {os.uname().nodename}, pid {os.getpid()}, since 20"
        with pytest.raises(LedgerLockedError, match=owner):
            disk.open()
        append(first, whole[1])
    with disk.open() as second:
        assert second.count == 2


def test_readers_need_no_lock(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        append(ledger, whole[0])
        assert len(read(ledger.path).records) == 1


def test_closing_twice_is_harmless_and_a_closed_ledger_takes_nothing(
    disk: "Disk", whole: list[Event]
) -> None:
    ledger = disk.open()
    ledger.close()
    ledger.close()
    with pytest.raises(LedgerStorageError):
        append(ledger, whole[0])
    assert ledger.path.read_bytes() == b""


def test_a_foreign_append_is_noticed_and_nothing_is_overwritten(
    disk: "Disk", whole: list[Event]
) -> None:
    with disk.open() as ledger:
        append(ledger, whole[0])
        with ledger.path.open("ab") as foreign:
            foreign.write(b"a line of somebody else\n")
        found = ledger.path.read_bytes()
        with pytest.raises(LedgerChangedError, match="changed by somebody else"):
            append(ledger, whole[1])
        assert ledger.path.read_bytes() == found
        assert ledger.count == 1


@pytest.mark.parametrize("how", ["cut", "replaced", "deleted"])
def test_a_ledger_taken_away_is_noticed(disk: "Disk", whole: list[Event], how: str) -> None:
    with disk.open() as ledger:
        append(ledger, whole[0])
        data = ledger.path.read_bytes()
        if how == "cut":
            os.truncate(ledger.path, 10)
        elif how == "replaced":  # as an editor saves: the same bytes in another file
            write_aside(ledger.path, data)
        else:
            ledger.path.unlink()
        with pytest.raises(LedgerStorageError if how == "deleted" else LedgerChangedError):
            append(ledger, whole[1])
        assert ledger.count == 1


def test_a_ledger_outlives_a_change_of_the_working_directory(
    tmp_path: Path, disk: "Disk", whole: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with Ledger(Path(), disk.time.clock) as ledger:
        assert list(ledger.replay()) == []
        append(ledger, whole[0])
        monkeypatch.chdir("/")
        append(ledger, whole[1])
        ledger.mark_head()
    assert len(read(tmp_path / LEDGER).records) == 2
    assert (tmp_path / HEAD).exists()


def test_a_record_taken_in_pieces_is_whole(disk: "Disk", whole: list[Event]) -> None:
    with Ledger(disk.directory(), disk.time.clock, Nibbling()) as ledger:
        assert list(ledger.replay()) == []
        append(ledger, whole[0])
        append(ledger, whole[1])
    assert [r.event for r in read(ledger.path).records] == whole[:2]


class Nibbling(storage.Disk):
    """Takes seven bytes at a time of a record."""

    def write(self, handle: int, data: bytes) -> int:
        return super().write(handle, data if len(data) > 100_000 else data[:7])


def test_a_missing_directory_is_a_storage_error(tmp_path: Path, disk: "Disk") -> None:
    with pytest.raises(LedgerStorageError, match="cannot write to"):
        Ledger(tmp_path / "nowhere", disk.time.clock)


def test_a_ledger_behind_a_symbolic_link_is_not_followed(tmp_path: Path, disk: "Disk") -> None:
    (disk.directory() / LEDGER).symlink_to(tmp_path / "elsewhere")
    for _ in range(2):  # the failure frees the lock
        with pytest.raises(LedgerStorageError, match="symbolic links"):
            disk.open()
    assert not (tmp_path / "elsewhere").exists()


def test_a_record_sealed_for_another_place_is_refused(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        early = ledger.seal(whole[0])
        append(ledger, whole[0])
        stale = ledger.seal(note("stale"))
        append(ledger, whole[1])
        found = ledger.path.read_bytes()
        for record in (early, stale):
            with pytest.raises(ValueError, match=f"record {record.seq} was sealed for another"):
                ledger.append(record)
        assert ledger.path.read_bytes() == found


def test_sealing_writes_nothing(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        record = ledger.seal(whole[0])
        assert ledger.path.read_bytes() == b""
        assert (record.seq, record.offset, record.event) == (0, 0, whole[0])


def lost(path: Path) -> int:
    records = read(path).records
    return records_lost(path, len(records), lambda seq: records[seq].digest)


def test_no_record_is_lost_from_a_ledger_at_its_head(disk: "Disk", whole: list[Event]) -> None:
    with disk.open() as ledger:
        append(ledger, whole[0])
        assert lost(ledger.path) == 0
        (ledger.path.parent / HEAD).unlink()
        assert lost(ledger.path) == 0
        ledger.mark_head()
        head = (ledger.path.parent / HEAD).read_bytes()
        append(ledger, whole[1])
        assert lost(ledger.path) == 0
        (ledger.path.parent / HEAD).write_bytes(head)
        assert lost(ledger.path) == 0  # ahead of its head
    mark = orjson.loads((ledger.path.parent / HEAD).read_bytes())
    assert mark == {"seq": 0, "h": read(ledger.path).records[0].digest}


@pytest.mark.parametrize("kept", [0, 1, 3, 7])
def test_a_cut_tail_is_counted_against_the_head(
    disk: "Disk", whole: list[Event], kept: int
) -> None:
    path = disk.write(whole[:8])
    with disk.open() as ledger:
        ledger.mark_head()
    path.write_bytes(b"".join(lines(path.read_bytes())[:kept]))
    assert lost(path) == 8 - kept


def test_another_story_of_the_same_length_has_lost_the_marked_one(
    disk: "Disk", whole: list[Event], make_plan: "MakePlan"
) -> None:
    path = disk.write(whole[:3])
    with disk.open() as ledger:
        ledger.mark_head()
    other = disk.write([Planned(plan=make_plan(run_id="other")), *whole[1:5]], "other")
    path.write_bytes(other.read_bytes())
    assert lost(path) == 3


@pytest.fixture(scope="session")
def begun_ledger(
    tmp_path_factory: pytest.TempPathFactory, make_plan: "MakePlan"
) -> Iterator[Ledger]:
    clock = Clock(lambda: 0.0, lambda: datetime(2030, 1, 1, tzinfo=UTC))
    with Ledger(tmp_path_factory.mktemp("sealing"), clock) as ledger:
        assert list(ledger.replay()) == []
        append(ledger, Planned(plan=make_plan()))
        yield ledger


def bits(value: float) -> bytes:
    return struct.pack("<d", value)


@given(st.floats(-1e100, 1e100))
def test_every_score_that_can_be_compared_comes_back_bit_for_bit(
    begun_ledger: Ledger, score: float
) -> None:
    event = Settled(
        generation=0,
        candidate=0,
        seed=5,
        attempt=1,
        status=Status.OK,
        score=score,
        charged_ms=1,
        seconds=1.0,
        metrics={"loss": score},
    )
    record: Record = begun_ledger.seal(event)
    assert isinstance(record.event, Settled)
    assert record.event.score is not None
    assert bits(record.event.score) == bits(record.event.metrics["loss"]) == bits(score)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("field", ["score", "seconds", "train_flops", "metrics"])
def test_no_event_holds_a_number_that_is_not_finite(field: str, value: float) -> None:
    fields: dict[str, Any] = {
        "generation": 0,
        "candidate": 0,
        "seed": 5,
        "attempt": 1,
        "status": "ok",
        "score": 1.0,
        "charged_ms": 1,
        "seconds": 1.0,
    }
    assert Settled(**fields)
    with pytest.raises(ValidationError, match="finite"):
        Settled(**{**fields, field: {"loss": value} if field == "metrics" else value})
    with pytest.raises(ValidationError, match="finite"):
        Fired(rule="r", generation=0, decision="pause", observed=value, limit=0.0, evidence="so")


def test_awkward_text_comes_back_as_it_was(disk: "Disk", whole: list[Event]) -> None:
    text = 'a "quote", a\nnewline, \x00 zero, ü, \u2028, "}\n,"h":"' + "0" * 32 + '"}'
    path = disk.write([*whole[:2], note(text)])
    assert read(path).records[2].event == note(text)


def test_events_and_ledgers_do_not_change_under_their_readers(
    disk: "Disk", whole: list[Event]
) -> None:
    record = read(disk.write(whole)).records[1]
    assert isinstance(record.event, Opened)
    with pytest.raises(FrozenInstanceError):
        record.event.host = "there"  # type: ignore[misc]


def test_a_whole_ledger_folds_to_its_end(disk: "Disk", whole: list[Event]) -> None:
    records = read(disk.write(whole)).records
    state = fold(records)
    assert (state.head, state.records) == (records[-1].digest, len(whole))
    assert state.concluded == whole[-1]


def test_a_closed_ledger_takes_no_record(disk: "Disk", whole: list[Event]) -> None:
    disk.write(whole)
    ledger = disk.open()
    record = ledger.seal(note())
    ledger.close()
    with pytest.raises(LedgerStorageError, match="takes no record before it was read"):
        ledger.append(record)


def test_a_closed_ledger_is_free_though_a_forked_child_lives_on(
    disk: "Disk", whole: list[Event]
) -> None:
    disk.write(whole)
    ledger = disk.open()
    lock = (disk.directory() / LOCK).stat().st_ino
    own = next(fd for fd in range(3, 1000) if is_open(fd) and os.fstat(fd).st_ino == lock)
    inherited = os.dup(own)
    try:
        ledger.close()
        disk.open().close()
    finally:
        os.close(inherited)


def is_open(handle: int) -> bool:
    try:
        os.fstat(handle)
    except OSError:
        return False
    return True
