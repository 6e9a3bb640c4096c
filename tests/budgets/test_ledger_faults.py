"""Every call the ledger makes fails once, and at every one the power is cut once.

Whatever happens where, afterwards: what was acknowledged is there, in order; of the rest at most
the record that was being written; nothing else; and the chain goes on.
"""

import errno
import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np
import pytest

from budgets.events import Event, Overridden
from budgets.ledger import writer as ledger_module
from budgets.ledger.chain import LEDGER, LedgerCorruptError, read
from budgets.ledger.writer import Clock, Ledger, LedgerStorageError
from tests.simulation.disk import CALLS, Call, Fault, FaultyDisk, PowerCut

CLOCK = Clock(lambda: 0.0, lambda: datetime(2030, 1, 1, tzinfo=UTC))
FIRST, SECOND = 5, 3
"""Records that the first session appends, and the second."""

ERRORS = (errno.EIO, errno.ENOSPC, errno.EROFS)
SURVIVORS = range(4)
"""Draws of what a power cut leaves, of each."""

MOMENTS: tuple[Literal["before", "torn", "after"], ...] = ("before", "torn", "after")


@pytest.fixture(autouse=True)
def _small_ballast(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ledger_module, "BALLAST_BYTES", 8192)


@pytest.fixture
def events(whole: list[Event]) -> list[Event]:
    """As many of any run's; one of each session's is larger than two pages of a disk's cache."""
    large = Overridden(rule="crash_rate", generation=0, reason="so" * 5000)
    return [*whole[: FIRST - 2], large, *whole[FIRST - 2 : FIRST + SECOND - 3], large]


@dataclass
class Story:
    """Two sessions on one ledger, and what was promised on the way."""

    directory: Path
    disk: FaultyDisk
    events: Sequence[Event]
    acknowledged: list[bytes] = field(default_factory=list)
    attempted: list[bytes] = field(default_factory=list)

    def run(self) -> None:
        for count in (FIRST, FIRST + SECOND):
            with Ledger(self.directory, CLOCK, storage=self.disk) as ledger:
                found = [record.line for record in ledger.replay()]
                assert found[: len(self.acknowledged)] == self.acknowledged
                self.acknowledged = found
                for event in self.events[len(found) : count]:
                    self.append(ledger, event)
                ledger.mark_head()

    def append(self, ledger: Ledger, event: Event) -> None:
        record = ledger.seal(event)
        self.attempted.append(record.line)
        ledger.append(record)
        self.acknowledged.append(record.line)

    def check(self) -> None:
        """What is found fits what was promised; what was torn is kept; the chain goes on."""
        path, before = self.directory / LEDGER, b""
        if path.exists():
            before = path.read_bytes()
        with Ledger(self.directory, CLOCK, storage=self.disk) as ledger:
            found = [record.line for record in ledger.replay()]
            in_doubt = self.attempted[-1:] if self.attempted != self.acknowledged else []
            assert found[: len(self.acknowledged)] == self.acknowledged
            assert found[len(self.acknowledged) :] in ([], in_doubt)
            self.check_torn(before, found, ledger.repairs)
            self.acknowledged, self.attempted = list(found), list(found)
            self.append(ledger, self.events[len(found) % len(self.events)])
            ledger.mark_head()

    def check_torn(self, before: bytes, found: list[bytes], repairs: tuple[str, ...]) -> None:
        whole = b"".join(line + b"\n" for line in found)
        torn = before.removeprefix(whole) if before.startswith(whole) else before[len(whole) :]
        kept = [file.read_bytes() for file in self.directory.glob("ledger.torn-*")]
        if torn and torn != b"\n":
            assert torn in kept
            assert any("unfinished" in repair for repair in repairs)
        if len(before) == len(whole) and before == whole:
            assert repairs == ()


def calls_of(directory: Path, events: Sequence[Event]) -> dict[Call, int]:
    """How many calls of each kind the undisturbed story makes."""
    directory.mkdir()
    disk = FaultyDisk()
    Story(directory, disk, events).run()
    return dict(disk.calls)


@contextmanager
def fresh(place: Path) -> Iterator[Path]:
    """A directory that is gone afterwards."""
    directory = place / "run"
    directory.mkdir()
    try:
        yield directory
    finally:
        shutil.rmtree(directory)


def disturbed(directory: Path, events: Sequence[Event], fault: Fault) -> Story:
    """The story, with this fault in it, up to where it ends."""
    story = Story(directory, FaultyDisk(fault), events)
    with suppress(LedgerStorageError, PowerCut):
        story.run()
    story.disk.schedule()
    return story


def test_the_story_makes_calls_of_every_kind_but_repairs(place: Path, events: list[Event]) -> None:
    calls = calls_of(place / "count", events)
    assert set(CALLS) - set(calls) <= {"truncate", "remove"}
    assert calls["sync"] > len(events)


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("call", CALLS)
def test_power_cut_at_any_call_loses_nothing_acknowledged(
    place: Path, events: list[Event], call: Call, moment: Literal["before", "torn", "after"]
) -> None:
    for at in range(1, calls_of(place / "count", events).get(call, 0) + 1):
        for seed in SURVIVORS:
            with fresh(place) as directory:
                kept = (0.0, 0.3, 0.999, 1.0)[seed]
                story = disturbed(directory, events, Fault(at, call, None, moment, kept))
                story.disk.power_cut(np.random.default_rng([at, seed]))
                story.check()
                story.disk.power_cut(np.random.default_rng([at, seed, 1]))
                story.check()


@pytest.mark.parametrize("number", ERRORS, ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_an_error_of_any_call_loses_nothing_acknowledged(
    place: Path, events: list[Event], call: Call, number: int
) -> None:
    for at in range(1, calls_of(place / "count", events).get(call, 0) + 1):
        for moment in MOMENTS:
            with fresh(place) as directory:
                story = disturbed(directory, events, Fault(at, call, number, moment))
                story.disk.restart()
                story.check()


@pytest.mark.parametrize("number", ERRORS[:2], ids=errno.errorcode.get)
@pytest.mark.parametrize("call", CALLS)
def test_a_power_cut_some_time_after_an_error_loses_nothing_acknowledged(
    place: Path, events: list[Event], call: Call, number: int
) -> None:
    for at in range(1, calls_of(place / "count", events).get(call, 0) + 1):
        for moment in MOMENTS:
            for seed in SURVIVORS[:2]:
                with fresh(place) as directory:
                    story = disturbed(directory, events, Fault(at, call, number, moment))
                    story.disk.restart()
                    story.check()  # the next process goes on where this one failed
                    story.disk.power_cut(np.random.default_rng([at, seed]))
                    story.check()


@pytest.mark.parametrize("lasting", [False, True], ids=["once", "from then on"])
def test_a_process_killed_at_any_call_loses_nothing_acknowledged(
    place: Path, events: list[Event], lasting: bool
) -> None:
    total = sum(calls_of(place / "count", events).values())
    for at in range(1, total + 1):
        for moment in MOMENTS:
            with fresh(place) as directory:
                story = disturbed(directory, events, Fault(at, None, None, moment, 0.5, lasting))
                story.disk.restart()
                story.check()


def torn_story(directory: Path, events: Sequence[Event], kept: float) -> Story:
    """The power was cut in the middle of the last record: there is something to mend."""
    writes = {1.0: 0.98}.get(kept, kept)
    story = Story(directory, FaultyDisk(), events)
    story.run()
    size = (directory / LEDGER).stat().st_size
    last = len(story.acknowledged[-1]) + 1
    os.truncate(directory / LEDGER, size - last + max(1, round(writes * last)))
    (directory / "head.json").unlink()
    story.disk = FaultyDisk()
    story.acknowledged.pop()
    return story


@pytest.mark.parametrize("moment", MOMENTS)
@pytest.mark.parametrize("kept", [0.1, 0.5, 0.999])
def test_power_cut_while_a_torn_tail_is_mended_loses_nothing_and_keeps_the_tail(
    place: Path, events: list[Event], kept: float, moment: Literal["before", "torn", "after"]
) -> None:
    with fresh(place) as directory:
        story = torn_story(directory, events, kept)
        before = (directory / LEDGER).read_bytes()
        story.check()
        total, torn = story.disk.calls.total(), before[-5:]
    for at in range(1, total + 1):
        for seed in SURVIVORS:
            with fresh(place) as directory:
                story = torn_story(directory, events, kept)
                story.disk.schedule(Fault(at, None, None, moment, kept))
                with suppress(PowerCut):
                    story.check()
                story.disk.power_cut(np.random.default_rng([at, seed]))
                story.disk.schedule()
                story.check()
                everything = [file.read_bytes() for file in directory.iterdir()]
                assert any(torn in data for data in everything), "the torn bytes are gone"


def test_a_disk_that_fills_up_at_any_byte_loses_nothing_acknowledged(
    place: Path, events: list[Event], monkeypatch: pytest.MonkeyPatch
) -> None:
    directory = place / "count"
    calls_of(directory, events)
    used = sum(file.stat().st_size for file in directory.iterdir())
    for capacity in range(0, used + 4096, 499):
        for seed in SURVIVORS[:2]:
            with fresh(place) as directory:
                disk = FaultyDisk(capacity=capacity)
                monkeypatch.setattr(disk, "free_bytes", lambda directory: 1 << 30)
                story = Story(directory, disk, events)
                with suppress(LedgerStorageError):
                    story.run()
                disk.capacity = None
                disk.power_cut(np.random.default_rng([capacity, seed]))
                story.check()


def last_record_without(place: Path, events: list[Event], start: int, size: int) -> Path:
    """A ledger whose last, large record has so many zeros in its file from byte `start` on."""
    calls_of(place / "run", events)
    path = place / "run" / LEDGER
    data = bytearray(path.read_bytes())
    data[start : start + size] = bytes(size)
    path.write_bytes(data)
    (place / "run" / "head.json").unlink()
    return path


def test_a_last_record_that_lacks_a_sector_was_never_finished(
    place: Path, events: list[Event]
) -> None:
    path = last_record_without(place, events, 14 * 1024, 512)
    whole = read(path)
    assert len(whole.records) == len(events) - 1
    with Ledger(path.parent, CLOCK) as ledger:
        assert [record.event for record in ledger.replay()] == events[:-1]
    assert [file.read_bytes() for file in path.parent.glob("ledger.torn-*")] == [whole.torn]


@pytest.mark.parametrize(("start", "size"), [(14 * 1024, 511), (14 * 1024 + 1, 511)])
def test_a_last_record_with_zeros_that_are_no_sector_is_refused(
    place: Path, events: list[Event], start: int, size: int
) -> None:
    path = last_record_without(place, events, start, size)
    with pytest.raises(LedgerCorruptError, match="hash does not follow"):
        read(path)
