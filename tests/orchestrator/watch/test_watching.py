"""A run is watched until it is over, whatever becomes of its ledger meanwhile."""

from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from budgets.events import Event
from budgets.ledger.chain import LEDGER, LedgerCorruptError
from budgets.state import RunState
from orchestrator.watch.follow import Follower
from orchestrator.watch.snapshot import Snapshot
from orchestrator.watch.watching import LOOK_SECONDS, PATIENCE, watch

GOLDEN = Path(__file__).parents[2] / "golden/schema_4" / LEDGER
OTHER = GOLDEN.parents[1] / "schema_3" / LEDGER
NOW = datetime(2030, 1, 1, tzinfo=UTC)


class Remembers:
    """A reader who looks for so long."""

    def __init__(self, looks: int = 1000) -> None:
        self.heard: list[str] = []
        self.seen: list[Snapshot] = []
        self._looks = looks

    def hear(self, state: RunState, event: Event) -> None:
        self.heard.append(event.kind)

    def see(self, found: Snapshot) -> bool:
        self.seen.append(found)
        return len(self.seen) < self._looks


class Happens:
    """What happens while somebody waits, step by step; then nothing does, and that is an error."""

    def __init__(self, *steps: Callable[[], object]) -> None:
        self._steps: Iterator[Callable[[], object]] = iter(steps)
        self.waits: list[float] = []

    def __call__(self, seconds: float) -> None:
        self.waits.append(seconds)
        next(self._steps)()


def lines(path: Path = GOLDEN) -> list[bytes]:
    return path.read_bytes().splitlines(keepends=True)


def write(directory: Path, *own: bytes) -> Callable[[], object]:
    return lambda: (directory / LEDGER).write_bytes(b"".join(own))


def nothing() -> None:
    """Time passes."""


def watched(directory: Path, reader: Remembers, *steps: Callable[[], object]) -> Happens:
    wait = Happens(*steps)
    watch(Follower(directory), reader, lambda: NOW, wait)
    return wait


def test_a_run_that_is_over_is_seen_once(tmp_path: Path) -> None:
    reader = Remembers()
    write(tmp_path, *lines())()
    assert watched(tmp_path, reader).waits == []
    assert len(reader.seen) == 1
    assert reader.heard == []


def test_records_are_heard_from_the_first_look_on_until_it_is_over(tmp_path: Path) -> None:
    reader = Remembers()
    write(tmp_path, *lines()[:-5])()
    watched(tmp_path, reader, write(tmp_path, *lines()[:-3]), write(tmp_path, *lines()))
    assert len(reader.heard) == 5
    assert reader.heard[-1] == "concluded"
    assert [found.records for found in reader.seen] == [140, 142, 145]


def test_a_look_a_second_is_enough(tmp_path: Path) -> None:
    write(tmp_path, *lines()[:-1])()
    waits = watched(tmp_path, Remembers(), nothing, write(tmp_path, *lines())).waits
    assert all(seconds >= LOOK_SECONDS for seconds in waits)


def test_nobody_looking_any_more_is_an_end_too(tmp_path: Path) -> None:
    write(tmp_path, *lines()[:-5])()
    reader = Remembers(looks=2)
    watched(tmp_path, reader, nothing)
    assert len(reader.seen) == 2


def test_a_ledger_without_a_record_is_waited_for(tmp_path: Path) -> None:
    write(tmp_path)()
    reader = Remembers()
    watched(tmp_path, reader, nothing, write(tmp_path, *lines()))
    assert len(reader.seen) == 1


def test_a_ledger_that_is_damaged_from_the_beginning_is_an_error_at_once(tmp_path: Path) -> None:
    write(tmp_path, b"nonsense\n")()
    with pytest.raises(LedgerCorruptError):
        watched(tmp_path, Remembers())


def test_a_ledger_that_stays_damaged_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, *lines()[:50])()
    damaged = write(tmp_path, *lines()[:50], b"nonsense\n")
    with pytest.raises(LedgerCorruptError, match="record 50"):
        watched(tmp_path, Remembers(), damaged, *(PATIENCE - 1) * [nothing])


def test_a_ledger_that_is_just_being_replaced_is_read_anew(tmp_path: Path) -> None:
    write(tmp_path, *lines()[:50])()
    reader = Remembers()
    half = write(tmp_path, *lines(OTHER)[:20], b"nonsense\n")
    watched(tmp_path, reader, half, write(tmp_path, *lines(OTHER)))
    assert reader.seen[-1].records == len(lines(OTHER))
    assert reader.heard == []  # what a ledger begins with is no news of its run


def test_a_ledger_that_was_taken_away_is_said_to_be_gone_and_waited_for(tmp_path: Path) -> None:
    write(tmp_path, *lines()[:50])()
    reader = Remembers()
    watched(tmp_path, reader, (tmp_path / LEDGER).unlink, write(tmp_path, *lines()))
    assert [found.whose for found in reader.seen][1] == "its ledger is gone"
    assert [found.standing for found in reader.seen][1:] == ["interrupted", "finished"]
