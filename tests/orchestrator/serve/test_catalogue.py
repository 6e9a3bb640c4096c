import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.ledger.chain import LEDGER, Record
from budgets.ledger.head import HEAD
from orchestrator.serve import catalogue as module
from orchestrator.serve.catalogue import Catalogue
from orchestrator.serve.entry import Entry
from orchestrator.watch.follow import Follower
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.orchestrator.serve.conftest import Growing

Grow = Callable[..., "Growing"]


@pytest.fixture
def runs(tmp_path: Path) -> Catalogue:
    (tmp_path / "runs").mkdir()
    return Catalogue(tmp_path / "runs", fresh_seconds=0.0)


def only(runs: Catalogue) -> Entry:
    (entry,) = runs.listing().entries
    return entry


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    """The directories whose ledgers were looked into."""
    read: list[Path] = []
    advance = Follower.advance

    def noted(follower: Follower) -> list[Record]:
        read.append(follower.directory)
        return advance(follower)

    monkeypatch.setattr(Follower, "advance", noted)
    return read


def test_a_run_is_listed_as_it_goes_on(runs: Catalogue, grow: Grow) -> None:
    run = grow()
    run.write_until("settled")
    entry = only(runs)
    assert (entry.standing, entry.mood, entry.phase) == ("running", "open", "phase1")
    assert entry.sentence == "0 of 2 generations finished."
    assert entry.progress == pytest.approx(1 / 16)
    run.write_until("generation_told")
    assert only(runs).sentence == "1 of 2 generations finished."
    run.finish()
    entry = only(runs)
    assert (entry.standing, entry.progress) == ("finished", 1.0)
    assert "The plumbing works" in entry.sentence


def test_a_verdict_is_named_and_gives_the_mood(
    runs: Catalogue, grow: Grow, confirmed_run: Path
) -> None:
    grow(of=confirmed_run).finish()
    entry = only(runs)
    assert (entry.verdict, entry.mood) == ("Go; persistence not shown", "caution")
    assert entry.sentence.startswith("Go; persistence not shown: on 2 fresh seeds")


def test_a_run_that_nobody_carries_out_is_interrupted(
    runs: Catalogue, grow: Grow, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(records=12)
    assert only(runs).standing == "running"
    monkeypatch.setattr("orchestrator.records.standing.owner_is_gone", lambda owner: True)
    entry = only(runs)
    assert (entry.standing, entry.mood) == ("interrupted", "trouble")
    assert entry.sentence == (
        "0 of 2 generations finished. Repeat the command that began it to go on."
    )


def test_what_is_running_comes_first_and_then_what_was_heard_of_last(
    runs: Catalogue, grow: Grow, confirmed_run: Path
) -> None:
    grow("a-finished").finish()
    grow("b-finished-later", of=confirmed_run).finish()
    grow("c-running", records=12)
    assert [entry.standing for entry in runs.listing().entries] == ["running"] + ["finished"] * 2
    finished = runs.listing().entries[1:]
    assert finished[0].heard >= finished[1].heard


def test_a_damaged_run_is_listed_with_what_is_wrong_and_the_way_on(
    runs: Catalogue, grow: Grow
) -> None:
    run = grow(records=12)
    ledger = run.directory / LEDGER
    ledger.write_bytes(ledger.read_bytes().replace(b'"sphere"', b'"spherE"', 1))
    entry = only(runs)
    assert (entry.standing, entry.mood, entry.name) == ("damaged", "trouble", "growing")
    assert "record 0 at byte 0: its hash does not follow" in entry.sentence
    assert "begin anew" in entry.sentence


def test_a_ledger_whose_end_was_cut_off_is_damaged(
    runs: Catalogue, finished_run: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "runs/phase1/short"
    shutil.copytree(finished_run, copy)
    cut(copy, -3, keep_head=True)
    assert (copy / HEAD).exists()
    assert "is rolled back by 3 records" in only(runs).sentence


@pytest.mark.parametrize("data", [b"", b"{}\n", b"\x00" * 600, b"\xff\xfe nonsense"])
def test_a_file_that_is_no_ledger_stops_nobody(
    runs: Catalogue, grow: Grow, tmp_path: Path, data: bytes
) -> None:
    grow("whole").finish()
    other = tmp_path / "runs/phase1/other"
    other.mkdir()
    (other / LEDGER).write_bytes(data)
    standings = {entry.name: entry.standing for entry in runs.listing().entries}
    assert standings.pop("min-sphere-s1") == "finished"
    assert standings["other"] in ("empty", "damaged")


def test_a_linked_ledger_is_not_read(runs: Catalogue, finished_run: Path, tmp_path: Path) -> None:
    linked = tmp_path / "runs/phase1/linked"
    linked.mkdir(parents=True)
    (linked / LEDGER).symlink_to(finished_run / LEDGER)
    assert "is a symbolic link" in only(runs).sentence


def test_a_run_that_is_mended_is_read_again(runs: Catalogue, grow: Grow) -> None:
    run = grow(records=12)
    ledger = run.directory / LEDGER
    whole = ledger.read_bytes()
    ledger.write_bytes(whole.replace(b'"sphere"', b'"spherE"', 1))
    assert only(runs).standing == "damaged"
    ledger.write_bytes(whole)
    assert only(runs).standing == "running"


def test_a_run_that_appears_is_listed_and_one_that_vanishes_is_not(
    runs: Catalogue, grow: Grow
) -> None:
    assert runs.listing().entries == ()
    run = grow(records=12)
    id_ = only(runs).id
    assert runs.find(id_) is not None
    shutil.rmtree(run.directory)
    assert runs.listing().entries == ()
    assert runs.find(id_) is None


def test_only_what_has_changed_is_read(runs: Catalogue, grow: Grow, reads: list[Path]) -> None:
    over, growing = grow("over"), grow("growing", records=12)
    over.finish()
    runs.listing()
    assert set(reads) == {over.directory, growing.directory}
    reads.clear()
    runs.listing()
    assert reads == []
    growing.write()
    runs.listing()
    assert reads == [growing.directory]


def test_readers_within_a_second_share_one_look(
    grow: Grow, tmp_path: Path, reads: list[Path]
) -> None:
    now = [0.0]
    run = grow(records=12)
    runs = Catalogue(tmp_path / "runs", clock=lambda: now[0])
    first = runs.listing()
    run.write()
    assert [runs.listing() for _ in range(50)] == [first] * 50
    assert len(reads) == 1
    now[0] = 1.0
    runs.listing()
    assert len(reads) == 2


def test_of_hundreds_of_ledgers_a_look_reads_what_it_has_time_for_and_the_rest_follows(
    grow: Grow, tmp_path: Path
) -> None:
    now = [0.0]

    def clock() -> float:  # each look at the clock is a while later
        now[0] += module.PATIENCE_SECONDS / 2
        return now[0]

    for number in range(4):
        grow(f"run-{number}").finish()
    runs = Catalogue(tmp_path / "runs", clock=clock, fresh_seconds=0.0)
    first = runs.listing()
    waiting = [entry for entry in first.entries if entry.standing == "unread"]
    assert 0 < len(waiting) == first.unread < 4
    assert {entry.sentence for entry in waiting} == {"Being read."}
    runs.settle(10.0)
    last = runs.listing()
    assert last.unread == 0
    assert {entry.standing for entry in last.entries} == {"finished"}


def test_a_run_that_goes_on_does_not_wait_for_those_that_nobody_has_read(
    grow: Grow, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = grow("going", records=12)
    runs = Catalogue(tmp_path / "runs", fresh_seconds=0.0)
    assert only(runs).standing == "running"
    monkeypatch.setattr(module, "PATIENCE_SECONDS", -1.0)
    monkeypatch.setattr(Catalogue, "_read_rest", lambda self: None)
    grow("other").finish()
    run.finish()
    found = {entry.name: entry.standing for entry in runs.listing().entries}
    assert found == {"min-sphere-s1": "finished", "other": "unread"}
