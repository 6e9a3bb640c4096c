"""What starting up costs: planning must not import an engine or a training library."""

import subprocess
import sys

import pytest

HEAVY = ("torch", "ray", "cma", "numpy")


@pytest.mark.parametrize("module", ["objectives.registry", "objectives.analytic"])
def test_importing_an_objective_imports_no_heavy_library(module: str) -> None:
    code = f"import {module}, sys; print([m for m in {HEAVY} if m in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"
