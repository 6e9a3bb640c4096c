"""The first starts of a campaign are apart from each other."""

from types import SimpleNamespace
from typing import Any

from orchestrator.campaign.request import Staggered


class Watch:
    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def in_flight(count: int) -> Any:
    holds = dict.fromkeys(range(count))
    return SimpleNamespace(accounts=SimpleNamespace(holds=holds))


def test_one_more_is_admitted_every_so_many_seconds() -> None:
    watch = Watch()
    pace = Staggered(8.0, watch)

    assert pace.admits(in_flight(0))
    assert not pace.admits(in_flight(1))
    watch.seconds += 7.9
    assert not pace.admits(in_flight(1))
    watch.seconds += 0.1
    assert pace.admits(in_flight(1))
    assert not pace.admits(in_flight(2))


def test_once_all_have_started_nothing_waits() -> None:
    watch = Watch()
    pace = Staggered(8.0, watch)
    pace.admits(in_flight(0))
    watch.seconds += 8 * 3

    assert all(pace.admits(in_flight(count)) for count in range(4))


def test_without_a_stagger_everything_starts_at_once() -> None:
    pace = Staggered(0.0, Watch())

    assert all(pace.admits(in_flight(count)) for count in range(100))
