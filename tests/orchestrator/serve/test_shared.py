from threading import Barrier, Event, Thread

import pytest

from orchestrator.serve.shared import Shared


def test_it_is_made_anew_only_when_it_is_old() -> None:
    now, made = [0.0], iter(range(9))
    shared = Shared(lambda: next(made), 1.0, lambda: now[0])
    assert [shared.get(), shared.get()] == [0, 0]
    now[0] = 1.0
    assert [shared.get(), shared.get()] == [1, 1]


def test_many_who_ask_at_once_cost_one_making() -> None:
    count, together = [0], Barrier(20)

    def make() -> int:
        count[0] += 1
        return count[0]

    shared = Shared(make, 3600.0)

    def ask() -> None:
        together.wait()
        assert shared.get() == 1

    threads = [Thread(target=ask) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert count == [1]


def test_nobody_waits_for_the_one_who_makes_another() -> None:
    making, may_end, values = Event(), Event(), iter(["first", "second"])

    def make() -> str:
        value = next(values)
        if value == "second":
            making.set()
            assert may_end.wait(5)
        return value

    shared = Shared(make, 0.0)
    assert shared.get() == "first"
    maker = Thread(target=shared.get)
    maker.start()
    assert making.wait(5)
    assert shared.get() == "first"
    may_end.set()
    maker.join()


def test_one_that_cannot_be_made_is_tried_again() -> None:
    tries = iter("12")

    def make() -> int:
        found = int(next(tries))
        if found == 1:
            raise ValueError("not yet")
        return found

    shared = Shared(make, 3600.0)
    with pytest.raises(ValueError, match="not yet"):
        shared.get()
    assert shared.get() == 2
