"""A ledger followed while somebody writes it."""

from pathlib import Path

import pytest

from budgets.chain import LEDGER, RecordCorruptError, read
from budgets.fold import fold
from orchestrator.tail import Tail


@pytest.fixture
def growing(finished_run: Path, tmp_path: Path) -> tuple[bytes, Path]:
    """The bytes of a whole ledger, and an empty directory where it grows."""
    return (finished_run / LEDGER).read_bytes(), tmp_path


def test_records_are_given_once_as_they_come(growing: tuple[bytes, Path]) -> None:
    data, directory = growing
    tail, found = Tail(directory), []
    assert tail.advance() == []
    with (directory / LEDGER).open("ab", buffering=0) as ledger:
        for begin in range(0, len(data), 997):
            ledger.write(data[begin : begin + 997])
            found += tail.advance()
    assert found == list(read(directory / LEDGER).records)
    assert tail.state == fold(found)


def test_half_a_record_is_waited_for(growing: tuple[bytes, Path]) -> None:
    data, directory = growing
    first = data.index(b"\n") + 1
    (directory / LEDGER).write_bytes(data[: first + 20])
    tail = Tail(directory)
    assert [record.seq for record in tail.advance()] == [0]
    assert tail.advance() == []


def test_the_state_is_as_of_each_record_when_they_are_taken_one_by_one(run: Path) -> None:
    tail = Tail(run)
    for record in tail.each():
        assert tail.state is not None
        assert (tail.state.records, tail.state.head) == (record.seq + 1, record.digest)


def test_another_ledger_in_its_place_is_read_from_its_beginning(
    growing: tuple[bytes, Path],
) -> None:
    data, directory = growing
    (directory / LEDGER).write_bytes(data)
    tail = Tail(directory)
    before = tail.advance()
    (directory / "other").write_bytes(data)
    (directory / "other").rename(directory / LEDGER)
    assert tail.advance() == before


def test_a_changed_record_is_named(growing: tuple[bytes, Path]) -> None:
    data, directory = growing
    (directory / LEDGER).write_bytes(data.replace(b'"seq":3,', b'"seq":4,'))
    with pytest.raises(RecordCorruptError, match="record 3 "):
        Tail(directory).advance()
