"""The ids of runs that commands begin follow from what was asked, and stay what they are."""

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import orjson
import pytest

if TYPE_CHECKING:
    from tests.conftest import Command

GOLDEN = Path(__file__).parents[2] / "golden/runs/go"
INLINE = ("--executor", "inline", "--workers", "2", "--set", "backend.threads=1", "--device", "cpu")
SPHERE = ("--objective", "sphere", "--set", "dimension=2")
CAPS = (
    "--max-hours",
    "4",
    "--max-cost",
    "100",
    "--set",
    "budget.price_per_device_hour=2",
    "--window",
    "12h",
)
LIMITS = ("--set", "evaluation.limit_seconds=90", "--set", "evaluation.stall_seconds=45")


@pytest.mark.parametrize(
    ("words", "name"),
    [
        (("check", "knobs", *SPHERE), "sphere-6d5af9078b-cpu-3fdf2b"),
        (
            ("check", "knobs", *SPHERE, *CAPS, *LIMITS, "--knobs", "x1", "--max-evals", "9"),
            "sphere-6d5af9078b-cpu-f1ffc3",
        ),
        (("check", "proxy", *SPHERE, "--fraction", "0.5"), "proxy-sphere-6d5af9078b-cpu-05f463"),
        (
            (
                "check",
                "proxy",
                *SPHERE,
                *CAPS,
                *LIMITS,
                "--set",
                "evaluation.seed=9",
                "--max-evals",
                "40",
            ),
            "proxy-sphere-6d5af9078b-cpu-2fa6d2",
        ),
    ],
)
def test_what_was_asked_decides_the_id(
    words: tuple[str, ...], name: str, command: "Command", tmp_path: Path
) -> None:
    golden = tmp_path / "artifacts/cmaes/phase1/golden"
    shutil.copytree(GOLDEN, golden)

    answer = command(*words, *INLINE)

    assert answer.code in {0, 4}, answer.err
    made = {run.name for run in tmp_path.glob("artifacts/cmaes/*/*") if run != golden}
    assert made == {name}


TERMS = """
[budget]
max_hours = 4
max_cost = 100
price_per_device_hour = 2
window = "12h"
[evaluation]
limit_seconds = 90
stall_seconds = 45
[backend]
executor = "inline"
workers = 2
threads = 1
device = "cpu"
"""


@pytest.mark.parametrize(
    "words",
    [
        ("check", "knobs", *SPHERE),
        ("check", "proxy", *SPHERE),
        ("check", "proxy", "--run", "golden"),
    ],
    ids=" ".join,
)
def test_terms_in_a_file_are_those_of_the_flags(
    words: tuple[str, ...], command: "Command", tmp_path: Path
) -> None:
    """Whatever is evaluated beside a search: the flags take up what the file began."""
    shutil.copytree(GOLDEN, tmp_path / "artifacts/cmaes/phase1/golden")
    (tmp_path / "terms.toml").write_text(TERMS)

    begun = command(*words, "terms.toml", "--json")
    again = command(*words, *CAPS, *LIMITS, *INLINE, "--json")

    assert begun.code == again.code in {0, 4}, begun.err + again.err
    assert orjson.loads(begun.out)["directory"] == orjson.loads(again.out)["directory"]
    assert len([*tmp_path.glob("artifacts/cmaes/*/*")]) == 2
