"""What a program says, line by line."""

import math
from collections.abc import Callable
from typing import Any

import pytest

from objectives.api import DivergedError, ObjectiveError, OutOfMemoryError
from objectives.command.hearing import MOST_METRICS, Hearing, number
from objectives.command.objective import CommandObjective
from objectives.programs.ended import ProgramFailedError

Make = Callable[..., CommandObjective]

BLOCK = """
---
val_bpb:          0.997900
training_seconds: 300.1
peak_vram_mb:     45060.2
num_steps:        953
depth:            8
""".splitlines()
"""As karpathy/autoresearch prints it."""


@pytest.fixture
def listen(make: Make) -> Callable[..., Hearing]:
    def hear(*lines: str, **settings: Any) -> Hearing:
        hearing = Hearing(make(**settings).config)
        for line in lines:
            hearing.hear(line)
        return hearing

    return hear


Listen = Callable[..., Hearing]


def test_a_block_is_a_score_and_metrics(listen: Listen) -> None:
    hearing = listen(*BLOCK, score="val_bpb")
    assert hearing.printed["val_bpb"] == 0.9979
    assert hearing.metrics() == {
        "training_seconds": 300.1,
        "peak_vram_mb": 45060.2,
        "num_steps": 953.0,
        "depth": 8.0,
    }


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("loss: 0.5", 0.5),
        ("loss=0.5", 0.5),
        ("  loss  =  -1e-3  ", -1e-3),
        ("loss : +7", 7.0),
        ("loss:\t1E5", 1e5),
        ("loss: inf", math.inf),
        ("loss: -Infinity", -math.inf),
    ],
)
def test_a_number_is_read_as_programs_print_it(line: str, value: float, listen: Listen) -> None:
    assert listen(line, score="loss").printed == {"loss": value}


def test_nan_is_a_number_here(listen: Listen) -> None:
    assert math.isnan(listen("loss: NaN", score="loss").printed["loss"])


@pytest.mark.parametrize(
    "line",
    [
        *("loss: none", "loss", "loss: ", "my loss: 1", "loss_2: 1", "loss: 1 2", "loss: 1,000"),
        *("x: loss: 1", "loss: 1_000", "loss: 0x10", "loss == 1", "step 3 | loss: 1"),
    ],
)
def test_what_is_no_such_line_is_none(line: str, listen: Listen) -> None:
    assert "loss" not in listen(line, score="loss").printed


def test_a_key_may_be_several_words(listen: Listen) -> None:
    hearing = listen("Validation bpb: 3.2", score="Validation bpb")
    assert hearing.printed == {"Validation bpb": 3.2}


def test_what_is_said_last_counts(listen: Listen) -> None:
    hearing = listen("loss: 1", "loss: 2", "loss: none", "a: 1", "a: 3", score="loss")
    assert hearing.printed == {"loss": 2.0, "a": 3.0}


@pytest.mark.parametrize("last", ["loss: 0.4 (best)", "loss = 1,5", "loss: diverged"])
def test_a_last_word_that_is_no_number_is_remembered(last: str, listen: Listen) -> None:
    said = last.partition(" ")[2].removeprefix("= ")
    assert listen("loss: 0.5", last, score="loss").unread == {"loss": said}
    assert listen("loss: 0.5", last, "loss: 0.3", "other: x", "loss:", score="loss").unread == {}


def test_only_so_many_names_are_kept_but_the_wanted_ones_always(listen: Listen) -> None:
    lines = [f"key{n}: {n}" for n in range(10 * MOST_METRICS)]
    hearing = listen(*lines, "key0: 7", "loss: 1", score="loss")
    assert len(hearing.metrics()) == MOST_METRICS
    assert hearing.metrics()["key0"] == 7.0
    assert hearing.printed["loss"] == 1.0


def test_names_that_are_no_words_and_numbers_that_are_none_are_no_metrics(listen: Listen) -> None:
    lines = ("=cmd(): 1", "<b>: 1", "2x: 1", "a b: 1", "x" * 65 + ": 1", "good: nan", "same.x: 1")
    assert listen(*lines, score="loss").metrics() == {"same.x": 1.0}


def test_a_block_is_kept_only_where_the_score_is_in_one(listen: Listen) -> None:
    score = {"pattern": "loss is (.*)"}
    assert listen(*BLOCK, score=score).metrics() == {}
    hearing = listen(*BLOCK, score=score, measures={"steps": "num_steps"})
    assert hearing.printed == {"num_steps": 953.0}


def test_of_a_pattern_the_last_match_on_any_line_counts(listen: Listen) -> None:
    pattern = r"loss (\S+)"
    hearing = listen("loss 1", "a loss 2 b loss 3 c", "lose 4", score={"pattern": pattern})
    assert hearing.matched == {pattern: "3"}


def test_a_group_that_took_no_part_is_empty(listen: Listen) -> None:
    assert listen("loss", score={"pattern": "loss( .)?"}).matched == {"loss( .)?": ""}


def test_finite_numbers_are_passed_on_as_they_come(make: Make) -> None:
    hearing = Hearing(make(score="loss").config)
    assert hearing.hear("loss: 1") == {"loss": 1.0}
    assert hearing.hear("lr: 0.1") == {"lr": 0.1}
    assert hearing.hear("loss: nan") == {}
    assert hearing.hear("hello") == {}


@pytest.mark.parametrize(
    ("kind", "error"),
    [("nan", DivergedError), ("oom", OutOfMemoryError), ("error", ProgramFailedError)],
)
def test_a_declared_failure_is_what_was_declared(
    kind: str, error: type[ObjectiveError], listen: Listen
) -> None:
    with pytest.raises(error, match=r"it said 'loss is nan now', which 'loss.*nan' is"):
        listen("loss is 3", " loss is nan now", failures={"other": "error", "loss.*nan": kind})


@pytest.mark.parametrize(
    ("text", "expected"), [("1", 1.0), ("-.5e3", -500.0), ("1_0", None), ("", None), ("x", None)]
)
def test_numbers(text: str, expected: float | None) -> None:
    assert number(text) == expected
