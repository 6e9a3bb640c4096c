"""A user's function as an objective: what it gets, what it may do, what is held fast."""

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import pytest

from objectives.api import Context, Measurement, NoScoreError, ObjectiveSpec, SetupError
from objectives.function import FunctionObjective, measurement_of
from objectives.registry import load

KNOBS: dict[str, dict[str, Any]] = {
    "lr": {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003},
    "depth": {"kind": "int", "min": 1, "max": 8, "baseline": 2},
}
BASELINE = {"lr": 0.003, "depth": 2.0}
SCORE = "def evaluate(knobs, seed, budget=None, **also):\n    return "

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
            (user / "train.py").write_text(SCORE.replace("return ", f"{body}\n"))
        given = {"knobs": KNOBS, "directory": str(user), **settings}
        return load(ObjectiveSpec(name=name, settings=given))

    return objective


@pytest.fixture
def context(tmp_path: Path) -> Context:
    directory = tmp_path / "evaluation"
    directory.mkdir()
    return Context(directory, "cpu", 1, lambda _: None, "an-attempt")


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"knobs": {}}, "at least one"),
        ({"knobs": {"lr": {**KNOBS["lr"], "baseline": 1.0}}}, "knob lr"),
        *(({"budget": budget}, "budget") for budget in (0, True)),
        *(({"directory": path}, "directory") for path in ("",)),
        ({"fixed": {"url": "https://me:secret@host"}}, "user name or a password"),
        ({"sources": ["*.py", "modle.py"]}, "modle.py"),
        ({"bugdet": 1}, "'budget'"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    settings: dict[str, Any], word: str, make: Make
) -> None:
    with pytest.raises(ValueError, match="python:train:evaluate") as refused:
        make(**settings)
    assert word in str(refused.value)
    assert "\n" not in str(refused.value)


def test_a_function_is_alone_in_its_process_and_its_knobs_are_its_own(
    make: Make, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    alone = make("import os; return float('WORLD_SIZE' in os.environ)")
    assert alone.evaluate(BASELINE, 7, context).score == 0.0
    assert os.environ["WORLD_SIZE"] == "8"
    for name in ("python:train", "python:train.py:f", "python:json:f"):
        with pytest.raises(ValueError, match=name.split(":")[1].split(".", 1)[0]):
            make(name=name)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (numpy.array(2.5), Measurement(score=2.5, train_seconds=9.0)),
        ({"score": numpy.int64(1), "steps": 3}, Measurement(score=1, steps=3, train_seconds=9)),
        (Measurement(score=1.0, steps=3), Measurement(score=1.0, steps=3)),
        *((value, None) for value in (None, True, "0.5", [1.0], {}, {"score": "1"}, {"s": 1})),
        ({"score": 1, "steps": -1}, None),
    ],
)
def test_what_is_returned_is_a_measurement_or_refused(
    value: Any, expected: Measurement | None
) -> None:
    if expected is not None:
        assert measurement_of(value, 9.0) == expected
        return
    with pytest.raises(NoScoreError):
        measurement_of(value, 9.0)


MEDDLES = """
import os, sys
import beside
calls = 0
def evaluate(knobs, seed):
    global calls
    calls += 1
    open("left.txt", "w").close()
    os.chdir("/")
    sys.path[:] = ["/nowhere"]
    knobs.clear()
    return beside.value * 100 + calls
"""


def test_modules_are_imported_anew_each_time_and_the_process_is_as_it_was(
    make: Make, user: Path, context: Context, tmp_path: Path
) -> None:
    (tmp_path / "other").mkdir()
    for place, value in ((user, 1), (tmp_path / "other", 2)):
        (place / "beside.py").write_text(f"value = {value}")
        (place / "train.py").write_text(MEDDLES)
    path, here, writes = list(sys.path), os.getcwd(), sys.dont_write_bytecode
    one, two = make(), make(directory=str(tmp_path / "other"))
    found = [objective.evaluate(BASELINE, 1, context).score for objective in (one, two, one, two)]
    assert found == [101, 201, 101, 201]
    (user / "beside.py").write_text("value = 3")
    assert make().evaluate(BASELINE, 3, context).score == 301
    assert (sys.path, os.getcwd(), sys.dont_write_bytecode) == (path, here, writes)
    assert {"train", "beside"}.isdisjoint(sys.modules)
    assert (context.directory / "left.txt").exists()
    assert {path.name for path in user.iterdir()} == {"train.py", "beside.py"}


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("import missing_thing", "missing_thing"),
        ("def evaluate(:", "line 1"),
        ("x = 1\ny = x + z", "'z' is not defined"),
        ("evaluate = 3", "no function of the name"),
        ("import sys; sys.exit('usage: me')", "usage: me"),
        ("def evaluate(knobs): 0", "evaluate(knobs) cannot be called with (knobs, seed)"),
        ("import time; time.sleep(60)", "longer than 1.5 s"),
    ],
)
def test_what_cannot_be_imported_or_called_is_refused_beforehand(
    text: str, word: str, make: Make, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    limit = 1.5 if "sleep" in text else 60.0
    monkeypatch.setattr("objectives.function.LIMIT_SECONDS", limit)
    (user / "train.py").write_text(text)
    with pytest.raises(SetupError) as refused:
        make().preflight()
    assert word in str(refused.value)


def test_a_package_that_has_the_name_of_ours_is_refused(make: Make, user: Path) -> None:
    (user / "budgets").mkdir()
    (user / "budgets/mine.py").write_text("x = 1")
    with pytest.raises(SetupError, match="budgets"):
        make().preflight()
