"""Runs to do harm to."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import orjson
import pytest

from budgets.ledger import HEAD, LEDGER
from orchestrator.records import runs
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


@pytest.fixture
def carried_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every run that is not over is being carried out, here."""
    monkeypatch.setattr(runs, "owner_is_gone", lambda _owner: False)
    monkeypatch.setattr(runs, "_is_here", lambda _state: True)


@pytest.fixture
def driver(
    tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Callable[..., None]:
    """`driver(first, second)`: what nvidia-smi will say of memory in use."""
    folder = tmp_path_factory.mktemp("driver")

    def says(first: object = 4, second: object = 4) -> None:
        rows = f"0, GPU-a, NVIDIA H200, {first}\n1, GPU-b, NVIDIA H200, {second}\n"
        (folder / "nvidia-smi").write_text(f"#!/bin/sh\nprintf '{rows}'\n")
        (folder / "nvidia-smi").chmod(0o700)

    says()
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
    return says


def forge(run: Path, change: Callable[[dict[str, Any]], object]) -> None:
    """Change the plan in a ledger and make its chain whole again, as a forger can."""
    lines = [orjson.loads(line) for line in (run / LEDGER).read_bytes().splitlines()]
    change(lines[0]["event"]["plan"])
    (run / LEDGER).write_bytes(sealed(lines))
    (run / HEAD).unlink()
    shutil.rmtree(run / "reports", ignore_errors=True)  # of a search
