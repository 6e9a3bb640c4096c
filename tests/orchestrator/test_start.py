"""The exact start of an evaluation, shown without starting it."""

import json
from typing import Any

import pytest

from objectives.analytic import AnalyticObjective
from objectives.api import CommandLine, Context, Knobs
from orchestrator.cli.plan import start_lines, start_of
from orchestrator.config import Layers, resolve

SPHERE = AnalyticObjective.from_settings("sphere", {"dimension": 2})


class Program:
    """An objective that is a program with these arguments."""

    def __init__(self, *argv: str) -> None:
        self.argv = argv

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        words = tuple(f"{name}={value}" for name, value in knobs.items())
        return CommandLine((*self.argv, *words, str(seed)), context.directory, {})

    def __getattr__(self, name: str) -> Any:
        return getattr(SPHERE, name)


def found(program: Any) -> dict[str, Any]:
    return start_of(resolve(Layers(assignments=["runs_dir=/runs"])).with_objective(program))


def test_what_would_be_started_is_told_to_the_letter() -> None:
    document = found(Program("python", "train.py"))
    assert document["program"]["argv"] == ["python", "train.py", "x0=0.0", "x1=0.0", "123"]
    assert document["program"]["directory"].startswith("/runs/")
    assert "python train.py x0=0.0 x1=0.0 123" in "\n".join(start_lines(document))


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter22")
    assert "hunter2" not in json.dumps(found(Program("python", "--key", "hunter22")))
