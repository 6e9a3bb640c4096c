from collections.abc import Callable
from pathlib import Path
from threading import Event, Thread

import pytest

from budgets.ledger.chain import LedgerCorruptError
from objectives.keeping import keeps
from orchestrator.serve.reports import MOST_KEPT, Built, Reports

RUN = Path("run")
WAIT = 5.0
"""Seconds that nothing here takes."""


def made(reports: Reports, stage: str, id_: str = "a") -> Built | None:
    """What readers see once nothing is being made."""
    reports.last(id_, RUN, stage)
    reports.settle(WAIT)
    return reports.last(id_, RUN, stage)


@pytest.fixture
def builds() -> list[Path]:
    return []


@pytest.fixture
def build(builds: list[Path]) -> Callable[[Path], str]:
    def report(directory: Path) -> str:
        builds.append(directory)
        return f"<p>{len(builds)}"

    return report


def test_a_report_is_made_when_the_run_has_come_further_and_has_rested(
    build: Callable[[Path], str], builds: list[Path]
) -> None:
    now = [0.0]
    reports = Reports(build, 15.0, lambda: now[0])
    assert made(reports, "one") == Built(b"<p>1", "one")
    now[0] = 14.0
    assert made(reports, "two") == Built(b"<p>1", "one")
    now[0] = 15.0
    assert made(reports, "one") == Built(b"<p>1", "one")
    assert made(reports, "two") == Built(b"<p>2", "two")
    assert builds == [RUN, RUN]


def test_who_comes_first_waits_and_many_who_wait_cost_one_making() -> None:
    begun, may_end = Event(), Event()
    count = []

    def build(directory: Path) -> str:
        count.append(directory)
        begun.set()
        assert may_end.wait(WAIT)
        return "<p>"

    reports = Reports(build, 0.0)
    reports.last("a", RUN, "one")
    assert begun.wait(WAIT)
    assert reports.wait("a", 0.01) is None
    found: list[Built | None] = []

    def ask() -> None:
        reports.last("a", RUN, "one")
        found.append(reports.wait("a", WAIT))

    readers = [Thread(target=ask) for _ in range(20)]
    for reader in readers:
        reader.start()
    may_end.set()
    for reader in readers:
        reader.join()
    assert found == [Built(b"<p>", "one")] * 20
    assert count == [RUN]


def test_who_has_seen_one_does_not_wait_for_the_next() -> None:
    may_end = Event()
    may_end.set()

    def build(directory: Path) -> str:
        assert may_end.wait(WAIT)
        return "<p>"

    reports = Reports(build, 0.0)
    first = made(reports, "one")
    may_end.clear()
    assert reports.last("a", RUN, "two") == first
    assert reports.wait("a", WAIT) == first
    may_end.set()
    reports.settle(WAIT)


def test_a_ledger_that_was_damaged_meanwhile_says_so_and_is_tried_again() -> None:
    tries = iter("12")

    def build(directory: Path) -> str:
        if next(tries) == "1":
            raise LedgerCorruptError("<damaged>")
        return "<p>"

    reports = Reports(build, 0.0)
    reports.last("a", RUN, "one")
    assert reports.wait("a", WAIT) == Built(b"<p>&lt;damaged&gt;</p>", "")
    reports.settle(WAIT)
    assert made(reports, "one") == Built(b"<p>", "one")


def test_only_some_reports_are_kept(build: Callable[[Path], str], builds: list[Path]) -> None:
    reports = Reports(build, 3600.0)
    for number in range(MOST_KEPT + 1):
        assert made(reports, "one", f"run {number}") is not None
    assert made(reports, "one", f"run {MOST_KEPT}") is not None
    assert len(builds) == MOST_KEPT + 1
    assert made(reports, "one", "run 0") is not None
    assert len(builds) == MOST_KEPT + 2


def test_what_looks_keeps_nothing_it_has_prepared() -> None:
    assert made(Reports(lambda directory: str(keeps()), 0.0), "one") == Built(b"False", "one")


def test_another_report_has_another_version() -> None:
    assert Built(b"a", "one").version == Built(b"a", "two").version
    assert Built(b"a", "one").version != Built(b"b", "one").version
