"""What may be said of a program, and what is refused before anything is paid."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives import registry
from objectives.api import ObjectiveSpec, SetupError
from objectives.command.config import CommandConfig
from objectives.command.objective import CommandObjective

Make = Callable[..., CommandObjective]

LR = {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003}


def refused(settings: dict[str, Any]) -> str:
    usual = {"argv": ["train"], "knobs": {"lr": LR}, "score": "loss", "code": "0" * 64}
    with pytest.raises(ValueError, match="command") as raised:
        registry.load(ObjectiveSpec(name="command", settings={**usual, **settings}))
    return str(raised.value)


def test_three_settings_are_enough(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = {"argv": ["python", "train.py"], "score": "val_loss", "knobs": {"lr": LR}}
    objective = registry.load(ObjectiveSpec(name="command", settings=settings))
    found = objective.spec.settings
    assert found["directory"] == str(tmp_path.resolve())
    assert found["send"] == "key=value"
    assert found["seed"] == "seed"
    assert {name: found[name] for name in settings} == settings


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"score": {"file": "out/result.json", "key": "a.b"}, "send": "json"},
        {"score": {"pattern": "loss is (.*)"}, "send": "flags"},
        {"budget": 100, "budget_name": "steps", "fixed": {"a": True, "b": 1, "c": 1.0, "d": "1"}},
        {"budget": 3e10, "environment": {"FLOPS": "{budget}"}, "pass_environment": ["HF_TOKEN"]},
        {"measures": {"steps": "n", "same.eager": {"pattern": "eager: (.)"}}, "sources": ["*.sh"]},
        {"failures": {"loss is nan": "nan"}, "needs": {"threads": 1}},
    ],
)
def test_a_spec_gives_an_equal_objective(settings: dict[str, Any], make: Make) -> None:
    objective = make(**settings)
    again = registry.load(ObjectiveSpec.model_validate_json(objective.spec.model_dump_json()))
    assert again == objective
    assert again.spec == objective.spec
    assert again.fingerprint == objective.fingerprint
    fixed = objective.spec.settings["fixed"]
    assert {name: type(v) for name, v in again.spec.settings["fixed"].items()} == {
        name: type(v) for name, v in fixed.items()
    }


def test_paths_are_kept_from_where_they_were_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Make
) -> None:
    (tmp_path / "code").mkdir()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = str((tmp_path / "code").resolve())
    assert make(directory="code").spec.settings["directory"] == expected
    assert make(directory="~/code").spec.settings["directory"] == expected
    assert make(argv=["~/bin/train"]).spec.settings["argv"] == [f"{tmp_path}/bin/train"]


def test_a_directory_that_is_missing_is_refused_unless_its_code_is_known(
    tmp_path: Path, make: Make
) -> None:
    with pytest.raises(ValueError, match=r"command setting directory: there is none at .*nowhere"):
        make(directory=str(tmp_path / "nowhere"))
    make(directory=str(tmp_path / "nowhere"), code="0" * 64)  # a report of a run whose code moved


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"argv": []}, "argv: Tuple should have at least 1 item"),
        ({"argv": [""]}, "argv begins with the program itself"),
        ({"argv": ["{lr}", "x"]}, "argv begins with the program itself"),
        ({"argv": "python train.py"}, "argv: expected a list, such as"),
        ({"argv": ["train", "{lr"]}, "argv, entry 2: '{lr' has a { by itself"),
        ({"argv": ["train", "{rl}"]}, "argv, entry 2: unknown placeholder {rl} in '{rl}'"),
        ({"argv": ["train", "{rl}"]}, "Known are {lr}, {seed}, {directory}, {device}, {threads}"),
        ({"argv": ["train", "{knobs_file}"]}, "unknown placeholder {knobs_file}"),
        ({"argv": ["train", "{budget}"]}, "has {budget}, and there is none: say budget"),
        ({"argv": ["train", "a\0b"]}, "a NUL character cannot be part of an argument"),
        ({"knobs": {}}, "knobs: expected at least one to search"),
        (
            {"knobs": {"lr": {**LR, "min": -1}}},
            "knobs.lr: min -1 of a log10 knob must be above 0",
        ),
        ({"knobs": {"seed": LR}}, "knobs.seed: {seed} is what an evaluation gives"),
        ({"fixed": {"device": "cpu"}}, "fixed.device: {device} is what an evaluation gives"),
        ({"fixed": {"lr": 1}}, "lr: a knob cannot be fixed as well"),
        ({"fixed": {"a b": 1}}, "expected a name of 1 to 64 letters, digits and . _ -, got 'a b'"),
        ({"fixed": {"a": [1]}}, "fixed.a"),
        ({"fixed": {"a": "b\0"}}, "a NUL character"),
        ({"seed": "lr"}, "lr: two things would be sent by that name"),
        ({"seed": "-s"}, "expected a name"),
        ({"budget": 1, "budget_name": "seed"}, "seed: two things would be sent by that name"),
        ({"budget": 1}, "the budget does not reach the program: put {budget} into argv"),
        ({"budget": 1, "send": "json"}, "or say budget_name = NAME"),
        ({"budget": 0, "budget_name": "n"}, "budget"),
        ({"budget_name": "steps"}, "budget_name = 'steps' names no budget"),
        ({"send": "argv"}, "lr does not reach the program: put {lr} into argv, or say send"),
        (
            {"argv": ["train", "{lr}"], "fixed": {"depth": 3}},
            "depth does not reach the program: put {depth} into argv",
        ),
        ({"send": "shell"}, "send"),
        ({"score": ""}, "score"),
        ({"score": 3}, "score"),
        ({"score": "val:loss"}, "score: expected a key without : or ="),
        ({"score": {"file": "a.json"}}, 'score: expected one of "val_loss"'),
        ({"score": {"key": "a"}}, 'score: expected one of "val_loss"'),
        ({"score": {"pattern": "x", "key": "a"}}, 'score: expected one of "val_loss"'),
        ({"score": {"pattern": "loss"}}, "score: expected a pattern with one group"),
        ({"score": {"pattern": "(a)(b)"}}, "score: expected a pattern with one group"),
        ({"score": {"pattern": "("}}, "score: '(' is no regular expression"),
        ({"failures": {"[": "nan"}}, "failures: '[' is no regular expression"),
        (
            {"failures": {"nan": "diverged"}},
            "failures.nan: Input should be 'nan', 'oom' or 'error'",
        ),
        (
            {"score": {"file": "result.json", "key": "a"}},
            "nothing tells the program where that is: put {directory}/result.json into argv",
        ),
        ({"measures": {"a b": "x"}}, "expected a name"),
        ({"environment": {"A=B": "x"}}, "is no name of an environment variable"),
        ({"pass_environment": [""]}, "is no name of an environment variable"),
        ({"environment": {"X": "{nothing}"}}, "environment.X: unknown placeholder {nothing}"),
        ({"needs": {"threads": 0}}, "needs.threads"),
        ({"needs": {"gpus": 1}}, "needs.gpus: Extra inputs are not permitted"),
        ({"code": "abc"}, "code"),
        ({"agrv": ["train"]}, "unknown command setting 'agrv'. Did you mean 'argv'?"),
        ({"argv": ["train", "https://me:word@host/x"]}, "a URL with a user name or a password"),
    ],
)
def test_what_cannot_be_meant_is_refused(settings: dict[str, Any], expected: str) -> None:
    message = refused(settings)
    assert expected in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "file",
    ["/tmp/result.json", "../result.json", "a/../../x", "{knobs_file}", "~/{lr}.json"],  # noqa: S108
)
def test_a_result_elsewhere_is_refused_with_the_way_to_say_it(file: str) -> None:
    message = refused({"score": {"file": file, "key": "a"}, "argv": ["train", "{directory}"]})
    assert "a result lies in the evaluation's own directory" in message
    assert "{directory}/result.json" in message


@pytest.mark.parametrize("file", ["knobs.json", "{directory}/knobs.json", ".", "./knobs.json"])
def test_a_file_of_ours_is_no_result(file: str) -> None:
    message = refused({"score": {"file": file, "key": "a"}, "argv": ["train", "{directory}"]})
    assert "is no program's to write" in message


def test_a_result_may_be_said_with_its_directory(make: Make) -> None:
    score = {"file": "{directory}/out/result.json", "key": "loss"}
    objective = make(argv=["train", "{directory}"], score=score)
    assert str(objective.config.score.path) == "out/result.json"


@pytest.mark.parametrize("name", ["WANDB_API_KEY", "HF_TOKEN", "MY_SECRET", "db_password"])
def test_a_secret_among_the_variables_is_refused_and_not_repeated(name: str) -> None:
    message = refused({"environment": {name: "geheim123"}})
    assert f'pass_environment = ["{name}"]' in message
    assert "geheim123" not in message


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("TOKENIZERS_PARALLELISM", "false"),
        ("NUM_TOKENS", "500000"),
        ("MAX_TOKEN", "64"),
        ("KEY", "{lr}-of-this"),
        ("MONKEY", "business"),
    ],
)
def test_what_only_sounds_like_a_secret_is_none(name: str, value: str, make: Make) -> None:
    make(environment={name: value})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"fixed": {"a.b": 1, "a_b": 2}}, "A_B: two things would be sent by that name"),
        ({"fixed": {"seed-": 1}, "seed": "SEED_"}, "SEED_: two things"),
        ({"fixed": {"path": "x"}}, "path would be sent as PATH, which is another variable"),
        ({"fixed": {"omp-num-threads": 2}}, "OMP_NUM_THREADS, which is another variable"),
        ({"environment": {"LR": "1"}}, "lr would be sent as LR, which is another variable"),
    ],
)
def test_names_that_would_hide_a_variable_are_refused(
    settings: dict[str, Any], expected: str
) -> None:
    assert expected in refused({**settings, "send": "environment"})


def test_what_has_a_placeholder_is_not_sent_again(make: Make) -> None:
    config = make(
        argv=["train", "seed={seed}", "{depth}"],
        fixed={"depth": 3, "width": 4},
        environment={"STEPS": "{budget}"},
        budget=10,
        budget_name="steps",
    ).config
    assert config.sending == "key=value"
    assert config.sent == {"lr": "lr", "width": "width"}


def test_a_placeholder_of_a_knob_says_how_knobs_are_sent(make: Make) -> None:
    assert make(argv=["train", "--lr={lr}"]).spec.settings["send"] == "argv"
    assert make(argv=["train", "{{lr}}"]).spec.settings["send"] == "key=value"
    assert make(argv=["train", "{lr}"], send="json").config.sent == {"seed": "seed"}


def test_hostile_text_is_a_setting_like_any_other(make: Make) -> None:
    make(argv=["train", "$(rm -rf {directory})", "; rm", "x" * 5000, "ä\n<script>", "=cmd()"])


def test_too_much_source_is_refused_when_it_is_loaded(place: Path, make: Make) -> None:
    with (place / "data.bin").open("wb") as file:
        file.truncate(1 << 30)
    with pytest.raises(SetupError, match=r"more than 64 MiB of source.*setting sources"):
        make(argv=["train", "data.bin"])
    make(argv=["train", "data.bin"], sources=["*.py"])


def test_settings_that_decide_no_score_leave_the_fingerprint(make: Make) -> None:
    base = make().fingerprint
    assert make(needs={"threads": 1}).fingerprint == base
    assert make(measures={"steps": "n"}).fingerprint == base
    assert make(seed="s").fingerprint != base
    assert make(failures={"x": "nan"}).fingerprint != base
    assert make(knobs={"lr": {**LR, "max": 0.2}}).fingerprint != base


def test_a_table_of_a_variant_is_laid_over_name_by_name(make: Make) -> None:
    spec = make(fixed={"depth": 3, "width": 4}).spec
    assert registry.varied(spec, {"fixed": {"depth": 5}}).settings["fixed"] == {
        "depth": 5,
        "width": 4,
    }
    dotted = registry.varied(spec, {"fixed.depth": 5, "fixed.new": "x"})
    assert dotted.settings["fixed"] == {"depth": 5, "width": 4, "new": "x"}
    assert spec.settings["fixed"] == {"depth": 3, "width": 4}
    assert registry.varied(spec, {"score": {"pattern": "(.)"}}).settings["score"] == {
        "pattern": "(.)"
    }


def test_every_setting_is_known_by_name() -> None:
    assert registry.named("command").settings == tuple(CommandConfig.model_fields)


def test_a_file_named_in_argv_is_a_source_and_a_python_is_none(place: Path, make: Make) -> None:
    (place / "bin").mkdir()
    for name in ("run.sh", "bin/python", "bin/tool", "conf.yaml", "{lr}"):
        (place / name).write_text("one")
    argv = ["bin/tool", "run.sh", "{lr}", "--x=conf.yaml", "x" * 5000]
    other = ["bin/python", "run.sh", "{lr}"]

    def codes() -> tuple[str, str]:
        return make(argv=argv).spec.settings["code"], make(argv=other).spec.settings["code"]

    before = codes()
    for name in ("bin/python", "conf.yaml", "{lr}"):
        (place / name).write_text("two")
    assert codes() == before
    (place / "bin/tool").write_text("two")
    assert codes() == (codes()[0], before[1]) != before
    os.truncate(place / "run.sh", 0)
    assert codes()[1] != before[1]
