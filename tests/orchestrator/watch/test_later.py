"""Between two records only time passes."""

from datetime import timedelta

import pytest

from orchestrator.watch.later import MOST_ROWS, later
from tests.budgets.conftest import small_plan
from tests.orchestrator.watch.conftest import BEGAN, NOBODY, Watched


def test_it_is_what_a_snapshot_of_that_moment_would_be(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.at(1.0).reserve(1)
    watched.end(0)
    for seconds in (1.5, 2.9, 3.1, 60.0):
        found = later(watched.snapshot(1.2), BEGAN + timedelta(seconds=seconds))
        then = watched.snapshot(seconds)
        assert found.model_copy(update={"pace": then.pace}) == then
        for name in ("elapsed_hours", "remaining_hours"):
            assert getattr(found.pace, name) == pytest.approx(getattr(then.pace, name))
        assert found.pace.eta is not None
        assert then.pace.eta is not None
        assert abs(found.pace.eta - then.pace.eta) < timedelta(seconds=0.01)


def test_a_run_that_nobody_carries_out_does_not_get_older() -> None:
    run = Watched(owner=NOBODY)
    run.ask()
    run.reserve(0)
    before = run.snapshot(1.0)
    after = later(before, BEGAN + timedelta(seconds=100))
    assert after.devices == before.devices
    assert after.pace.elapsed_hours == before.pace.elapsed_hours


def test_a_clock_that_was_set_back_makes_nothing_younger(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    before = watched.snapshot(5.0)
    assert later(before, BEGAN).devices == before.devices


def test_of_hundreds_of_devices_those_nearest_to_their_end_get_older() -> None:
    envelope = {"population": 300, "generations": 1, "seeds_per_candidate": 1}
    run = Watched(small_plan(resolved=envelope, caps={"evaluations": 300}), workers=300)
    run.ask()
    for candidate in range(300):
        run.at(0.001 * candidate).reserve(candidate)
    found = later(run.snapshot(1.0), BEGAN + timedelta(seconds=2))
    seconds = [row.seconds for row in found.devices]
    assert all(s is not None and s > 1 for s in seconds[:MOST_ROWS])
    assert len(seconds) == 300
