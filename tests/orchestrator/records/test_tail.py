"""A ledger that is followed while it grows says what it says when it is read whole."""

import os
import shutil
import threading
from pathlib import Path

import orjson
import pytest

from budgets.events import Concluded
from budgets.ledger import HEAD, LEDGER, LedgerCorruptError, read
from budgets.state import fold
from orchestrator.records.tail import Tail

GOLDEN = Path(__file__).parents[2] / "golden/runs"
SEARCH, OTHER = GOLDEN / "smoke" / LEDGER, GOLDEN / "calibration" / LEDGER


def lines(path: Path = SEARCH) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def write(directory: Path, data: bytes) -> None:
    (directory / LEDGER).write_bytes(data)


def add(directory: Path, data: bytes) -> None:
    with (directory / LEDGER).open("ab") as file:
        file.write(data)


@pytest.mark.parametrize("golden", [SEARCH.parent, OTHER.parent], ids=lambda path: path.name)
def test_growing_record_by_record_gives_at_each_one_what_a_whole_reading_gives(
    golden: Path, tmp_path: Path
) -> None:
    whole = read(golden / LEDGER).records
    tail = Tail(tmp_path)
    for number, line in enumerate(lines(golden / LEDGER)):
        add(tmp_path, line)
        assert list(tail.news()) == [whole[number]]
        if number % 10 == 0:
            assert tail.state == fold(whole[: number + 1])
    assert tail.state == fold(whole)
    assert list(tail.news()) == []


def test_every_byte_of_two_records_may_be_the_last_one_there(tmp_path: Path) -> None:
    head, two = b"".join(lines()[:3]), b"".join(lines()[3:5])
    write(tmp_path, head)
    tail = Tail(tmp_path)
    seen = list(tail.news())
    for byte in two:
        add(tmp_path, bytes([byte]))
        seen += list(tail.news())
    assert tuple(seen) == read(SEARCH).records[:5]


def test_a_record_that_only_lacks_its_newline_counts_and_counts_once(tmp_path: Path) -> None:
    first, second, third, *_ = lines()
    write(tmp_path, first + second.rstrip(b"\n"))
    tail = Tail(tmp_path)
    assert [record.seq for record in list(tail.news())] == [0, 1]
    assert list(tail.news()) == []
    add(tmp_path, b"\n")
    assert list(tail.news()) == []
    add(tmp_path, third)
    assert [record.seq for record in list(tail.news())] == [2]


def test_a_torn_line_that_its_writer_cuts_off_is_never_seen(tmp_path: Path) -> None:
    first, second, third, *_ = lines()
    write(tmp_path, first + second + third[:100])
    tail = Tail(tmp_path)
    list(tail.news())
    os.truncate(tmp_path / LEDGER, len(first + second))
    assert list(tail.news()) == []
    add(tmp_path, third)
    assert [record.seq for record in list(tail.news())] == [2]


def test_a_last_line_that_lacks_a_sector_was_never_finished(tmp_path: Path) -> None:
    before, last = lines()[0], b"".join(lines()[1:])
    place = 512 * (len(before) // 512 + 1) - len(before)  # the first sector that is all its own
    hole = last[:place] + bytes(512) + last[place + 512 :].replace(b"\n", b" ") + b"\n"
    write(tmp_path, before + hole)
    tail = Tail(tmp_path)
    assert len(list(tail.news())) == 1
    write(tmp_path, before + last)
    assert len(list(tail.news())) == len(lines()) - 1


@pytest.mark.parametrize("way", ["renamed over it", "written into it"])
@pytest.mark.parametrize("longer", [False, True])
def test_a_ledger_that_another_one_replaced_is_read_anew(
    way: str, longer: bool, tmp_path: Path
) -> None:
    before, after = (OTHER, SEARCH) if longer else (SEARCH, OTHER)
    shutil.copy(before, tmp_path / LEDGER)
    tail = Tail(tmp_path)
    list(tail.news())
    if way == "written into it":
        write(tmp_path, after.read_bytes())
    else:
        shutil.copy(after, tmp_path / "other")
        (tmp_path / "other").rename(tmp_path / LEDGER)
    assert tuple(tail.news()) == read(after).records
    assert tail.state == fold(read(after).records)


def test_a_ledger_that_was_taken_away_is_said_to_be_gone_until_one_is_there(tmp_path: Path) -> None:
    shutil.copy(SEARCH, tmp_path / LEDGER)
    tail = Tail(tmp_path)
    list(tail.news())
    (tmp_path / LEDGER).unlink()
    assert list(tail.news()) == []
    assert tail.is_gone
    assert tail.state is not None
    shutil.copy(OTHER, tmp_path / LEDGER)
    assert tuple(tail.news()) == read(OTHER).records
    assert not tail.is_gone


def test_damage_in_what_is_new_is_named_too(tmp_path: Path) -> None:
    write(tmp_path, b"".join(lines()[:6]))
    tail = Tail(tmp_path)
    list(tail.news())
    add(tmp_path, lines()[7] + lines()[8])
    with pytest.raises(LedgerCorruptError, match="record 6 at byte"):
        list(tail.news())


def mark(directory: Path, number: int) -> None:
    record = read(SEARCH).records[number]
    said = {"seq": record.seq, "h": record.digest}
    (directory / HEAD).write_bytes(orjson.dumps(said))


def test_a_ledger_whose_end_was_cut_off_is_refused_as_by_whoever_reads_it_whole(
    tmp_path: Path,
) -> None:
    mark(tmp_path, 20)
    write(tmp_path, b"".join(lines()[:15]))
    with pytest.raises(LedgerCorruptError, match="rolled back by 6 records"):
        list(Tail(tmp_path).news())


def test_a_mark_made_after_the_look_is_no_reason_to_miss_records(tmp_path: Path) -> None:
    write(tmp_path, b"".join(lines()[:15]))
    mark(tmp_path, 10)
    tail = Tail(tmp_path)
    list(tail.news())
    mark(tmp_path, 20)  # its writer is ahead of what we have read
    assert list(tail.news()) == []
    add(tmp_path, b"".join(lines()[15:]))
    assert isinstance(list(tail.news())[-1].event, Concluded)


@pytest.mark.parametrize("what", ["link", "pipe", "directory"])
def test_what_is_no_plain_file_is_refused_and_not_waited_for(what: str, tmp_path: Path) -> None:
    if what == "link":
        (tmp_path / LEDGER).symlink_to(SEARCH)
    elif what == "pipe":
        os.mkfifo(tmp_path / LEDGER)
    else:
        (tmp_path / LEDGER).mkdir()
    with pytest.raises(ValueError, match=LEDGER):
        list(Tail(tmp_path).news())


def test_whoever_writes_meanwhile_is_followed_to_the_end(tmp_path: Path) -> None:
    def append() -> None:
        with (tmp_path / LEDGER).open("ab", buffering=0) as file:
            for line in lines():
                file.write(line[:50])
                file.write(line[50:])

    writer, seen, tail = threading.Thread(target=append), [], Tail(tmp_path)
    writer.start()
    while writer.is_alive():
        seen += list(tail.news())
    seen += list(tail.news())
    assert tuple(seen) == read(SEARCH).records
