"""Searches of a user's own function and program."""

import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

FUNCTION = """
import math
def evaluate(knobs, seed, budget, width=4):
    score = 1 + math.log10(knobs["opt.lr"] / 0.01) ** 2 + 0.01 * knobs.get("wd", 0.0)
    return {"score": score + seed % 7 / 1000 + width / 1000, "steps": int(budget)}
"""

PROGRAM = """
import math, sys
knobs = dict(word.split("=") for word in sys.argv[1:])
print("loss:", 1 + math.log10(float(knobs["opt.lr"]) / 0.01) ** 2 + int(knobs["seed"]) % 7 / 1000)
"""

OF_A_FUNCTION = """
objective = "python:train:evaluate"
[training]
budget = 8
"""

OF_A_PROGRAM = f"""
objective = "command"
[training]
argv = [{shlex.quote("python")!r}, "train.py"]
score = "loss"
"""

KNOBS = """
knobs."opt.lr" = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }
knobs.depth = { kind = "int", min = 1, max = 8, baseline = 2 }
"""

BACKEND = """
[evaluation]
assume_eval_seconds = 1.0
[backend]
executor = "inline"
workers = 1
"""

DOORS = {"function": OF_A_FUNCTION, "command": OF_A_PROGRAM}

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """`write("function", KNOBS + BACKEND)`: a configuration file of that name."""

    def file(door: str, *parts: str, name: str = "my.toml") -> Path:
        (tmp_path / name).write_text(DOORS[door] + "".join(parts))
        return tmp_path / name

    return file


@pytest.fixture
def function(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text(FUNCTION)
    return tmp_path / "train.py"


def test_what_is_exported_is_the_same_run_held_fast(
    write: Write, command: "Command", tmp_path: Path
) -> None:
    (tmp_path / "train.py").write_text(PROGRAM)
    write("command", KNOBS, BACKEND, '[search]\ntier = "min"\n[slurm]\ntime = "1h"\n')
    assert command("export", "slurm", "my.toml", "--out", "out", "--write").code == 0
    (config,) = tmp_path.glob("out/*/config.toml")
    values = [
        orjson.loads(command("explain", str(file), "--json").out)["values"]
        for file in ("my.toml", config)
    ]

    ours, exported = (
        {key: one["value"] for key, one in all_.items() if key.startswith("training.")}
        for all_ in values
    )

    assert exported == ours
    assert values[1]["training.code"]["source"] == f"file {config}"


CAMPAIGN = """
[factors]
directory = [".", "other"]
[campaign]
seeds = [1]
controls = false
"""


def test_a_campaign_compares_directories_each_with_its_own_code(
    write: Write,
    function: Path,
    command: "Command",
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # a picture takes longer than all this
    (tmp_path / "other").mkdir()
    (tmp_path / "other/train.py").write_text(FUNCTION.replace("1 +", "2 +"))
    write("function", KNOBS, CAMPAIGN, BACKEND)

    answer = command("run", "my.toml", "--json")

    assert answer.code == 0, answer.err
    run = tmp_path / "artifacts/cmaes/campaign/my"
    conditions = orjson.loads((run / "run.json").read_bytes())["campaign"]["conditions"]
    found = orjson.loads(answer.out)["campaign"]
    means = {row["name"]: row["mean"] for row in found["rows"]}
    codes = [one["settings"].get("code") for one in conditions]
    assert codes[0] is None  # as the campaign's own
    assert list(codes[1]) == ["train.py"]
    assert means["directoryother"] - means["directory."] == pytest.approx(1.0)
