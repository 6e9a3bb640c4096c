"""Searches of a user's own function and program."""

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

FUNCTION = """
import math
def evaluate(knobs, seed, budget):
    score = 1 + math.log10(knobs["opt.lr"] / 0.01) ** 2
    return {"score": score + seed % 7 / 1000, "steps": int(budget)}
"""
COMMON = """
evaluation.assume_eval_seconds = 1.0
backend = { executor = "inline", workers = 1 }
[training.knobs]
"opt.lr" = { kind = "log10", min = 1e-4, max = 0.1, baseline = 0.003 }
depth = { kind = "int", min = 1, max = 8, baseline = 2 }
"""
SEARCH = f"""
objective = "command"
search.tier = "min"
slurm.time = "1h"
{COMMON}
[training]
argv = ["python", "train.py"]
score = "loss"
"""
CAMPAIGN = f"""
objective = "python:train:evaluate"
factors.directory = [".", "other"]
campaign = {{ seeds = [1], controls = false }}
{COMMON}
[training]
budget = 8
"""


def test_what_is_exported_is_the_same_run_held_fast(command: "Command", tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('loss: 1')")
    (tmp_path / "my.toml").write_text(SEARCH)
    assert command("export", "slurm", "my.toml", "--out", "out", "--write").code == 0
    (config,) = tmp_path.glob("out/*/config.toml")
    mine, exported = (
        orjson.loads(command("explain", str(file), "--json").out)["values"]
        for file in ("my.toml", config)
    )
    for key in (key for key in mine if key.startswith("training.")):
        assert exported[key]["value"] == mine[key]["value"]
    assert exported["training.code"]["source"] == f"file {config}"


def test_a_campaign_compares_directories_each_with_its_own_code(
    command: "Command", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)  # a picture takes longer than all this
    (tmp_path / "other").mkdir()
    (tmp_path / "train.py").write_text(FUNCTION)
    (tmp_path / "other/train.py").write_text(FUNCTION.replace("1 +", "2 +"))
    (tmp_path / "my.toml").write_text(CAMPAIGN)

    answer = command("run", "my.toml", "--json")

    assert answer.code == 0, answer.err
    run = tmp_path / "artifacts/cmaes/campaign/my"
    conditions = orjson.loads((run / "run.json").read_bytes())["campaign"]["conditions"]
    means = {row["name"]: row["mean"] for row in orjson.loads(answer.out)["campaign"]["rows"]}
    codes = [one["settings"].get("code") for one in conditions]
    assert codes[0] is None  # as the campaign's own
    assert list(codes[1]) == ["train.py"]
    assert means["directoryother"] - means["directory."] == pytest.approx(1.0)
