"""Runs of a few milliseconds a step, in a directory of their own."""

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol

import pytest
from rich.console import Console

from objectives.nanochat.program.options import Asked, Resolved, resolve
from objectives.nanochat.program.session import Session
from objectives.nanochat.program.stop import Stop

SMALL = {
    "n_layer": 2,
    "n_embd": 16,
    "sequence_len": 64,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "stochastic_train_frac": 0.3,
    "val_windows": 64,
    "num_batches": 12,
    "save_interval_steps": 4,
    "eval_interval_steps": 3,
    "log_interval_steps": 2,
    "device": "cpu",
}


class Small(Protocol):
    def __call__(self, directory: Path, **settings: Any) -> Resolved: ...


@pytest.fixture(scope="session")
def assignments(text: str) -> Callable[..., list[str]]:
    """The same settings as `--set` takes them."""

    def assigned(directory: Path, **settings: Any) -> list[str]:
        chosen = SMALL | {"data": text, "checkpoint_dir": str(directory)} | settings
        return [f"{name}={json.dumps(value)}" for name, value in chosen.items()]

    return assigned


@pytest.fixture(scope="session")
def small(assignments: Callable[..., list[str]]) -> Small:
    def build(directory: Path, **settings: Any) -> Resolved:
        return resolve(Asked(assignments=assignments(directory, **settings)))

    return build


class Train(Protocol):
    def __call__(
        self, directory: Path, stop: Stop | None = None, free: int = 2**40, **settings: Any
    ) -> tuple[dict[str, Any], str]: ...


@pytest.fixture(scope="session")
def train(small: Small) -> Train:
    """Trains in this process; returns the summary and what was printed."""

    def run(
        directory: Path, stop: Stop | None = None, free: int = 2**40, **settings: Any
    ) -> tuple[dict[str, Any], str]:
        shown = io.StringIO()
        session = Session(
            small(directory, **settings), Console(file=shown), stop or Stop(), lambda _: free
        )
        return session.train(), shown.getvalue()

    return run
