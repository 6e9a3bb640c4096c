"""Runs a module of the directory it is started in as `python -m` would, with a seed of our own.

    python shim.py MODULE SEED ARGUMENTS...

Whatever the module seeds torch with, SEED is added to. It runs in the user's interpreter: it needs
torch and the standard library, nothing of ours.
"""

import os
import runpy
import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any


def main(module: str, seed: int, arguments: list[str]) -> None:
    """Run the module to its end: its exit status is ours."""
    ours = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [os.getcwd(), *(place for place in sys.path if place != ours)]
    torch: Any = import_module("torch")
    torch.manual_seed = _shifted(torch.manual_seed, seed)
    torch.cuda.manual_seed = _shifted(torch.cuda.manual_seed, seed)
    sys.argv = [module, *arguments]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


def _shifted(seed_with: Callable[[int], Any], by: int) -> Callable[[int], Any]:
    return lambda seed: seed_with(int(seed) + by)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), sys.argv[3:])
