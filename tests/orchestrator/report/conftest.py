"""Runs whose reports are looked at, each where the command line finds it."""

import shutil
from pathlib import Path

import pytest

GOLDEN = Path(__file__).parents[2] / "golden"


@pytest.fixture
def confirmed(confirmed_run: Path, tmp_path: Path) -> Path:
    """A copy of the search with every panel there is, which ended in a Go that persists."""
    root = confirmed_run.parents[1]
    shutil.copytree(root, tmp_path / "artifacts/cmaes")
    return tmp_path / "artifacts/cmaes" / confirmed_run.relative_to(root)


@pytest.fixture
def campaign(tmp_path: Path) -> Path:
    """A finished campaign: its ledger alone."""
    directory = tmp_path / "artifacts/cmaes/campaign/golden"
    shutil.copytree(GOLDEN / "schema_5_campaign", directory)
    return directory
