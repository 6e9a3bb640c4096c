"""Small campaigns, carried out in this process."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

FACTORIAL = """
objective = "sphere"
runs_dir = "{root}"

[training]
dimension = 2
noise = 0.01

[campaign]
name = "toy"
seeds = [1, 2, 3]

[factors]
failure_rate = [0.0, {failing}]
noise = [0.01, 0.02]

[backend]
executor = "inline"
workers = 1
"""

SEARCHES = """
objective = "sphere"
runs_dir = "{root}"

[training]
dimension = 2
noise = 0.01

[search]
tier = "min"
population = 4

[evaluation]
assume_eval_seconds = 1.0

[campaign]
name = "searches"
cell = "search"
controls = false
seeds = [1, 2]

[factors.step]
small = {{ "search.sigma0" = 0.05 }}
large = {{ "search.sigma0" = 0.3 }}

[backend]
executor = "inline"
workers = 1
"""
