"""`plan` on the command line."""

from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

from tests.imported import MAIN, imported_by

if TYPE_CHECKING:
    from tests.conftest import Command

SPHERE = ("--objective", "sphere", "--set", "noise=0.01")
PLAN = ("plan", *SPHERE, "--workers", "1")


@pytest.mark.parametrize("option", ["--devices"])
def test_other_numbers_of_devices_are_compared(command: "Command", option: str) -> None:
    answer = command(*PLAN, "--assume-eval-seconds", "60", option, "1,4")
    assert answer.code == 0
    assert "On other numbers of devices" in answer.out
    rows = [line.split(maxsplit=2) for line in answer.out.splitlines()]
    (row,) = (row for row in rows if row[:2] == ["min", "4"])
    assert row[2].startswith("8 x 2 x 1")
    assert "4 min 10 s" in row[2]  # four rounds of a minute, ten seconds until the first begins


def test_a_calibrated_plan_passes_what_it_knows(command: "Command") -> None:
    assert command("calibrate", *SPHERE, "--executor", "inline", "--workers", "1").code == 0
    answer = command(*PLAN, "--json")
    document = orjson.loads(answer.out)
    assert answer.code == 0
    assert document["times"]["origin"] == "measured"
    assert document["times"]["overheads"]["assumed"] == ["between generations"]
    verdicts = {i["question"]: i["verdict"] for i in document["tiers"][0]["checklist"]}
    assert verdicts["Does a pilot confirm the time of an evaluation?"] == "pass"
    assert verdicts["Are the knobs shown to be alive?"] == "unknown"


def test_phase_2_takes_the_same_options(command: "Command") -> None:
    answer = command("plan", *SPHERE, "--variant", "robust", "--devices", "x", "--from", "r")
    assert answer.code == 2
    assert "--devices: expected whole numbers" in answer.err


def test_a_plan_imports_no_engine_and_no_search(tmp_path: Path) -> None:
    words = ("--objective", "sphere", "--assume-eval-seconds", "60", "--devices", "1,4")
    imported = imported_by(MAIN, "plan", *words, cwd=tmp_path)
    assert not imported & {"torch", "ray", "cma"}
    assert not list(tmp_path.iterdir())
