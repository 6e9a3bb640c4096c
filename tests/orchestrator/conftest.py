"""Runs to do harm to."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER
from orchestrator.records.runs import Result
from tests.product.books import sealed

NOISY: dict[str, Any] = {
    "settings": {"noise": 0.001, "failure_rate": 0.06},
    "evaluation_seed": 4,
}
"""Of a sphere one of whose first sixteen evaluations fails. Its noise is too small to rank them, so
that the last bits of points, which depend on the processor, do not decide which.
"""


@pytest.fixture(scope="session")
def finished_run(
    tmp_path_factory: pytest.TempPathFactory, run_search: Callable[..., Result]
) -> Path:
    """A run of tier min without a disturbance: 39 records, 16 evaluations, a calibration."""
    return run_search(tmp_path_factory.mktemp("finished"), **NOISY).directory


@pytest.fixture
def run(finished_run: Path, tmp_path: Path) -> Path:
    """A copy of it, and of its calibration, where the command line finds it."""
    root = finished_run.parent.parent
    shutil.copytree(root, tmp_path / "artifacts/cmaes")
    return tmp_path / "artifacts/cmaes" / finished_run.relative_to(root)


def forge(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the plan in a ledger and make its chain whole again, as a forger can."""
    lines = [orjson.loads(line) for line in (run / LEDGER).read_bytes().splitlines()]
    change(lines[0]["event"]["plan"])
    (run / LEDGER).write_bytes(sealed(lines))
    (run / HEAD).unlink()
    shutil.rmtree(run / "reports", ignore_errors=True)  # of a search
