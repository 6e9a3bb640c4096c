"""Slots stay with their evaluations, and what ended last is known."""

from budgets.events import Status
from tests.budgets.conftest import reserved, settled
from tests.orchestrator.watch.conftest import Watched


def slots(run: Watched) -> dict[int, int]:
    """By candidate."""
    return {int(key[2] or 0): slot for key, slot in run.noted.slots.items()}


def test_an_attempt_gets_the_lowest_slot_that_is_free(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.reserve(1)
    assert slots(watched) == {0: 0, 1: 1}
    watched.end(0)
    watched.reserve(2)
    assert slots(watched) == {1: 1, 2: 0}


def test_an_attempt_keeps_its_slot_while_others_come_and_go(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.reserve(1)
    watched.end(0)
    assert slots(watched) == {1: 1}


def test_what_is_reserved_before_its_device_is_settled_takes_over_its_slot() -> None:
    run = Watched(workers=2)
    run.ask()
    for candidate in range(4):  # both devices have ended theirs, and nobody has settled them
        run.reserve(candidate)
    assert slots(run) == {0: 0, 1: 1, 2: 2, 3: 3}
    run.end(1)
    assert slots(run) == {0: 0, 2: 1, 3: 3}
    run.end(0)
    assert slots(run) == {2: 1, 3: 0}
    run.end(3)
    run.end(2)
    run.tell()
    run.ask()
    run.reserve(0)
    assert slots(run) == {0: 0}


def test_a_slot_is_idle_since_its_attempt_was_settled(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.at(3.5)
    watched.end(0)
    assert watched.noted.idle_since == {0: watched.now}
    watched.reserve(1)
    assert watched.noted.idle_since == {}


def test_another_session_knows_nothing_of_when_slots_became_idle(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0)
    watched.open()
    assert watched.noted.idle_since == {}


def test_the_last_attempts_are_kept_the_last_one_first(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.0)
    watched.evaluate(1, Status.NAN)
    watched.evaluate(2, 2.0)
    assert [one.candidate for one in watched.noted.recent] == [2, 1, 0]


def test_a_generation_is_counted_anew_until_it_is_told(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.0)
    assert watched.noted.tally(watched.current).scores == (1.0,)
    watched.evaluate(1, 3.0)
    watched.evaluate(2, Status.NAN)
    watched.evaluate(3, Status.OOM)
    generation = watched.current
    found = watched.noted.tally(generation)
    assert found.scores == (1.0, 3.0)
    assert found.best == 1.0
    assert found.statuses == {Status.OK: 2, Status.NAN: 1, Status.OOM: 1}
    watched.tell()
    assert watched.noted.tally(generation) == found
    assert watched.noted.tally(generation) is watched.noted.tally(generation)


def test_attempts_that_are_owed_again_are_lost_and_no_results(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, Status.LOST)
    watched.evaluate(0, 1.0)
    found = watched.noted.tally(watched.current)
    assert (found.lost, found.scores) == (1, (1.0,))


def test_a_watcher_that_comes_later_gives_slots_in_the_order_of_reservations() -> None:
    run = Watched()
    run.ask()
    run.reserve(2)
    run.reserve(1)
    run.noted.slots.clear()
    rows = run.snapshot().devices
    assert [row.what for row in rows] == ["candidate 2", "candidate 1"]


def test_a_settlement_of_what_was_never_noted_is_no_error(watched: Watched) -> None:
    watched.ask()
    reservation = reserved(0)
    super(Watched, watched).say(reservation)
    watched.say(settled(reservation))
    assert watched.noted.slots == {}
