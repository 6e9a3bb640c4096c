"""A ledger that is followed while it grows says what it says when it is read whole."""

import shutil
from pathlib import Path

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER, LedgerCorruptError, read
from budgets.state import fold
from orchestrator.records.runs import Tail

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
    whole = read(golden / LEDGER)
    tail = Tail(tmp_path)
    for number, line in enumerate(lines(golden / LEDGER)):
        add(tmp_path, line)
        assert list(tail.news()) == [whole[number]]
        if number % 10 == 0:
            assert tail.state == fold(whole[: number + 1])
    assert tail.state == fold(whole)
    assert list(tail.news()) == []


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
    assert tuple(tail.news()) == read(after)
    assert tail.state == fold(read(after))


def test_a_ledger_that_was_taken_away_is_said_to_be_gone_until_one_is_there(tmp_path: Path) -> None:
    shutil.copy(SEARCH, tmp_path / LEDGER)
    tail = Tail(tmp_path)
    list(tail.news())
    (tmp_path / LEDGER).unlink()
    assert list(tail.news()) == []
    assert tail.is_gone
    assert tail.state is not None
    shutil.copy(OTHER, tmp_path / LEDGER)
    assert tuple(tail.news()) == read(OTHER)
    assert not tail.is_gone


def test_damage_in_what_is_new_is_named_too(tmp_path: Path) -> None:
    write(tmp_path, b"".join(lines()[:6]))
    tail = Tail(tmp_path)
    list(tail.news())
    add(tmp_path, lines()[7] + lines()[8])
    with pytest.raises(LedgerCorruptError, match="record 6 at byte"):
        list(tail.news())


def test_a_ledger_whose_end_was_cut_off_is_refused_as_by_whoever_reads_it_whole(
    tmp_path: Path,
) -> None:
    seen = read(SEARCH)[20]
    (tmp_path / HEAD).write_bytes(orjson.dumps({"seq": seen.seq, "h": seen.digest}))
    write(tmp_path, b"".join(lines()[:15]))
    with pytest.raises(LedgerCorruptError, match="is rolled back"):
        list(Tail(tmp_path).news())
