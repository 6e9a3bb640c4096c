"""A user's function as an objective: what it gets, what it may do, what is held fast."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    NoScoreError,
    Objective,
    ObjectiveSpec,
    SetupError,
)
from objectives.function.calling import beating
from objectives.registry import load, named, short_name, varied
from orchestrator.execution.trainer import classify
from tests.objectives.function.conftest import KNOBS, SCORE, Make

BASELINE = {"lr": 0.003, "depth": 2.0}


def test_a_spec_gives_an_equal_objective(make: Make) -> None:
    objective = make(budget=10, fixed={"width": 8, "names": ["a"]}, sources=["*.py"])

    again = load(ObjectiveSpec.model_validate_json(objective.spec.model_dump_json()))

    assert again == objective == load(objective.spec)
    assert again.spec == objective.spec
    assert again.fingerprint == objective.fingerprint
    assert again.space == objective.space


def test_it_is_known_by_its_function_and_its_settings() -> None:
    name = "python:my.package:evaluate"

    assert short_name(ObjectiveSpec(name=name)) == "my.package-evaluate"
    assert set(named(name).settings) == {
        *("knobs", "directory", "budget", "fixed", "sources", "code"),
    }
    assert named(name).presets == {}


def test_a_relative_directory_is_the_same_from_anywhere(
    make: Make, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(user.parent)
    settings = make(directory="user").spec.settings
    monkeypatch.chdir("/")

    assert settings["directory"] == str(user)
    assert load(ObjectiveSpec(name="python:train:evaluate", settings=settings)).space.dimension == 2


def test_without_a_directory_it_is_the_current_one(
    user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(user)

    objective = load(ObjectiveSpec(name="python:train:evaluate", settings={"knobs": KNOBS}))

    assert objective.spec.settings["directory"] == str(user)


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"knobs": {}}, "settings: knobs: expected at least one to search"),
        ({"knobs": {"lr": {}}}, r"settings: knobs.lr.min: it has to be given.*knobs.lr.max"),
        ({"knobs": {"lr": 3}}, r"settings: knobs.lr: "),
        ({"knobs": {"a b": KNOBS["lr"]}}, "settings: knobs: expected names of"),
        ({"knobs": {"lr": {**KNOBS["lr"], "baseline": 1.0}}}, "knobs.lr: baseline .* outside"),
        (
            {"knobs": {"lr": {**KNOBS["lr"], "min": 0}}},
            "min 0 of a log10 knob must be above 0",
        ),
        ({"budget": 0}, "settings: budget: expected a positive number, got 0$"),
        ({"budget": float("inf")}, "settings: budget: expected a positive number, got inf$"),
        ({"budget": "ten"}, "settings: budget: expected a positive number, got 'ten'$"),
        ({"budget": True}, "settings: budget: expected a positive number, got True$"),
        ({"directory": ""}, "settings: directory: expected a path, got ''"),
        ({"directory": "a\0b"}, "settings: directory: expected a path"),
        ({"directory": "~nobody-of-that-name"}, "settings: directory: "),
        ({"fixed": {"a b": 1}}, "fixed: 'a b' is no name of a keyword argument"),
        ({"fixed": {"a": None}}, "fixed: a: expected no null"),
        ({"fixed": {"a": [{"b": None}]}}, "fixed: a: expected no null"),
        ({"fixed": {"a": [float("nan")]}}, "fixed.a.*finite"),
        ({"fixed": {"a": object()}}, "fixed.a: "),
        ({"fixed": {"url": "https://me:secret@host"}}, "setting fixed is a URL with a user name"),
        ({"sources": "*.py"}, "settings: sources: "),
        ({"sources": ["*.py", "modle.py"]}, "settings: sources: nothing in .* is called modle.py$"),
        ({"code": "x"}, "settings: code: "),
        ({"bugdet": 1}, "setting 'bugdet'. Did you mean 'budget'"),
    ],
)
def test_a_wrong_setting_is_refused_by_name(
    settings: dict[str, Any], said: str, make: Make
) -> None:
    with pytest.raises(ValueError, match=said) as refused:
        make(**settings)
    assert "python:train:evaluate" in str(refused.value)
    assert "\n" not in str(refused.value)


def test_planning_never_imports_it(make: Make, user: Path) -> None:
    (user / "train.py").write_text("raise SystemExit('imported')")

    objective: Objective = make()

    assert (objective.space.dimension, objective.flops(), objective.controls()) == (2, None, ())
    assert not [name for name in objective.preload if "train" in name]
    assert len(objective.fingerprint) == 64
    assert objective.provenance["program_python"] == ".".join(map(str, sys.version_info[:3]))


def test_the_function_gets_knobs_seed_budget_and_what_is_fixed(
    make: Make, context: Context, tmp_path: Path
) -> None:
    objective = make(
        f"import pathlib; got = pathlib.Path({str(tmp_path / 'got')!r})\n"
        "    got.write_text(repr((knobs, seed, budget, also))); return 1",
        budget=10,
        fixed={"width": 8, "of": {"deep": [1]}},
    )

    objective.evaluate(BASELINE, 7, context)

    got = (tmp_path / "got").read_text()
    assert got == "({'lr': 0.003, 'depth': 2}, 7, 10, {'width': 8, 'of': {'deep': [1]}})"


def test_without_a_budget_it_gets_none_and_cannot_be_made_longer(
    make: Make, context: Context
) -> None:
    objective = make("return 1.0 if budget is None else 2.0")

    assert objective.evaluate(BASELINE, 7, context).score == 1.0
    assert objective.rung(4) is None


def test_it_is_one_process_whatever_the_environment_says_of_others(
    make: Make, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WORLD_SIZE", "8")
    objective = make("import os; return float('WORLD_SIZE' in os.environ)")

    assert objective.evaluate(BASELINE, 7, context).score == 0.0
    assert os.environ["WORLD_SIZE"] == "8"


def test_a_rung_scales_the_budget(make: Make, context: Context) -> None:
    objective = make("return budget", budget=10.0)
    rung = objective.rung(0.25)

    assert rung is not None
    assert (rung.settings, rung.length, rung.label) == ({"budget": 2.5}, 0.25, "0.25 x budget")
    assert load(varied(objective.spec, rung.settings)).evaluate(BASELINE, 7, context).score == 2.5
    with pytest.raises(ValueError, match="factor must be positive"):
        objective.rung(0)


def test_a_whole_budget_stays_whole(make: Make) -> None:
    rungs = [make(budget=10).rung(factor) for factor in (4, 0.25, 0.01)]

    found = [None if rung is None else (rung.settings["budget"], rung.length) for rung in rungs]
    assert found == [(40, 4.0), (2, 0.2), None]
    assert all(type(rung.settings["budget"]) is int for rung in rungs if rung is not None)


def test_what_decides_a_score_decides_the_fingerprint(make: Make, user: Path) -> None:
    knobs = {**KNOBS, "lr": {**KNOBS["lr"], "max": 0.2}}
    settings: list[dict[str, Any]] = [{}, {"budget": 1}, {"fixed": {"a": 1}}, {"knobs": knobs}]
    found = [make(**given).fingerprint for given in settings]
    (user / "train.py").write_text(f"{SCORE}0")

    assert len({*found, make().fingerprint}) == len(settings) + 1


def test_the_knobs_as_a_person_gives_them(make: Make) -> None:
    assert make().arguments({"lr": 1e-05, "depth": 3.0}) == ("lr=1e-05", "depth=3")


def test_wrong_knobs_are_refused_by_name(make: Make, context: Context) -> None:
    with pytest.raises(ValueError, match=r"missing \['lr'\], unknown \['x'\]"):
        make().evaluate({"x": 1.0, "depth": 2.0}, 7, context)


@pytest.mark.parametrize(
    ("body", "kind", "status"),
    [
        (
            "from objectives.api import DivergedError; raise DivergedError('up')",
            DivergedError,
            "nan",
        ),
        ("from objectives.api import OutOfMemoryError as E; raise E('full')", Exception, "oom"),
        ("import torch; raise torch.OutOfMemoryError('CUDA')", RuntimeError, "oom"),
        ("raise MemoryError", MemoryError, "oom"),
        ("from objectives.api import SetupError; raise SetupError('no data')", SetupError, "error"),
        ("raise KeyError('x')", KeyError, "error"),
        ("import sys; sys.exit(3)", SystemExit, "error"),
        ("return 'good'", NoScoreError, "error"),
        ("import missing_module", ModuleNotFoundError, "error"),
    ],
)
def test_an_exception_passes_as_it_is(
    body: str, kind: type[BaseException], status: str, make: Make, context: Context
) -> None:
    with pytest.raises(kind) as raised:
        make(body).evaluate(BASELINE, 7, context)
    if not isinstance(raised.value, SetupError):
        assert classify(raised.value) == status


def test_a_float_is_timed_and_a_measurement_is_not(make: Make, context: Context) -> None:
    assert make("return 1.0").evaluate(BASELINE, 7, context).train_seconds > 0
    body = "from objectives.api import Measurement; return Measurement(score=1.0, steps=3)"
    assert make(body).evaluate(BASELINE, 7, context) == Measurement(score=1.0, steps=3)


MEDDLES = """
import os, sys
def evaluate(knobs, seed, budget):
    import beside
    open("left.txt", "w").close()
    os.chdir("/")
    sys.path[:] = ["/nowhere"]
    knobs.clear()
    return 1.0
"""


def test_the_process_is_as_it_was(make: Make, user: Path, context: Context) -> None:
    (user / "beside.py").touch()
    (user / "train.py").write_text(MEDDLES)
    path, here, writes = list(sys.path), os.getcwd(), sys.dont_write_bytecode

    make().evaluate(BASELINE, 7, context)

    assert (sys.path, os.getcwd(), sys.dont_write_bytecode) == (path, here, writes)
    assert {"train", "beside"}.isdisjoint(sys.modules)
    assert (context.directory / "left.txt").exists()
    assert {path.name for path in user.iterdir()} == {"train.py", "beside.py"}


COUNTS = """
import beside
calls = 0
def evaluate(knobs, seed, budget):
    global calls
    calls += 1
    return beside.value * 100 + calls
"""


def test_the_module_is_imported_anew_when_its_code_has_changed(
    make: Make, user: Path, context: Context
) -> None:
    (user / "beside.py").write_text("value = 1")
    (user / "train.py").write_text(COUNTS)
    first = make(sources=["*.py"])
    scores = [first.evaluate(BASELINE, seed, context).score for seed in (1, 2)]
    (user / "beside.py").write_text("value = 2")
    second = make(sources=["*.py"])

    assert scores == [101, 102]
    assert second.evaluate(BASELINE, 3, context).score == 201


def test_modules_of_the_same_name_in_two_directories_are_told_apart(
    make: Make, user: Path, context: Context, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    for place, value in ((user, 1), (other, 2)):
        (place / "beside.py").write_text(f"value = {value}")
        (place / "train.py").write_text(COUNTS)
    one, two = make(), make(directory=str(other))

    found = [objective.evaluate(BASELINE, 1, context).score for objective in (one, two, one, two)]

    assert found == [101, 201, 102, 202]


def test_a_module_in_whose_place_another_one_is_imported_is_refused(
    make: Make, user: Path, context: Context
) -> None:
    (user / "pytest.py").write_text(f"{SCORE}0")

    with pytest.raises(SetupError, match=r"importing pytest gave .*another name"):
        make(name="python:pytest:evaluate").evaluate(BASELINE, 7, context)


def test_an_edit_in_mid_run_is_refused(make: Make, user: Path, context: Context) -> None:
    objective = make()
    (user / "train.py").write_text(f"{SCORE}0")

    for look in (objective.preflight, lambda: objective.evaluate(BASELINE, 7, context)):
        with pytest.raises(SetupError, match=f"sources in {user} have changed"):
            look()


def test_a_run_on_record_is_read_when_its_module_is_gone(make: Make, user: Path) -> None:
    objective = make()
    (user / "train.py").unlink()

    assert load(objective.spec).fingerprint == objective.fingerprint
    with pytest.raises(SetupError, match="there is no module train"):
        objective.preflight()
    with pytest.raises(ValueError, match=r"no module train in .*--set directory=DIR"):
        make()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("import missing_thing", r"cannot import train from .*: No module named 'missing_thing'"),
        ("def evaluate(:", r"cannot import train from .*: invalid syntax \(train.py, line 1\)"),
        ("x = 1\ny = x + z", r"cannot import train: NameError: .*\(.*train.py, line 2\)"),
        ("evaluate = 3", "train.py has a int of the name evaluate: expected a function"),
        ("def evaluat(): 0", "train.py has nothing of the name evaluate: expected a function"),
        ("import sys; sys.exit('usage: me')", "ended Python with status 1: usage: me.*__main__"),
        ("import os; os._exit(0)", "ended Python with status 0. What a program"),
        ("import os; os.kill(os.getpid(), 9)", "ended Python with status -9"),
        ("def evaluate(knobs, seed): 0", r"evaluate\(knobs, seed\) cannot be called as evaluate\("),
        ("def evaluate(knobs, seed, budget, more): 0", "missing a required argument: 'more'"),
        ("async def evaluate(knobs, seed, budget): 0", "gives no score when it is called"),
        ("def evaluate(knobs, seed, budget): yield 0", "gives no score when it is called"),
    ],
)
def test_a_preflight_says_what_is_wrong(text: str, said: str, make: Make, user: Path) -> None:
    (user / "train.py").write_text(text)

    with pytest.raises(SetupError, match=said) as refused:
        make().preflight()
    assert "\n" not in str(refused.value)


def test_a_preflight_minds_what_is_fixed(make: Make, user: Path) -> None:
    (user / "train.py").write_text("def evaluate(knobs, seed, budget, width): return 1")

    assert make(fixed={"width": 3}).preflight() == ()
    with pytest.raises(SetupError, match=r"budget, depth=\.\.\.\): got an unexpected keyword|miss"):
        make(fixed={"depth": 3}).preflight()


def test_a_preflight_leaves_nothing_behind_and_hears_nothing_printed(
    make: Make, user: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    text = f'print("hello")\nopen("here.txt", "w").close()\n{SCORE}0'
    (user / "train.py").write_text(text)

    assert make().preflight() == ()
    assert [path.name for path in user.iterdir()] == ["train.py"]
    assert not Path("here.txt").exists()
    assert capfd.readouterr() == ("", "")


def test_a_preflight_imports_the_same_code_once(make: Make, user: Path, tmp_path: Path) -> None:
    log = tmp_path / "log"
    (user / "train.py").write_text(f"open({str(log)!r}, 'a').write('.')\n{SCORE}0")
    for _ in range(3):
        make().preflight()

    assert log.read_text() == "."


def test_a_preflight_warns_of_what_can_change_unnoticed(make: Make, user: Path) -> None:
    (user / "lib").mkdir()
    (user / ".venv/lib/site-packages").mkdir(parents=True)
    (user / "lib/model.py").touch()
    (user / ".venv/lib/site-packages/theirs.py").touch()
    text = f"import sys\nsys.path.append({str(user)!r} + '/.venv/lib/site-packages')\n"
    (user / "train.py").write_text(f"{text}import theirs\n__import__('lib.model')\n{SCORE}0")

    (warning,) = make().preflight()

    assert warning == (
        "lib/model.py can change while the run goes on, and nobody would notice: with sources = "
        '["lib/model.py"] an evaluation of another version is refused'
    )
    assert make(sources=["lib/model.py"]).preflight() == ()


def test_an_import_that_hangs_is_given_up(
    make: Make, user: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("objectives.function.importing.LIMIT_SECONDS", 0.2)
    (user / "train.py").write_text("import time\ntime.sleep(60)")

    with pytest.raises(SetupError, match=r"importing train from .* took longer than 0.2 s"):
        make().preflight()


def test_what_was_called_is_noted_beside_it(make: Make, user: Path, context: Context) -> None:
    objective = make("return 1")
    objective.evaluate(BASELINE, 7, context)

    noted = json.loads((context.directory / "program.json").read_bytes())

    assert noted["function"] == "python:train:evaluate"
    assert noted["file"] == str(user / "train.py")
    assert noted["code"] == objective.spec.settings["code"]
    assert "PATH" in noted["environment"]


def test_a_function_has_a_heartbeat_while_it_computes(beats: list[Mapping[str, float]]) -> None:
    with beating(beats.append, 0.02):
        while not beats:
            sum(range(1000))
