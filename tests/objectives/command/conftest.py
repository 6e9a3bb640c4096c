"""Small real programs as objectives."""

import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from objectives.api import Context, Measurement
from objectives.command.objective import CommandObjective

PYTHON = (sys.executable, "-I", "-S", "-c")
"""A Python that starts in 20 ms."""

LR = {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003}
SAY_ONE = "print('score: 1')"

Make = Callable[..., CommandObjective]


@pytest.fixture
def make(place: Path) -> Make:
    """An objective that runs `program`, or `argv`, with one knob `lr` unless others are given."""

    def objective(program: str = SAY_ONE, **settings: Any) -> CommandObjective:
        usual = {
            "argv": [*PYTHON, program],
            "directory": str(place),
            "knobs": {"lr": LR},
            "score": "score",
        }
        return CommandObjective.from_settings({**usual, **settings})

    return objective


@pytest.fixture
def beats() -> list[Mapping[str, float]]:
    return []


@pytest.fixture
def context(tmp_path: Path, beats: list[Mapping[str, float]]) -> Context:
    directory = tmp_path / "evaluation"
    directory.mkdir()
    return Context(directory, "cpu", 1, beats.append, "this-attempt")


@pytest.fixture
def measure(make: Make, context: Context) -> Callable[..., Measurement]:
    """Makes the objective and evaluates its baseline on seed 7."""

    def evaluate(program: str = SAY_ONE, **settings: Any) -> Measurement:
        objective = make(program, **settings)
        knobs = {knob.name: knob.baseline for knob in objective.space.knobs}
        return objective.evaluate(knobs, 7, context)

    return evaluate
