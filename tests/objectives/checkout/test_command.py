"""The command line of an evaluation: what a dry run shows is what is started."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from objectives.api import CommandLine
from objectives.checkout import command


@pytest.fixture
def line(load: Any, attempts: Any) -> Any:
    """`line(**settings)`: the baseline's, on seed 7."""

    def of(**settings: Any) -> CommandLine:
        objective = load(**settings)
        baseline = {knob.name: knob.baseline for knob in objective.space.knobs}
        found = objective.command_line(baseline, 7, attempts.context())
        assert list(attempts.last.iterdir()) == []
        assert isinstance(found, CommandLine)
        return found

    return of


def test_the_whole_of_it(line: Any, checkout: Path, attempts: Any) -> None:
    found = line(space="matrix-lr", python="/opt/python")
    assert found.argv == (
        *("/opt/python", str(command.SHIM), "scripts.base_train", "7", "eager"),
        *("--run=dummy", "--core-metric-every=-1", "--sample-every=-1"),
        *("--eval-every=1000000000", "--device-type=cpu", "--target-flops=100000000000.0"),
        *("--depth=4", "--aspect-ratio=32", "--head-dim=64", "--max-seq-len=128"),
        *("--device-batch-size=16", "--total-batch-size=2048", "--eval-tokens=8192"),
        *("--warmup-steps=2", "--matrix-lr=0.02"),
    )
    assert found.directory == checkout
    assert found.environment["NANOCHAT_BASE_DIR"] == str(attempts.last / "base")


@pytest.mark.parametrize(
    ("more", "begins"),
    [
        ({}, ("7", "eager")),
        ({"eager": False}, ("7", "compiled")),
        ({"seeds": False}, ("0", "eager")),
    ],
)
def test_our_shim_stands_before_the_module(
    more: dict[str, Any], begins: tuple[str, ...], line: Any
) -> None:
    assert line(**more).argv[1:5] == (str(command.SHIM), "scripts.base_train", *begins)


def test_without_seeds_and_compiled_there_is_nothing_of_ours(line: Any) -> None:
    assert line(seeds=False, eager=False).argv[1:3] == ("-m", "scripts.base_train")


def test_a_flag_of_the_users_takes_the_place_of_ours(line: Any) -> None:
    found = line(flags={"eval-every": 50, "run": "mine", "core-metric-every": 100}).argv
    assert {"--eval-every=50", "--run=mine", "--core-metric-every=100"} <= set(found)
    assert len({word.partition("=")[0] for word in found[5:]}) == len(found[5:])


def test_a_flag_that_is_searched_is_given_once_and_as_the_knob(load: Any, attempts: Any) -> None:
    objective = load(flags={"matrix-lr": 0.05}, space="matrix-lr")
    found = objective.command_line({"matrix-lr": 0.07}, 1, attempts.context()).argv
    assert [word for word in found if "matrix-lr" in word] == ["--matrix-lr=0.07"]


def test_truth_values_are_bare_flags(line: Any) -> None:
    assert "--fp8" in line(flags={"fp8": True}).argv
    assert not [word for word in line(flags={"fp8": False}).argv if "fp8" in word]


def test_a_checkout_is_pinned_by_the_flags_that_it_has_as_it_spells_them(
    line: Any, checkout: Path
) -> None:
    source = checkout / "scripts/base_train.py"
    text = source.read_text().replace("--eval-every", "--eval_every")
    source.write_text(
        text.replace('parser.add_argument("--sample-every", type=int, default=2000)', "")
    )
    found = line().argv
    assert "--eval_every=1000000000" in found
    assert not [word for word in found if "sample" in word]


HOSTILE = ["; rm -rf /", "$(id)", "a\nb", "<script>", "=cmd()", "", "--depth=9", "\u202e", "'\""]


@pytest.mark.parametrize("value", HOSTILE)
def test_a_hostile_value_arrives_as_one_argument(
    value: str, line: Any, load: Any, attempts: Any
) -> None:
    assert f"--run={value}" in line(flags={"run": value}).argv
    attempts.evaluate(load(flags={"run": value}))
    meta = json.loads((attempts.last / "meta_000008.json").read_text())
    assert meta["user_config"]["run"] == value
    assert meta["user_config"]["depth"] == 4


def test_the_environment_is_clean_and_pinned(
    line: Any, monkeypatch: pytest.MonkeyPatch, attempts: Any
) -> None:
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "WANDB_API_KEY", "PYTHONPATH"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setenv("MINE", "seen")
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    monkeypatch.setenv("HF_HUB_OFFLINE", "0")
    found = line(pass_environment=["MINE"], dtype="float32").environment
    assert not {"RANK", "LOCAL_RANK", "WORLD_SIZE", "MASTER_ADDR", "WANDB_API_KEY"} & set(found)
    assert "PYTHONPATH" not in found
    assert {
        "MINE": "seen",
        "WANDB_MODE": "disabled",
        "HF_HUB_OFFLINE": "1",
        "NANOCHAT_DTYPE": "float32",
        "OMP_NUM_THREADS": "1",
        "PYTHONUNBUFFERED": "1",
        "CUDA_VISIBLE_DEVICES": "",
    }.items() <= found.items()


def test_a_gpu_stays_in_sight_of_what_runs_on_it(
    load: Any, attempts: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "3")
    objective = load(space="matrix-lr")
    found = objective.command_line({"matrix-lr": 0.1}, 1, attempts.context("cuda"))
    assert found.environment["CUDA_VISIBLE_DEVICES"] == "3"
    assert "--device-type=cuda" in found.argv


def test_what_the_user_says_of_the_environment_holds(line: Any) -> None:
    found = line(environment={"HF_HUB_OFFLINE": "0", "OMP_NUM_THREADS": "4"}).environment
    assert (found["HF_HUB_OFFLINE"], found["OMP_NUM_THREADS"]) == ("0", "4")


def test_compiled_code_is_shared_by_evaluations_of_one_version(
    line: Any, checkout: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def place() -> str:
        return str(
            line(python=str(checkout / ".venv/bin/python")).environment["TORCHINDUCTOR_CACHE_DIR"]
        )

    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    first = place()
    assert first.startswith("/cache/cmaes-orchestrator/inductor/")
    assert place() == first
    (checkout / ".venv/lib/python3.11/site-packages/torch-2.9.1.dist-info").mkdir(parents=True)
    other_torch = place()
    (checkout / "nanochat/gpt.py").write_text("")
    assert len({first, other_torch, place()}) == 3


def test_a_neighbour_of_the_shim_hides_nothing(load: Any, attempts: Any, checkout: Path) -> None:
    """`config`, `data` and others lie beside the shim; a checkout may have such modules too."""
    (checkout / "config.py").write_text("THEIRS = True\n")
    source = checkout / "scripts/base_train.py"
    source.write_text("from config import THEIRS\nassert THEIRS\n" + source.read_text())
    attempts.evaluate(load())


def test_a_package_of_ours_hides_nothing(
    load: Any, attempts: Any, checkout: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "shadow/scripts").mkdir(parents=True)
    (tmp_path / "shadow/scripts/__init__.py").write_text("raise SystemExit('the wrong scripts')")
    monkeypatch.setenv(
        "PYTHONPATH", str(tmp_path / "shadow") + os.pathsep + os.environ.get("PYTHONPATH", "")
    )
    monkeypatch.chdir(tmp_path / "shadow")
    attempts.evaluate(load())
