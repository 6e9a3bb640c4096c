"""What is recommended of a user's own program: as it takes it, as its new baseline, and trained."""

import shlex
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson
import pytest

from orchestrator.records.recorded import load_state
from orchestrator.verification.verify import verify
from tests.orchestrator.best.conftest import searched

if TYPE_CHECKING:
    from tests.conftest import Command
    from tests.orchestrator.best.conftest import Tamper

KNOBS: dict[str, Any] = {
    "opt.lr": {"kind": "log10", "min": 1e-4, "max": 0.1, "baseline": 0.003},
    "depth": {"kind": "int", "min": 1, "max": 8, "baseline": 2},
}

PROGRAM = """
import pathlib, sys
words = dict(word.split("=") for word in sys.argv[1:])
pathlib.Path(words["out"], "model.bin").write_text("weights")
print("loss:", 3 - float(words["opt.lr"]) - int(words["steps"]) / 1000)
"""

FUNCTION = """
def evaluate(knobs, seed, budget):
    return 3 - knobs["opt.lr"] - budget / 1000
"""

FLAGS = {
    "depth": 4,
    "aspect-ratio": 32,
    "head-dim": 64,
    "max-seq-len": 128,
    "device-batch-size": 16,
    "total-batch-size": 2048,
    "eval-tokens": 8192,
    "matrix-lr": 0.01,
}

Forge = Callable[[str, dict[str, Any]], None]


@pytest.fixture
def forge(confirmed: Path, tamper: "Tamper") -> Forge:
    """Let the search called "confirmed" have searched the two knobs of something else."""

    def of(name: str, settings: dict[str, Any]) -> None:
        tamper(confirmed, lambda lines: searched(lines, name, settings))

    return of


@pytest.fixture
def program(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine/train.py").write_text(PROGRAM)
    settings = {
        "argv": [sys.executable, "train.py", "out={directory}"],
        "directory": str(tmp_path / "mine"),
        "budget": 100,
        "budget_name": "steps",
        "seed": "",
        "score": "loss",
        "knobs": KNOBS,
    }
    forge("command", settings)


@pytest.fixture
def function(forge: Forge, tmp_path: Path) -> None:
    (tmp_path / "scores.py").write_text(FUNCTION)
    settings = {"directory": str(tmp_path), "budget": 100, "knobs": KNOBS}
    forge("python:scores:evaluate", settings)


@pytest.fixture
def checkout(forge: Forge, nanochat_home: Path) -> None:
    settings = {
        "checkout": str(nanochat_home / "nanochat"),
        "target_flops": 1e11,
        "eager": True,
        "space": "matrix-lr+warmup-steps",
        "flags": FLAGS,
    }
    forge("nanochat", settings)


def knobs_of(command: "Command") -> dict[str, float]:
    document = orjson.loads(command("best", "--json").out)
    return {knob["name"]: knob["value"] for knob in document["recommended"]["knobs"]}


@pytest.mark.parametrize(
    ("door", "before"),
    [("program", ""), ("function", ""), ("checkout", "--")],
)
def test_arguments_and_file_are_what_the_program_takes(
    door: str, before: str, command: "Command", tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    request.getfixturevalue(door)
    knobs = knobs_of(command)
    words = (
        word.removeprefix(before).split("=") for word in shlex.split(command("best", "--flags").out)
    )
    given = {name: float(text) for name, text in words}
    assert given == pytest.approx(knobs, rel=1e-9)  # in as many digits as a program is given

    (tmp_path / "best.toml").write_text(command("best", "--toml").out)
    assert command("explain", "best.toml").code == 0
    rows = orjson.loads(command("explain", "best.toml", "--json").out)["knobs"]
    assert {row["name"]: row["baseline"] for row in rows} == knobs


def test_declared_knobs_keep_their_range_and_the_file_pins_no_sources(
    program: None, command: "Command"
) -> None:
    training = tomllib.loads(command("best", "--toml").out)["training"]
    assert training["knobs"]["opt.lr"]["max"] == 0.1
    assert isinstance(training["knobs"]["depth"]["baseline"], int)
    assert not {"code", "send", "needs"} & set(training)


def test_flags_of_a_checkout_are_moved_beside_those_that_were_not_searched(
    checkout: None, command: "Command"
) -> None:
    training = tomllib.loads(command("best", "--toml").out)["training"]
    assert training["flags"] == {**FLAGS, **knobs_of(command)}


TRAIN = ("best", "--train", "--executor", "inline", "--workers", "1", "--device", "cpu")


def test_a_program_s_own_files_lie_where_it_is_told(
    program: None, confirmed: Path, command: "Command"
) -> None:
    knobs = knobs_of(command)
    answer = command(*TRAIN, "--target-flops", "400", "--json")
    assert answer.code == 0, answer.err
    document = orjson.loads(answer.out)["training"]
    assert document["score"] == pytest.approx(3 - knobs["opt.lr"] - 0.4)
    (place,) = document["files"].values()
    assert (Path(place) / "output/model.bin").read_text() == "weights"
    assert verify(confirmed.parent.parent / "campaign/best-confirmed-x4").divergence is None


def test_a_function_gets_the_larger_budget(function: None, command: "Command") -> None:
    knobs = knobs_of(command)
    answer = command(*TRAIN, "--times", "2", "--json")
    assert answer.code == 0, answer.err
    assert orjson.loads(answer.out)["training"]["score"] == pytest.approx(3 - knobs["opt.lr"] - 0.2)


def test_a_checkout_keeps_the_checkpoints_of_the_recommendation_alone(
    checkout: None, confirmed: Path, command: "Command"
) -> None:
    answer = command(*TRAIN, "--target-flops", "2e11", "--compare")
    assert answer.code == 0, answer.err
    training = confirmed.parent.parent / "campaign/best-confirmed-x2"
    recommended, control = load_state(training).generations[0].conditions
    assert recommended.settings == {"target_flops": 2e11, "keep": "all"}
    assert control.settings == {"target_flops": 2e11}
    kept = list(training.glob("eval/**/base_checkpoints/**/model_*.pt"))
    assert [path.relative_to(training / "eval/gen_0000").parts[0] for path in kept] == ["cand_0000"]
    assert verify(training).divergence is None


def test_sources_that_have_changed_since_are_not_trained(
    program: None, command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "mine/train.py").write_text(PROGRAM.replace("3 -", "2 -"))
    answer = command(*TRAIN)
    assert answer.code == 2
    assert "mine" in answer.err
    assert knobs_of(command)  # looking goes on
