"""The settlement of an outcome in the ledger."""

from math import inf, nan

import pytest

from budgets.events import Reserved, Status
from objectives.api import Measurement
from orchestrator.execution.api import Outcome
from orchestrator.run.attempts import settled

RESERVED = Reserved(generation=1, candidate=2, seed=3, attempt=4, reserve_ms=20_000)


def outcome(status: Status = Status.OK, score: float = 0.5) -> Outcome:
    return Outcome(
        attempt_id="a",
        status=status,
        cause="it broke\nin two",
        seconds=1.0001,
        startup_seconds=0.25,
        cpu_seconds=3.0,
        peak_memory_bytes=5000,
        device="cpu",
        measurement=Measurement(score=score, steps=7, metrics={"loss": 2.0, "gap": inf, "x": nan}),
    )


def test_all_that_was_measured_is_on_record_and_a_begun_millisecond_is_charged() -> None:
    end = settled(RESERVED, outcome(), recovered=True)
    assert (end.generation, end.candidate, end.seed, end.attempt) == (1, 2, 3, 4)
    assert (end.status, end.score, end.steps, end.recovered) == (Status.OK, 0.5, 7, True)
    assert (end.seconds, end.charged_ms, end.startup_seconds) == (1.0001, 1001, 0.25)
    assert (end.cpu_seconds, end.peak_memory_bytes, end.device) == (3.0, 5000, "cpu")
    assert "\n" not in end.cause


@pytest.mark.parametrize("score", [nan, inf, -inf])
def test_a_score_that_is_no_number_is_none_whatever_the_outcome_says(score: float) -> None:
    end = settled(RESERVED, outcome(score=score))
    assert (end.status, end.score) == (Status.NAN, None)
