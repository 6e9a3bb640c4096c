"""From a name and settings to an objective, and to a variant of it."""

from pathlib import Path
from typing import Any

import pytest

from objectives.api import ObjectiveSpec
from objectives.registry import kind, load, usual, varied


def test_a_variant_keeps_every_setting_it_does_not_change() -> None:
    spec = load(ObjectiveSpec(name="sphere", settings={"dimension": 3, "noise": 0.01})).spec
    changed = varied(spec, {"noise": 0.02})
    assert changed == load(ObjectiveSpec(name="sphere", settings=changed.settings)).spec
    assert changed.settings == spec.settings | {"noise": 0.02}
    assert spec.settings["noise"] == 0.01


def test_a_variant_that_cannot_be_is_refused() -> None:
    with pytest.raises(ValueError, match=r"unknown sphere setting 'nose'.*Did you mean 'noise'\?"):
        varied(ObjectiveSpec(name="sphere"), {"nose": 0.02})
    with pytest.raises(ValueError, match="n_head 3 must divide n_embd 32"):
        varied(ObjectiveSpec(name="nanochat"), {"n_head": 3})


PROGRAMS: dict[str, dict[str, Any]] = {
    "command": {"argv": ["python", "train.py"], "score": "loss"},
    "python:train:evaluate": {},
}


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectiveSpec:
    """One of `PROGRAMS` in a directory, whose code is measured."""
    (tmp_path / "train.py").write_text("def evaluate(knobs, seed, budget): return 1.0")
    knobs = {"lr": {"min": 0, "max": 1, "baseline": 0.5}}
    settings = {"knobs": knobs, "directory": str(tmp_path), **PROGRAMS[request.param]}
    return load(ObjectiveSpec(name=request.param, settings=settings)).spec


@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_a_variant_keeps_the_code_unless_it_is_another_program(
    program: ObjectiveSpec, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (other / "train.py").write_text("def evaluate(knobs, seed, budget): return 2.0")
    (tmp_path / "train.py").write_text("edited = True")

    same = varied(program, {"fixed": {}})
    moved = varied(program, {"directory": str(other)})

    assert same.settings["code"] == program.settings["code"]
    assert moved.settings["code"] not in {None, program.settings["code"]}
    assert varied(program, {"directory": str(other), "code": "0" * 64}).settings["code"] == "0" * 64


@pytest.mark.parametrize("program", PROGRAMS, indirect=True)
def test_what_is_usual_is_known_of_what_needs_settings(program: ObjectiveSpec) -> None:
    found = usual(program)

    given = {"knobs", "directory", "code", *PROGRAMS[program.name]}
    assert {k for k, v in program.settings.items() if found.get(k) != v} <= given | {"send"}


def test_what_is_usual_is_all_that_our_own_objectives_have() -> None:
    for name in ("sphere", "noise", "nanochat"):
        assert usual(ObjectiveSpec(name=name)) == load(ObjectiveSpec(name=name)).spec.settings


def test_a_checkout_is_told_from_our_own_nanochat() -> None:
    assert kind(ObjectiveSpec(name="nanochat")) == "nanochat"
    assert kind(ObjectiveSpec(name="nanochat", settings={"checkout": "/x"})) == "nanochat checkout"
    assert kind(ObjectiveSpec(name="python:a:b")) == "python:a:b"
