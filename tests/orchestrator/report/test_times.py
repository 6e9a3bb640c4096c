"""The run's own clock: sessions laid end to end, and what a later session finds of an earlier."""

from collections.abc import Callable
from pathlib import Path

import pytest

from budgets.events import Reserved
from budgets.ledger.chain import LEDGER, read
from orchestrator.report.collect import report
from orchestrator.report.times import Moment, RunClock, clock_of, folded
from tests.ledgers import events_of


def test_sessions_follow_each_other_without_a_break() -> None:
    clock = RunClock((0, 1000, 1500))

    assert clock.at(Moment(0, 400)) == 400
    assert clock.at(Moment(1, 400)) == 1400
    assert clock.end_ms == clock.ended(1) == 1500


def test_nothing_is_later_than_the_end_of_its_session() -> None:
    assert RunClock((0, 1000, 1500)).at(Moment(0, 1700)) == 1000


def test_a_run_that_nobody_opened_has_no_time() -> None:
    clock = RunClock((0,))

    assert clock.at(Moment(0, 7)) == clock.end_ms == 0


def test_the_moment_of_every_record_is_noted_that_a_state_forgets(finished_run: Path) -> None:
    records = read(finished_run / LEDGER).records
    state, noted = folded(records)

    assert noted.first_at == records[0].at
    assert noted.last_at == records[-1].at
    kinds = [record.event.kind for record in records]
    assert len(noted.reserved) == kinds.count("reserved")
    assert len(noted.settled) == kinds.count("settled")
    assert len(noted.told) == kinds.count("generation_told")
    assert len(noted.opened_at) == len(state.opened) == 1
    assert clock_of(state).end_ms == records[-1].elapsed_ms


@pytest.fixture
def taken_up(run: Path, cut: Callable[..., None], resume: Callable[..., object]) -> Path:
    """A run whose process died with an evaluation in flight, and which was then finished."""
    events = events_of(run)
    in_flight = [place for place, event in enumerate(events) if isinstance(event, Reserved)][6]
    cut(run, in_flight + 1)
    resume()
    return run


def test_a_second_session_begins_where_the_first_one_was_last_heard_of(taken_up: Path) -> None:
    found = report(taken_up)

    first, second = found.identity.sessions
    assert first.began == 0.0
    assert second.began == first.ended
    assert second.opened > first.opened


def test_what_a_later_session_found_ended_when_it_says_it_did(taken_up: Path) -> None:
    found = report(taken_up)

    (late,) = [one for one in found.evaluations if one.recovered and one.session == 0]
    first, second = found.identity.sessions
    assert first.began < late.began <= late.ended <= first.ended == second.began
    assert late.ended - late.began == pytest.approx(late.seconds, abs=0.002)
