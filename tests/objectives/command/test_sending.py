"""Each way in which knobs reach a program, as the program itself sees them."""

import json
import stat
import sys
from collections.abc import Callable
from typing import Any

import pytest

from objectives.api import Context, Measurement
from objectives.command.objective import CommandObjective

Make = Callable[..., CommandObjective]
Measure = Callable[..., Measurement]

DUMP = """
import json, os, sys
facts = dict(argv=sys.argv[1:], environment=dict(os.environ), directory=os.getcwd())
if "KNOBS_FILE" in os.environ:
    facts["file"] = json.load(open(os.environ["KNOBS_FILE"]))
json.dump(facts, open("seen.json", "w"))
print("score: 1")
"""
PYTHON = [sys.executable, "-I", "-S", "-c", DUMP]
LR = {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003}
DEPTH = {"kind": "int", "min": 1, "max": 9, "baseline": 4}
KNOBS = {"lr": LR, "model.depth": DEPTH}


@pytest.fixture
def seen(measure: Measure, place: Any) -> Callable[..., dict[str, Any]]:
    """What a program saw that was evaluated with these settings."""

    def evaluate(*arguments: str, **settings: Any) -> dict[str, Any]:
        measure(argv=[*PYTHON, *arguments], **{"knobs": KNOBS, **settings})
        facts: dict[str, Any] = json.loads((place / "seen.json").read_text())
        return facts

    return evaluate


Seen = Callable[..., dict[str, Any]]


def test_key_value_is_appended_as_hydra_reads_it(seen: Seen) -> None:
    found = seen("train", fixed={"name": "a b", "amp": True, "width": 64, "p": 0.5})
    assert found["argv"] == [
        *("train", "lr=0.003", "model.depth=4"),
        *("name=a b", "amp=true", "width=64", "p=0.5", "seed=7"),
    ]


def test_flags_have_dashes(seen: Seen) -> None:
    found = seen(send="flags", seed="random-seed", budget=100, budget_name="steps")
    assert found["argv"] == ["--lr=0.003", "--model.depth=4", "--random-seed=7", "--steps=100"]


def test_placeholders_are_filled_and_nothing_is_appended(seen: Seen, context: Context) -> None:
    found = seen(
        *("--lr", "{lr}", "depth={model.depth}/{seed}", "{directory}/out", "{device}"),
        *("{threads}", "{attempt_id}", "{budget}", "{{literal}}"),
        budget=3e10,
    )
    assert found["argv"] == [
        *("--lr", "0.003", "depth=4/7", f"{context.directory}/output/out", "cpu"),
        *("1", "this-attempt", "30000000000.0", "{literal}"),
    ]


def test_a_file_of_json_keeps_every_type(seen: Seen, context: Context) -> None:
    fixed = {"name": "ä\n", "amp": False, "width": 64, "p": 1.0}
    found = seen("{knobs_file}", send="json", fixed=fixed, budget=10, budget_name="steps")
    path = context.directory / "output/knobs.json"
    assert found["argv"] == [str(path)] == [found["environment"]["KNOBS_FILE"]]
    assert found["file"] == {"lr": 0.003, "model.depth": 4, **fixed, "seed": 7, "steps": 10}
    assert isinstance(found["file"]["model.depth"], int)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_environment_has_them_in_capitals(seen: Seen) -> None:
    found = seen(send="environment", fixed={"weight-decay": 0.1})
    assert found["argv"] == []
    names = ("LR", "MODEL_DEPTH", "WEIGHT_DECAY", "SEED")
    assert [found["environment"][name] for name in names] == ["0.003", "4", "0.1", "7"]


def test_no_seed_is_sent_where_none_is_wanted(seen: Seen) -> None:
    assert seen(seed="")["argv"] == ["lr=0.003", "model.depth=4"]


def test_given_variables_are_filled_and_go_before_ours(
    seen: Seen, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_SETTING", "ours")
    monkeypatch.setenv("OTHER", "ours")
    monkeypatch.setenv("WORLD_SIZE", "8")
    found = seen(
        environment={"OUT": "{directory}/{lr}", "OMP_NUM_THREADS": "3", "PYTHONHASHSEED": "{seed}"},
        pass_environment=["MY_SETTING"],
    )["environment"]
    assert found["OUT"] == f"{context.directory}/output/0.003"
    assert found["OMP_NUM_THREADS"] == "3"
    assert found["PYTHONHASHSEED"] == "7"
    assert found["MY_SETTING"] == "ours"
    assert not {"OTHER", "WORLD_SIZE"} & found.keys()


def test_the_evaluations_device_and_threads_are_in_the_environment(seen: Seen) -> None:
    found = seen()["environment"]
    assert found["OMP_NUM_THREADS"] == found["MKL_NUM_THREADS"] == "1"
    assert found["CUDA_VISIBLE_DEVICES"] == ""
    assert found["ATTEMPT_ID"] == "this-attempt"


def test_a_gpu_stays_as_it_was_given(make: Make, tmp_path: Any) -> None:
    context = Context(tmp_path, "cuda", 4, lambda metrics: None, "a")
    line = make(SAY).command_line({"lr": 0.01}, 1, context)
    assert line.environment.get("CUDA_VISIBLE_DEVICES") != ""
    assert line.environment["OMP_NUM_THREADS"] == "4"


SAY = "print('score: 1')"


def test_it_is_started_in_its_directory(seen: Seen, place: Any) -> None:
    assert seen()["directory"] == str(place.resolve())


def test_a_command_line_is_told_without_starting_or_writing(
    make: Make, context: Context, place: Any
) -> None:
    objective = make(argv=[*PYTHON, "x"], send="json")
    line = objective.command_line({"lr": 0.02}, 3, context)
    assert line.argv == (*PYTHON, "x")
    assert line.directory == place.resolve()
    assert line.environment["KNOBS_FILE"] == str(context.directory / "output/knobs.json")
    assert not list(place.iterdir())
    assert not list(context.directory.iterdir())


def test_a_command_line_is_what_is_started(
    make: Make, context: Context, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", "hf_geheim")
    objective = make(argv=[*PYTHON, "{seed}"], send="flags", pass_environment=["HF_TOKEN"])
    line = objective.command_line({"lr": 0.02}, 3, context)
    objective.evaluate({"lr": 0.02}, 3, context)
    noted = json.loads((context.directory / "program.json").read_text())
    assert noted["argv"] == list(line.argv)
    assert noted["directory"] == str(line.directory)
    assert noted["environment"] == {**line.environment, "HF_TOKEN": "***"}
    assert (noted["attempt_id"], noted["seed"]) == ("this-attempt", 3)
    assert noted["code"] == objective.spec.settings["code"]


@pytest.mark.parametrize("knobs", [{}, {"lr": 0.1, "wd": 0.1}, {"wd": 0.1}])
def test_other_knobs_than_its_own_are_refused(
    knobs: dict[str, float], make: Make, context: Context
) -> None:
    with pytest.raises(ValueError, match=r"expected its knobs: missing .*, unknown"):
        make().evaluate(knobs, 1, context)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"argv": ["train"]}, ("lr=0.02", "model.depth=5")),
        ({"argv": ["train"], "send": "flags"}, ("--lr=0.02", "--model.depth=5")),
        ({"argv": ["train"], "send": "json"}, ()),
        ({"argv": ["train"], "send": "environment"}, ()),
        (
            {"argv": ["train", "-v", "--lr", "{lr}", "--out", "x", "{model.depth}", "{seed}"]},
            ("--lr", "0.02", "5"),
        ),
        (
            {"argv": ["train", "--seed={seed}", "opt={lr},{seed}", "--a=b", "{model.depth}"]},
            ("opt=0.02,{seed}", "5"),
        ),
        ({"argv": ["train", "{lr}"], "send": "flags"}, ("0.02", "--model.depth=5")),
    ],
)
def test_knobs_as_a_person_gives_them(
    settings: dict[str, Any], expected: tuple[str, ...], make: Make
) -> None:
    objective = make(**{"knobs": KNOBS, "fixed": {}, **settings})
    assert objective.arguments({"lr": 0.02, "model.depth": 5.0}) == expected
