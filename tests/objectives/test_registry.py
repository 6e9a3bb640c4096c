"""From a name and settings to an objective, to a variant of it, or to one line about what is wrong.

What all objectives have in common is tested here over each of them.
"""

from pathlib import Path
from typing import Any

import pytest

from objectives.api import ObjectiveSpec, SetupError
from objectives.process import check_variables
from objectives.program import ProgramObjective
from objectives.registry import kind, load, settings_of, short_name, unusual, varied
from objectives.secrets import HIDDEN, is_secret_name, redacted

LR = {"min": 0.0, "max": 1.0, "baseline": 0.5}
DEPTH = {"kind": "int", "min": 1, "max": 9, "baseline": 3}
PROGRAMS: dict[str, dict[str, Any]] = {
    "command": {"argv": ["python", "train.py", "{budget}"], "score": "loss", "send": "flags"},
    "python:train:evaluate": {},
    "nanochat": {"python": "python", "data": "/x", "tokenizer": "/x", "target_flops": 1e11},
}


@pytest.fixture
def program(request: pytest.FixtureRequest, tmp_path: Path) -> ObjectiveSpec:
    """One of `PROGRAMS` in a directory, whose code is measured."""
    (tmp_path / "scripts").mkdir()
    for name in ("train.py", "scripts/base_train.py"):
        (tmp_path / name).write_text("def evaluate(knobs, seed, budget=1): return 1.0")
    where: dict[str, Any] = {"checkout": str(tmp_path)}
    if request.param != "nanochat":
        where = {"directory": str(tmp_path), "budget": 10}
    settings = {"knobs": {"lr": LR, "depth": DEPTH}, **where, **PROGRAMS[request.param]}
    return load(ObjectiveSpec(name=request.param, settings=settings)).spec


over_programs = pytest.mark.parametrize("program", PROGRAMS, indirect=True)


@over_programs
def test_a_variant_keeps_the_code_unless_it_is_another_program(
    program: ObjectiveSpec, tmp_path: Path
) -> None:
    (tmp_path / "other/scripts").mkdir(parents=True)
    for name in ("train.py", "scripts/base_train.py"):
        (tmp_path / "other" / name).write_text("def evaluate(knobs, seed, budget=1): return 2.0")
        (tmp_path / name).write_text("edited = True")
    where = "checkout" if program.name == "nanochat" else "directory"
    code = program.settings["code"]
    assert varied(program, {"environment": {}} if where == "checkout" else {"fixed": {}}) == program
    moved = varied(program, {where: str(tmp_path / "other")}).settings["code"]
    assert moved.keys() == code.keys()
    assert moved != code
    assert varied(program, {where: "/x", "code": {"a": "b"}}).settings["code"] == {"a": "b"}


@over_programs
def test_a_spec_gives_an_equal_objective_and_its_files_are_pinned(
    program: ObjectiveSpec, tmp_path: Path
) -> None:
    objective = load(program)
    assert isinstance(objective, ProgramObjective)
    assert objective.spec == program
    (tmp_path / "copy_of_train.py").write_text("import train")
    objective.require_same_sources()
    file = tmp_path / next(iter(program.settings["code"]))
    for edited in ("edited = True", None):
        file.write_text(edited) if edited else file.unlink()
        with pytest.raises(SetupError, match=file.name):
            objective.preflight()
    again = load(ObjectiveSpec.model_validate_json(program.model_dump_json()))
    assert (again, again.spec) == (objective, program)


@over_programs
def test_a_budget_is_scaled_and_stays_whole(program: ObjectiveSpec) -> None:
    objective = load(program)
    setting = "target_flops" if program.name == "nanochat" else "budget"
    amount = program.settings[setting]
    for factor, expected in ((4.0, 4 * amount), (0.25, round(amount / 4, 9))):
        long_run = objective.scaled(factor)
        assert long_run is not None
        value = long_run.settings[setting]
        assert value == (int(expected) if isinstance(amount, int) else expected)
        assert (type(value), long_run.cost_factor) == (type(amount), value / amount)
        assert load(varied(program, long_run.settings)).space == objective.space
    assert objective.scaled(0.0) is None


def test_the_baseline_of_our_own_knobs_is_said_by_their_names() -> None:
    spec = ObjectiveSpec(name="nanochat", settings={"space": "optimizer"})
    own = load(spec)
    knobs = {knob.name: knob.baseline for knob in own.space.knobs} | {"matrix_lr": 0.03}
    moved = own.with_baseline(knobs)
    assert moved is not None
    assert unusual(moved) == {"space": "optimizer", "matrix_lr": 0.03}
    assert load(ObjectiveSpec(name="sphere")).with_baseline({"x0": 0.5}) is None


def test_a_table_of_a_variant_is_laid_over_name_by_name(tmp_path: Path) -> None:
    settings = {**PROGRAMS["command"], "argv": ["train"], "directory": str(tmp_path)}
    settings |= {"knobs": {"lr": LR}, "fixed": {"depth": 3, "width": 4}}
    spec = load(ObjectiveSpec(name="command", settings=settings)).spec
    assert varied(spec, {"fixed": {"depth": 5}}).settings["fixed"] == {"depth": 5, "width": 4}
    dotted = varied(spec, {"fixed.depth": 5, "fixed.new": "x"}).settings["fixed"]
    assert dotted == {"depth": 5, "width": 4, "new": "x"}
    with pytest.raises(ValueError, match="'noise'"):
        varied(ObjectiveSpec(name="sphere"), {"nose": 0.02})


def test_what_is_known_of_a_kind_before_one_is_loaded() -> None:
    for name in ("sphere", "nanochat"):
        assert unusual(load(ObjectiveSpec(name=name)).spec) == {}
    checkout = ObjectiveSpec(name="nanochat", settings={"checkout": "/x"})
    assert kind(ObjectiveSpec(name="nanochat")) == "nanochat"
    assert kind(checkout) == "nanochat checkout"
    assert short_name(checkout) == "nanochat-checkout"
    assert short_name(ObjectiveSpec(name="python:my.package:evaluate")) == "my.package-evaluate"
    assert "flags" in settings_of("nanochat", {"checkout"}).model_fields
    assert settings_of("nanochat").presets
    with pytest.raises(ValueError, match="sphere"):
        settings_of("spere")


SECRETS = (
    *("HF_TOKEN", "MYTOKEN", "HF_TOKEN_2", "API_KEY", "OPENAI_APIKEY", "SSH_KEY_PATH", "PASS"),
    *("AWS_SECRET_ACCESS_KEY", "PGPASSWORD", "MYSQL_PWD", "SECRETS", "my_secret", "api-key"),
)
OTHERS = (
    *("TOKENIZERS_PARALLELISM", "TRAIN_TOKENS", "KEYBOARD", "MONKEY", "COMPASS", "BYPASS"),
    *("PWD", "OLDPWD", "PASSENGERS", "SECRETARY"),
)


def test_one_word_of_a_name_makes_it_a_secret_everywhere_and_part_of_a_word_does_not() -> None:
    for name in SECRETS:
        assert is_secret_name(name)
        assert redacted(f"{name.upper()}=swordfish", {}) == f"{name.upper()}={HIDDEN}"
        with pytest.raises(ValueError, match="looks like a secret"):
            check_variables({name: "swordfish"})
    for name in OTHERS:
        assert not is_secret_name(name)
        assert redacted(f"{name}=swordfish", {name: "swordfish"}) == f"{name}=swordfish"
        check_variables({name: "swordfish"})
