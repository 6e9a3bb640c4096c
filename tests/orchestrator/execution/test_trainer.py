"""The process that evaluates: how exceptions and answers become a report."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Status
from objectives import registry
from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from orchestrator.execution import api, trainer
from orchestrator.execution.api import Attempt

Make = Callable[..., Attempt]
Edited = type("EditedError", (SetupError,), {"__module__": "test_trainer"})
Torch = type("OutOfMemoryError", (RuntimeError,), {"__module__": "test_trainer"})


class Scripted:
    """An objective whose evaluation is the given function of its context."""

    def __init__(self, evaluate: Callable[[Context], Any]) -> None:
        self._evaluate = evaluate

    def evaluate(self, _knobs: Mapping[str, float], _seed: int, context: Context) -> Any:
        return self._evaluate(context)


def reported(
    monkeypatch: pytest.MonkeyPatch, attempt: Attempt, evaluate: Callable[[Context], Any]
) -> api.Report:
    monkeypatch.setattr(registry, "load", lambda _spec: Scripted(evaluate))
    return trainer.evaluate(attempt, "cpu", 1)


def raising(error: BaseException) -> Callable[[Context], Any]:
    def evaluate(context: Context) -> Any:
        raise error

    return evaluate


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (DivergedError("loss is inf"), "nan DivergedError: loss is inf"),
        (OutOfMemoryError("full"), "oom OutOfMemoryError: full"),
        (SetupError("no data: 'x'\nsee there"), "error SetupError: no data: 'x'"),
        (SetupError(), "error SetupError"),
        (Edited("train.py"), "error SetupError: train.py"),
        (
            ProgramFailedError("exited with status 1: a: b"),
            "error ProgramFailedError: exited with status 1: a: b",
        ),
        (MemoryError(), "oom MemoryError"),
        (Torch("CUDA out of memory"), "oom test_trainer.OutOfMemoryError: CUDA out of memory"),
        (RuntimeError("CUDA error: out of memory"), "oom RuntimeError: CUDA error: out of memory"),
        (
            RuntimeError("DefaultCPUAllocator: can't allocate memory"),
            "oom RuntimeError: DefaultCPUAllocator: can't allocate memory",
        ),
        (ValueError("first\nlast"), "error ValueError: first"),
        (SyntaxError("no", ("a.py", 1, 1, "x: y", 1, 2)), "error SyntaxError: no"),
        (SystemExit(3), "error SystemExit: 3"),
    ],
)
def test_what_an_objective_raises_becomes_a_status_and_a_traceback(
    error: BaseException,
    expected: str,
    make_attempt: Make,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    report = reported(monkeypatch, make_attempt(), raising(error))
    assert f"{report.status.value} {report.cause}" == expected
    assert report.measurement is None
    is_a_programs = isinstance(error, ProgramFailedError)  # whose own last words end the log
    assert ("Traceback" in capsys.readouterr().err) != is_a_programs


def test_a_full_disk_is_no_end_of_an_evaluation(tmp_path: Path) -> None:
    trainer.beat(Path("/dev/full"), {"step": 1})
    trainer.beat(tmp_path / api.METRICS, {"step": 2})
    trainer.beat(tmp_path / api.METRICS, {"step": 3})
    lines = (tmp_path / api.METRICS).read_text().splitlines()
    assert [json.loads(line)["step"] for line in lines] == [2, 3]


@pytest.mark.parametrize(
    ("answer", "status"),
    [
        (Measurement(score=-1.01e100), Status.NAN),
        (0.1, Status.ERROR),
        ({"score": 10**400}, Status.ERROR),
    ],
    ids=repr,
)
def test_an_answer_that_is_no_score_is_none(
    answer: Any, status: Status, make_attempt: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    def evaluate(_context: Context) -> Any:
        return Measurement(**answer) if isinstance(answer, dict) else answer

    report = reported(monkeypatch, attempt := make_attempt(), evaluate)
    outcome = api.outcome_of(attempt, report.status, report.cause, 0.0, report)
    assert outcome.status is status
    assert outcome.cause
