"""Runs whose reports are looked at, each where the command line finds it."""

import shutil
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Concluded
from budgets.terms import Plan
from budgets.verdict.decision import decide
from orchestrator.report.collect import report_of
from orchestrator.report.model import Report
from tests.budgets.conftest import Story, confirmed_plan, told_of

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def confirmed(confirmed_run: Path, tmp_path: Path) -> Path:
    """A copy of the search with every panel there is, which ended in a Go."""
    root = confirmed_run.parents[1]
    shutil.copytree(root, tmp_path / "artifacts/cmaes")
    return tmp_path / "artifacts/cmaes" / confirmed_run.relative_to(root)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A finished campaign: its ledger alone."""
    directory = tmp_path / "artifacts/cmaes/campaign/golden"
    shutil.copytree(GOLDEN / "schema_5_campaign", directory)
    return directory


KNOBS = [
    {"name": f"x{place}", "kind": "linear", "low": -1.0, "high": 1.0, "baseline": 0.0}
    for place in range(2)
]


def in_two_knobs(**fields: Any) -> Plan:
    """The terms of a search of tier target that is compared on fresh seeds."""
    return confirmed_plan(**{"space": {"knobs": KNOBS}, **fields})


def judged(**outcomes: Any) -> Story:
    """A search with these outcomes, its verdict and its end on record."""
    story = told_of(in_two_knobs(), **outcomes)
    fired, verdict = decide(story.state)
    story.say(*fired, verdict, Concluded(reason=verdict.evidence))
    return story


def reported(story: Story, directory: Path = Path("artifacts/cmaes/phase1/judged")) -> Report:
    """The report of a run told in memory: none of its attempts left a file."""
    return report_of(directory, story.records)
