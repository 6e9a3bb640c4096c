"""The exact start of an evaluation, shown without starting it."""

import json
import os
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import pytest

from objectives.analytic import AnalyticObjective
from objectives.api import CommandLine, Context, Knobs
from objectives.environment import cleaned
from orchestrator.cli.plan import start_lines, start_of
from orchestrator.config import Layers, resolve
from orchestrator.execution.engine import Offer

SPHERE = AnalyticObjective.from_settings("sphere", {"dimension": 2})


@dataclass(frozen=True)
class Program:
    """An objective that is a program with these arguments."""

    argv: tuple[str, ...]
    variables: Mapping[str, str] = field(default_factory=dict)

    def command_line(self, knobs: Knobs, seed: int, context: Context) -> CommandLine:
        words = tuple(f"{name}={value}" for name, value in knobs.items())
        environment = cleaned((), self.variables)
        return CommandLine((*self.argv, *words, str(seed)), context.directory, environment)

    def __getattr__(self, name: str) -> Any:
        return getattr(SPHERE, name)


def found(program: Any, device: str = "cpu", gpus: int = 0) -> dict[str, Any]:
    sets = ["runs_dir=/runs", f"backend.device={device}"] + ["backend.threads=3"] * (not gpus)
    config = resolve(Layers(assignments=sets)).with_objective(program)
    return start_of(config, Offer(8, "some", gpus))


def test_what_would_be_started_is_told_to_the_letter() -> None:
    document = found(Program(("python", "train.py")))
    assert document["program"]["shell"] == "python train.py x0=0.0 x1=0.0 123"
    assert shlex.split(document["program"]["shell"]) == document["program"]["argv"]
    assert document["program"]["directory"].startswith("/runs/")
    assert (document["device"], document["threads"]) == ("cpu", 3)
    assert "python train.py x0=0.0 x1=0.0 123" in "\n".join(start_lines(document))


def test_the_environment_is_what_is_set_for_an_evaluation(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = {"HOME": "/home/me", "LANG": "C", "OMP_NUM_THREADS": "64", "WORLD_SIZE": "8"}
    for name, value in mine.items():
        monkeypatch.setenv(name, value)
    before = dict(os.environ)
    variables = {"LANG": "de", "HOME": "/home/me"}
    environment = found(Program(("python",), variables))["program"]["environment"]
    assert (environment["OMP_NUM_THREADS"], environment["CUDA_VISIBLE_DEVICES"]) == ("3", "")
    assert {"LANG", "OMP_NUM_THREADS"} <= set(environment)
    assert {"HOME", "PATH", "WORLD_SIZE"}.isdisjoint(environment)
    assert dict(os.environ) == before


def test_secrets_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter22")
    variables = {"MY_API_KEY": "hunter23", "A": "hunter22"}
    document = found(Program(("python", "--key", "hunter22"), variables))
    assert "hunter2" not in json.dumps(document)
    assert "MY_API_KEY" in document["program"]["environment"]


@pytest.mark.parametrize(
    ("device", "gpus", "kind"), [("auto", 0, "cpu"), ("auto", 2, "cuda"), ("cpu", 2, "cpu")]
)
def test_the_device_is_the_one_that_a_run_would_use(device: str, gpus: int, kind: str) -> None:
    start = found(SPHERE, device, gpus)
    assert start["device"] == kind
    assert start["threads"] == (4 if kind == "cuda" else 3 if not gpus else 1)
