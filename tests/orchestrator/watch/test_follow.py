"""A run is watched from outside without anybody's noticing."""

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from budgets.ledger.chain import LEDGER, LedgerCorruptError, read
from orchestrator.watch.follow import Follower

GOLDEN = Path(__file__).parents[2] / "golden/schema_4" / LEDGER
NOW = datetime(2030, 1, 1, tzinfo=UTC)


def lines() -> list[bytes]:
    return GOLDEN.read_bytes().splitlines(keepends=True)


def test_nothing_is_to_be_seen_before_the_first_record(tmp_path: Path) -> None:
    follower = Follower(tmp_path)
    assert follower.advance() == []
    assert follower.snapshot(NOW) is None


def test_it_sees_what_whoever_reads_the_whole_ledger_sees(tmp_path: Path) -> None:
    followed, whole = Follower(tmp_path / "run"), tmp_path / "whole"
    for directory in (tmp_path / "run", whole):
        directory.mkdir()
    for count in (1, 30, 70, len(lines())):
        for directory in (tmp_path / "run", whole):
            (directory / LEDGER).write_bytes(b"".join(lines()[:count]))
        followed.advance()
        other = Follower(whole)
        other.advance()
        assert followed.snapshot(NOW) == other.snapshot(NOW)


def test_of_another_ledger_it_remembers_nothing_of_the_first(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_bytes(GOLDEN.read_bytes())
    follower = Follower(tmp_path)
    follower.advance()
    (tmp_path / LEDGER).write_bytes(b"".join(lines()[:5]))
    assert len(follower.advance()) == 5
    found = follower.snapshot(NOW)
    assert found is not None
    assert (found.records, found.recent, found.counts.settled) == (5, (), 0)


def test_what_attempts_write_is_in_the_snapshot(tmp_path: Path) -> None:
    first = next(r for r in read(GOLDEN).records if r.event.kind == "reserved")
    (tmp_path / LEDGER).write_bytes(b"".join(lines()[: first.seq + 1]))
    follower = Follower(tmp_path)
    follower.advance()
    found = follower.snapshot(NOW)
    assert found is not None
    (row,) = (row for row in found.devices if row.doing != "idle")
    place = tmp_path / "eval" / row.place
    place.mkdir(parents=True)
    (place / "started.json").write_text(json.dumps({"device": "GPU-1"}))
    found = follower.snapshot(NOW)
    assert found is not None
    assert "GPU-1" in {row.device for row in found.devices}


def test_damage_is_its_readers_to_hear_of(tmp_path: Path) -> None:
    (tmp_path / LEDGER).write_bytes(b"nonsense\n")
    with pytest.raises(LedgerCorruptError):
        Follower(tmp_path).advance()
