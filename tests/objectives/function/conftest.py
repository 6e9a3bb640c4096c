"""A user's directory with a module in it, and an objective made of it."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from objectives.api import Context, ObjectiveSpec
from objectives.function.objective import FunctionObjective
from objectives.registry import load

KNOBS: dict[str, dict[str, Any]] = {
    "lr": {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003},
    "depth": {"kind": "int", "min": 1, "max": 8, "baseline": 2},
}

SCORE = "def evaluate(knobs, seed, budget, **also):\n    return "

Make = Callable[..., FunctionObjective]


@pytest.fixture
def user(tmp_path: Path) -> Path:
    """The user's directory, with `train.py` in it."""
    directory = tmp_path / "user"
    directory.mkdir()
    (directory / "train.py").write_text(f"{SCORE}knobs['lr'] + seed\n")
    return directory


@pytest.fixture
def make(user: Path) -> Make:
    """`make("return None", budget=3)`: an objective whose function has this body."""

    def objective(body: str = "", name: str = "python:train:evaluate", **settings: Any) -> Any:
        if body:
            (user / "train.py").write_text(
                f"def evaluate(knobs, seed, budget, **also):\n    {body}\n"
            )
        given = {"knobs": KNOBS, "directory": str(user), **settings}
        return load(ObjectiveSpec(name=name, settings=given))

    return objective


@pytest.fixture
def beats() -> list[Mapping[str, float]]:
    """What an evaluation said of itself."""
    return []


@pytest.fixture
def context(tmp_path: Path, beats: list[Mapping[str, float]]) -> Context:
    directory = tmp_path / "evaluation"
    directory.mkdir()
    return Context(directory, "cpu", 1, beats.append, "an-attempt")
