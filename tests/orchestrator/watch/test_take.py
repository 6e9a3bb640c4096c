"""A snapshot says what the records say, and how time has passed since."""

from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from budgets.events import Fired, Overridden, Status, Withdrawn
from budgets.fold import apply, begin
from budgets.ledger.chain import LEDGER, read
from budgets.report.model import budget_report
from budgets.terms import Envelope
from orchestrator.watch.noted import Noted
from orchestrator.watch.take import snapshot
from tests.budgets.conftest import confirmed_plan, small_plan
from tests.orchestrator.watch.conftest import BEGAN, Watched

GOLDEN = sorted((Path(__file__).parents[2] / "golden").glob("schema_*"))


@pytest.mark.parametrize("directory", GOLDEN, ids=lambda path: path.name)
def test_at_every_record_of_every_kind_of_run_there_is_a_snapshot_that_adds_up(
    directory: Path,
) -> None:
    first, *others = read(directory / LEDGER).records
    state, noted = begin(first), Noted()
    for record in others:
        apply(state, record)
        at = datetime.fromisoformat(record.at)
        noted.note(state, record.event, at)
        found = snapshot(state, noted, at)
        counts = found.counts
        assert counts.settled == state.accounts.evaluations + state.accounts.apart
        assert counts.settled == counts.ok + sum(counts.failed.values())
        assert counts.in_flight == len(state.accounts.holds)
    assert found.standing == "finished"
    assert found.course == "over"
    assert found.devices == ()
    assert found.counts.to_come == 0
    assert found.sentence == budget_report(state).sentence


def test_a_snapshot_that_was_noted_all_along_is_the_one_of_whoever_comes_last() -> None:
    records = read(GOLDEN[-2] / LEDGER).records
    state, noted = begin(records[0]), Noted()
    now = BEGAN
    for record in records[1:]:
        apply(state, record)
        noted.note(state, record.event, now)
        if record.seq % 7 == 0:
            snapshot(state, noted, now)
    late = snapshot(state, Noted(), now)
    assert snapshot(state, noted, now).model_copy(update={"recent": ()}) == late


def test_evaluations_are_counted_by_how_they_ended(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.0)
    watched.evaluate(1, Status.NAN)
    watched.evaluate(2, Status.LOST)
    watched.reserve(2)
    counts = watched.snapshot().counts
    assert (counts.ok, counts.failed, counts.lost) == (1, {"nan": 1}, 1)
    assert (counts.settled, counts.in_flight, counts.to_come) == (2, 1, 5)


def test_what_the_verdict_needs_is_to_come_beside_the_search() -> None:
    run = Watched(confirmed_plan())
    assert run.snapshot().counts.to_come == 12 + 45  # its generations, and the confirmation


def test_a_search_that_is_over_has_nothing_of_itself_to_come() -> None:
    run = Watched(confirmed_plan(confirmation=None))
    run.finish()
    assert run.snapshot().counts.to_come == 0


def test_it_says_which_generation_is_in_progress(watched: Watched) -> None:
    assert watched.snapshot().course == "generation 0 (1 of 2)"
    assert watched.snapshot().generation == 0
    watched.ask()
    assert watched.snapshot().course == "generation 0 (1 of 2)"
    assert watched.snapshot().generation == 1
    for candidate in range(4):
        watched.evaluate(candidate)
    watched.tell()
    assert watched.snapshot().course == "generation 1 (2 of 2)"


def test_after_the_search_it_says_what_is_compared_on_fresh_seeds() -> None:
    run = Watched(confirmed_plan())
    run.finish()
    run.panel({"average": (11, 12, 13), "mean": (11, 12, 13)})
    run.compare_one(0, 11, 0.5)
    run.compare_one(0, 12, 0.7)
    found = run.snapshot()
    assert found.course == "the finalists on fresh seeds"
    first, second = found.arms
    assert (first.name, first.settled, first.planned, first.mean) == ("average", 2, 3, 0.6)
    assert (second.name, second.settled, second.mean) == ("mean", 0, None)


@pytest.mark.parametrize(
    ("score", "outside"), [(0.79, "better"), (0.81, None), (1.19, None), (1.21, "worse")]
)
def test_a_mean_beyond_two_deviations_is_outside_the_noise(
    score: float, outside: str | None, watched: Watched
) -> None:
    watched.score(score, score, score, score)  # the baseline scores 1, with an sd of 0.1
    watched.tell()
    scores = watched.snapshot().scores
    assert scores.band == pytest.approx((0.8, 1.2))
    assert scores.generations[0].outside == outside
    assert scores.generations[0].mean == pytest.approx(score)


def test_best_and_luck_are_those_of_the_report(watched: Watched) -> None:
    watched.score(0.9, 1.0, Status.NAN, 1.1)
    watched.tell()
    found, report = watched.snapshot().scores, budget_report(watched.state)
    assert (found.best, found.best_by_luck) == (report.luckiest_score, report.luckiest_of_noise)
    assert found.best == 0.9


def test_a_generation_in_progress_shows_what_has_come_so_far(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.0)
    watched.evaluate(1, 2.0)
    (own,) = watched.snapshot().scores.generations
    assert (own.mean, own.best, own.healthy, own.is_told) == (1.5, 1.0, 2, False)


def test_of_several_seeds_a_told_generation_shows_candidates() -> None:
    envelope = Envelope(population=4, generations=2, seeds_per_candidate=2)
    run = Watched(small_plan(resolved=envelope, caps={"evaluations": 16}))
    run.ask(seeds=(5, 6))
    for candidate in range(4):
        run.evaluate(candidate, 1.0, seed=5)
        run.evaluate(candidate, Status.NAN if candidate == 3 else 2.0, seed=6)
    run.tell()
    (own,) = run.snapshot().scores.generations
    assert (own.mean, own.best, own.healthy, own.failed) == (1.5, 1.5, 3, 1)


def test_without_a_calibration_there_is_no_band() -> None:
    run = Watched(small_plan(calibration=None))
    run.score(1.0, 1.0, 1.0, 1.0)
    scores = run.snapshot().scores
    assert (scores.baseline, scores.band, scores.best_by_luck) == (None, None, None)
    assert scores.generations[0].outside is None


def test_what_runs_comes_nearer_to_its_end_as_time_passes(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    watched.reserve(1)
    first, later = watched.snapshot(0).pace, watched.snapshot(1.5).pace
    assert first.remaining_hours is not None
    assert later.remaining_hours is not None
    assert 3600 * first.remaining_hours == pytest.approx(8)  # 8 evaluations of 2 s on 2 devices
    assert 3600 * later.remaining_hours == pytest.approx(6.5)
    assert first.eta == later.eta == BEGAN + timedelta(seconds=8)


def test_what_takes_longer_than_expected_brings_the_end_no_nearer(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    overdue = watched.snapshot(60).pace
    assert overdue.remaining_hours is not None
    assert 3600 * overdue.remaining_hours == pytest.approx(6)
    assert overdue.eta == BEGAN + timedelta(seconds=66)
    assert 3600 * overdue.elapsed_hours == pytest.approx(60)


def test_a_run_that_this_process_carries_out_is_running(watched: Watched) -> None:
    found = watched.snapshot()
    assert found.standing == "running"
    assert f"pid {watched.owner.pid}" in found.whose
    assert not found.is_over


def test_rules_overrides_and_devices_are_told_the_last_one_first(watched: Watched) -> None:
    fired = Fired(
        rule="crash_rate", generation=0, decision="pause", observed=1, limit=0, evidence="one"
    )
    watched.say(fired, replace(fired, evidence="two"))
    watched.say(Overridden(rule="crash_rate", generation=0, reason="I looked"))
    watched.say(Withdrawn(device="GPU-1", why="it fell off the bus"))
    found = watched.snapshot()
    assert found.triggers == ("crash_rate: two", "crash_rate: one")
    assert found.overrides == ("crash_rate: I looked",)
    assert found.withdrawn == ("GPU-1: it fell off the bus",)


def test_the_last_attempts_are_told_with_their_causes(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.0)
    watched.evaluate(1, Status.LOST)
    last, first = watched.snapshot().recent
    assert (first.what, first.score, first.is_again) == ("candidate 0", 1.0, False)
    assert (last.status, last.cause, last.is_again) == (Status.LOST, "it was lost", True)


def test_a_snapshot_is_json_and_back(watched: Watched) -> None:
    watched.ask()
    watched.reserve(0)
    document = watched.snapshot(1).model_dump(mode="json")
    assert document["devices"][0]["what"] == "candidate 0"
    assert document["devices"][0]["is_overdue"] is False
    assert document["counts"]["in_flight"] == 1
