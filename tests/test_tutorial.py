"""Every command of the tutorial, in order, shows the output that the tutorial shows."""

import os
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.conftest import REPOSITORY
from tests.console import Follower

TUTORIAL = REPOSITORY / "docs/tutorial.md"
pytestmark = pytest.mark.xdist_group("ray")  # a large group starts early, and this takes long

OBJECTIVE = (
    "--objective sphere --set noise=0.01 --set persists=0.2 --set seconds=0.02 --executor inline"
)
QUICK = {
    "$ orchestrator explain\n": "$ orchestrator explain --objective sphere\n",
    "orchestrator calibrate": f"orchestrator calibrate {OBJECTIVE}",
    "plan --tier target": f"plan --tier target {OBJECTIVE}",
    "$ orchestrator phase1 --tier target\n": (
        f"$ orchestrator phase1 --tier target --set search.generations=8 {OBJECTIVE}\n"
    ),
    "--tier min --from target-nanochat-s1\n": (
        f"--tier min --set search.generations=2 --from target-sphere-s1 {OBJECTIVE}\n"
    ),
    "fit.toml --tier target": "fit.toml --tier target --set search.generations=4 --executor inline",
    "train.toml --tier target": "train.toml --tier target --set search.generations=2 "
    "--executor inline",
    "nanochat": "sphere",
    "tau_c": "x0",
    "alpha_c": "x1",
    "post_slow_lr           log10 ": "x9 linear",
    " and synapses off (": " (",
    "(ray)": "(inline)",
}
"""What stands in the tutorial for a reader with an hour, and what takes its place in a test.

An objective of 20 ms instead of one of 5 s, in the search's own process.
"""


def environment(directory: Path) -> Mapping[str, str]:
    """A newcomer's, in a checkout whose .venv is this interpreter's."""
    checkout = directory / "checkout"
    checkout.mkdir()
    (checkout / ".venv").symlink_to(sys.prefix)
    inherited = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "LINES", "NO_COLOR")}
    return {
        **inherited,
        "PYTHONPATH": str(REPOSITORY),
        "VIRTUAL_ENV_DISABLE_PROMPT": "1",
    }


def follow(document: str, directory: Path, seconds: float) -> None:
    known = environment(directory)
    Follower(directory / "checkout", known, seconds).follow(document)


def quick(document: str) -> str:
    for long, short in QUICK.items():
        assert long in document, f"the tutorial says no more: {long!r}"
        document = document.replace(long, short)
    return document


@pytest.mark.slow
@pytest.mark.timeout(900)  # 22 s on two cores that do nothing else
def test_every_command_of_the_tutorial_shows_what_it_says(tmp_path: Path) -> None:
    follow(quick(TUTORIAL.read_text(encoding="utf-8")), tmp_path, seconds=120)


@pytest.mark.slow  # the same, word by word, in about 15 minutes of two cores; not in CI
@pytest.mark.timeout(7200)
def test_the_tutorial_itself_shows_what_it_says(tmp_path: Path) -> None:
    follow(TUTORIAL.read_text(encoding="utf-8"), tmp_path, seconds=3600)
