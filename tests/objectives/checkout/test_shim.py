"""The shim around torch itself; around a stand-in every other test of a checkout uses it."""

import subprocess
import sys
from pathlib import Path

import pytest

from objectives.checkout.objective import SHIM

PROGRAM = """
import sys
import torch

@torch.compile(dynamic=False, fullgraph=True)
def doubled(x):
    return 2 * x

torch.manual_seed(42)
print(__name__, sys.argv[1:], torch.initial_seed(), torch.compile(len) is len)
print(torch.rand(1).item() == torch.rand(1, generator=torch.Generator().manual_seed(42 + 7)).item())
print(doubled(torch.ones(1)).item())
"""


@pytest.mark.slow  # it imports torch
def test_torch_itself_is_seeded_and_left_uncompiled(tmp_path: Path) -> None:
    (tmp_path / "program.py").write_text(PROGRAM)
    argv = (sys.executable, str(SHIM), "program", "7", "eager", "--depth=4")
    done = subprocess.run(argv, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines() == ["__main__ ['--depth=4'] 49 True", "True", "2.0"]


@pytest.mark.parametrize("text", ["raise SystemExit(3)", "import sys; sys.exit(3)"])
def test_the_modules_exit_status_is_the_shims(text: str, tmp_path: Path, checkout: Path) -> None:
    (checkout / "program.py").write_text(text)
    argv = (sys.executable, str(SHIM), "program", "7", "compiled")
    assert subprocess.run(argv, cwd=checkout, check=False).returncode == 3
