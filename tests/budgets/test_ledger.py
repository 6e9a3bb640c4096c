"""The file: what it gives back, repairs and refuses; every call it makes fails or loses power."""

import errno
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest

from budgets.events import Event, Overridden
from budgets.ledger import (
    HEAD,
    LEDGER,
    LOCK,
    Clock,
    Ledger,
    LedgerCorruptError,
    LedgerLockedError,
    LedgerStorageError,
    read,
    take_lock,
)
from tests.budgets.conftest import Disk
from tests.product.books import sealed
from tests.simulation.disk import CALLS, Call, Fault, FaultyDisk, PowerCut

CLOCK = Clock(lambda: 0.0, lambda: datetime(2030, 1, 1, tzinfo=UTC))
AT = "2030-01-01T00:00:00.000+00:00"
Moment = Literal["before", "torn", "after"]
MOMENTS: tuple[Moment, ...] = ("before", "torn", "after")


def note(reason: str = "so") -> Overridden:
    return Overridden(rule="crash_rate", generation=0, reason=reason)


# What is read back


def test_what_was_appended_is_read_back_with_both_clocks(disk: Disk, whole: list[Event]) -> None:
    disk.write(whole[:4])
    disk.time.advance_to(disk.time.seconds + 3600.0)
    path = disk.write(whole[4:])
    records, data = read(path), path.read_bytes()
    assert [record.event for record in records] == whole
    assert [record.seq for record in records] == list(range(len(whole)))
    assert [record.elapsed_ms for record in records[:6]] == [2, 4, 6, 8, 2, 4]
    assert records[1].at == "2030-01-01T00:16:40.004+00:00"
    assert b"".join(data[r.offset : r.end] for r in records) == data


def test_a_flipped_bit_anywhere_is_refused_with_its_record_and_offset(
    disk: Disk, whole: list[Event]
) -> None:
    path = disk.write(whole[:4])
    data, records = path.read_bytes(), read(path)
    for record in records:
        for place in range(record.offset, record.end):
            damaged = bytearray(data)
            damaged[place] ^= 1 << place % 8
            path.write_bytes(damaged)
            if place == len(data) - 1:  # without its newline a record was never finished
                assert read(path) == records[:-1]
                continue
            where = f"record {record.seq} at byte {record.offset}: "
            with pytest.raises(LedgerCorruptError, match=where):
                read(path)


def planned(whole: list[Event], **fields: Any) -> dict[str, Any]:
    return {"seq": 0, "at": AT, "elapsed_ms": 0, "event": whole[0].model_dump() | fields}


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"schema_version": 2}, ValueError),
        ({"schema_version": 7, "novelty": 1}, ValueError),
        ({"kind": "invented"}, LedgerCorruptError),
        ({"novelty": 1}, LedgerCorruptError),
        ({"plan": None}, LedgerCorruptError),
        ({"kind": "fired"}, LedgerCorruptError),
    ],
)
def test_a_sealed_record_of_another_version_is_no_damage(
    tmp_path: Path, whole: list[Event], fields: dict[str, Any], error: type[Exception]
) -> None:
    (tmp_path / LEDGER).write_bytes(sealed([planned(whole, **fields)]))
    with pytest.raises(error):
        read(tmp_path / LEDGER)


def test_a_last_record_with_a_hole_was_never_finished(disk: Disk, whole: list[Event]) -> None:
    path = disk.write([*whole[:4], note("so" * 5000)])
    (path.with_name(HEAD)).unlink()
    data, start = path.read_bytes(), read(path)[-1].offset + 600
    path.write_bytes(data[:start] + bytes(512) + data[start + 512 :])
    assert len(read(path)) == 4


# One writer


HOLDS = "from pathlib import Path; from budgets.ledger import take_lock; "
FORKS = (
    "import os, sys; lock = take_lock(Path(sys.argv[1]));\n"
    "if os.fork() == 0: os.set_inheritable(lock, True); sys.stdin.read(); os._exit(0)\n"
    "print('held', flush=True)"
)


def test_a_second_process_is_told_who_has_the_lock_and_a_dead_one_holds_nothing(
    tmp_path: Path,
) -> None:
    lock = take_lock(tmp_path)
    with pytest.raises(LedgerLockedError, match=rf"pid {os.getpid()}, since 20"):
        take_lock(tmp_path)
    os.truncate(tmp_path / LOCK, 0)
    with pytest.raises(LedgerLockedError, match=r"\(unknown\)"):
        take_lock(tmp_path)
    os.close(lock)
    child = subprocess.Popen(
        [sys.executable, "-c", HOLDS + FORKS, str(tmp_path)],
        cwd=Path(__file__).parents[2], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == "held\n"
        child.wait()
        with pytest.raises(LedgerLockedError, match="another orchestrator is running"):
            take_lock(tmp_path)
        assert child.stdin is not None
        child.stdin.close()
    for _ in range(1000):
        with suppress(LedgerLockedError):
            return os.close(take_lock(tmp_path))
        time.sleep(0.01)
    raise AssertionError("the lock outlives everybody")


def test_what_another_writer_appended_is_not_written_over(disk: Disk, whole: list[Event]) -> None:
    disk.write(whole[:3])
    with disk.open() as ledger:
        ledger.append(ledger.seal(note()))
        with ledger.path.open("ab") as file:
            file.write(b"junk")
        with pytest.raises(LedgerCorruptError, match="by another process"):
            ledger.append(ledger.seal(note()))
        with pytest.raises(LedgerStorageError, match="read again"):
            ledger.seal(note())
    assert ledger.path.read_bytes().endswith(b"junk")


# Every call fails, and at every call the power is cut: what was acknowledged is there, in order,
# of the rest at most the record that was being written, and the chain goes on


@pytest.fixture
def events(whole: list[Event]) -> list[Event]:
    """Of two sessions; one record of each is larger than two pages of a disk's cache."""
    return [*whole[:3], note("so" * 5000), whole[3], *whole[4:6], note("so" * 5000)]


@dataclass
class Story:
    """Two sessions on a ledger that ends in a torn line, and what was promised on the way."""

    directory: Path
    disk: FaultyDisk
    events: Sequence[Event]
    acknowledged: list[bytes] = field(default_factory=list)
    attempted: list[bytes] = field(default_factory=list)

    def begin(self) -> None:
        """As a power cut within the second record leaves it."""
        self.directory.mkdir()
        with Ledger(self.directory, CLOCK) as ledger:
            assert not list(ledger.replay())
            for event in self.events[:2]:
                self.append(ledger, event)
        os.truncate(ledger.path, ledger.path.stat().st_size - 10)
        ledger.path.with_name(HEAD).unlink()
        self.acknowledged, self.attempted = self.acknowledged[:1], self.attempted[:1]

    def run(self) -> None:
        for count in (5, 8):
            with Ledger(self.directory, CLOCK, storage=self.disk) as ledger:
                found = [record.line for record in ledger.replay()]
                assert found[: len(self.acknowledged)] == self.acknowledged
                self.acknowledged = found
                for event in self.events[len(found) : count]:
                    self.append(ledger, event)

    def append(self, ledger: Ledger, event: Event) -> None:
        record = ledger.seal(event)
        self.attempted.append(record.line)
        ledger.append(record)
        self.acknowledged.append(record.line)

    def check(self) -> None:
        """What is found fits what was promised; what was torn is kept; the chain goes on."""
        path = self.directory / LEDGER
        before = path.read_bytes() if path.exists() else b""
        with Ledger(self.directory, CLOCK, storage=self.disk) as ledger:
            found = [record.line for record in ledger.replay()]
            in_doubt = self.attempted[-1:] if self.attempted != self.acknowledged else []
            assert found[: len(self.acknowledged)] == self.acknowledged
            assert found[len(self.acknowledged) :] in ([], in_doubt)
            torn = before.removeprefix(b"".join(line + b"\n" for line in found))
            if torn not in (b"", b"\n") and len(torn) < len(before):
                kept = [file.read_bytes() for file in self.directory.glob("ledger.torn-*")]
                assert torn in kept
            self.acknowledged, self.attempted = list(found), list(found)
            self.append(ledger, self.events[len(found) % len(self.events)])


@contextmanager
def disturbed(place: Path, events: Sequence[Event], fault: Fault | None) -> Iterator[Story]:
    """The story with this fault in it, up to where it ends, in a directory that goes then."""
    story = Story(place / "run", FaultyDisk(*filter(None, [fault])), events)
    story.begin()
    with suppress(LedgerStorageError, PowerCut):
        story.run()
    if fault is not None:
        story.disk.schedule()
    yield story
    shutil.rmtree(story.directory)


def count(place: Path, events: list[Event], call: Call | None) -> int:
    """Of the calls of that kind, or of all, that the undisturbed story makes: there are some."""
    with disturbed(place, events, None) as story:
        found = story.disk.calls.total() if call is None else story.disk.calls[call]
    assert found
    return found


@pytest.mark.parametrize("call", CALLS)
def test_a_power_cut_at_any_call_loses_nothing_acknowledged(
    place: Path, events: list[Event], call: Call
) -> None:
    for at in range(1, count(place, events, call) + 1):
        for moment in MOMENTS:
            for seed, kept in enumerate((0.0, 0.3, 0.999, 1.0)):
                with disturbed(place, events, Fault(at, call, None, moment, kept)) as story:
                    for again in (0, 1):
                        story.disk.power_cut(np.random.default_rng([at, seed, again]))
                        story.check()


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_any_call_loses_nothing_acknowledged_nor_does_a_power_cut_after_it(
    place: Path, events: list[Event], call: Call, number: int
) -> None:
    for at in range(1, count(place, events, call) + 1):
        for moment in MOMENTS:
            with disturbed(place, events, Fault(at, call, number, moment)) as story:
                story.disk.restart()
                story.check()  # the next process goes on where this one failed
                story.disk.power_cut(np.random.default_rng(at))
                story.check()
