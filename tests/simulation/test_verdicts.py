"""A few of the runs that `scripts/bench/verdicts` makes by the hundred: each verdict is right."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from scripts.bench.promises import (
    CASES,
    FALSE_GO,
    GO,
    Case,
    Promise,
    gain,
    kept,
    named,
    nothing,
)
from tests.simulation.instant import Machine
from tests.simulation.verdicts import Ending, Trial, ending

End = Callable[[Trial, int], Ending]


@pytest.fixture
def end(place: Path) -> End:
    """`end(trial, seed)`: how that run ends."""
    return lambda trial, seed: ending(trial, seed, place / "run")


def case(name: str) -> Case:
    return next(case for case in CASES if case.trial.name == name)


def test_every_case_has_a_name_of_its_own() -> None:
    assert len({case.trial.name for case in CASES}) == len(CASES)


def test_one_seed_has_one_ending(end: End) -> None:
    trial = nothing("noise 1%", noise=0.01)
    first = end(trial, 3)
    assert end(trial, 3) == first
    assert end(trial, 4).measured_gain != first.measured_gain


def test_nothing_is_left_of_a_run(end: End, place: Path) -> None:
    end(named("slow", gain(0.05), Machine(trouble="slow", after=(10, 11))), 0)
    assert list(place.iterdir()) == []


@pytest.mark.parametrize("noise", [0.005, 0.02])
def test_pure_noise_is_no_go(end: End, noise: float) -> None:
    found = end(nothing("noise", noise=noise), 1)
    assert (found.grade, found.decision, found.arm) == ("no_go", "done", "")
    assert found.winner_gain == 0


def test_a_gain_of_two_percent_is_a_go_that_has_most_of_it(end: End) -> None:
    for seed in range(2):
        found = end(gain(0.02), seed)
        assert found.is_go
        assert found.gain is not None
        assert 0.01 < found.gain <= 0.02
        assert found.gain == found.finalists[found.arm]


def test_lucky_evaluations_recommend_nothing(end: End) -> None:
    found = end(case("nothing, noise 0.5%, lucky evaluations").trial, 0)
    assert (found.arm, found.rules) == ("", ("seed_luck",))


def test_a_gain_that_is_gone_on_more_flops_does_not_persist(end: End) -> None:
    assert end(case("0% of 3.0% persists").trial, 0).grade != "go_persists"
    assert end(case("-100% of 3.0% persists").trial, 0).no_go == "does_not_persist"


@pytest.mark.parametrize(
    "name", ["a machine that slows down", "a device that fails", "NaNs around the optimum"]
)
def test_each_trouble_fires_its_own_rule_and_no_other(end: End, name: str) -> None:
    troubled = case(name)
    (found,) = kept(troubled.promises, [end(troubled.trial, 0)])
    assert found.is_kept


def test_a_promise_is_kept_by_the_rate_that_was_seen(end: End) -> None:
    ended = end(named("slow", gain(0.05), Machine(trouble="slow", after=(10, 11))), 0)
    goes = [replace(ended, grade="go")] + 99 * [ended]
    (seldom,) = kept([replace(GO, most=FALSE_GO)], goes)
    assert seldom.is_kept
    assert (seldom.count, seldom.runs) == (1, 100)
    assert seldom.interval == pytest.approx((0.00025, 0.0545), abs=1e-4)
    (often,) = kept([replace(GO, least=0.9)], goes)
    assert not often.is_kept


@pytest.mark.parametrize(
    ("promise", "words"),
    [
        (GO, ""),
        (replace(GO, most=0.01), "at most 1%"),
        (replace(GO, least=0.9), "at least 90%"),
        (replace(GO, least=1.0), "always"),
        (replace(GO, most=0.0), "never"),
    ],
)
def test_what_is_asked_reads_as_words(promise: Promise, words: str) -> None:
    assert promise.asked == words
