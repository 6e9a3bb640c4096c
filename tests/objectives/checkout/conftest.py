"""A checkout that trains nothing, data and a tokenizer for it, and the objective over them."""

import shutil
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from objectives.api import Context, Measurement
from objectives.checkout.objective import CheckoutObjective

FAKE = Path(__file__).parent / "fake"

FLAGS: dict[str, Any] = {
    "depth": 4,
    "aspect-ratio": 32,
    "head-dim": 64,
    "max-seq-len": 128,
    "device-batch-size": 16,
    "total-batch-size": 2048,
    "eval-tokens": 8192,
    "warmup-steps": 2,
}
TARGET_FLOPS = 1e11
"""Seven steps of 2,048 tokens."""


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fake checkout, the test's own."""
    return shutil.copytree(FAKE, tmp_path / "nanochat", ignore=shutil.ignore_patterns("*.pyc"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where its data and tokenizer are."""
    base = tmp_path / "base"
    for name in (
        "base_data_climbmix/shard_00000.parquet",
        "base_data_climbmix/shard_00001.parquet",
    ):
        (base / name).parent.mkdir(parents=True, exist_ok=True)
        (base / name).write_bytes(name.encode() * 10)
    (base / "tokenizer").mkdir()
    for name in ("tokenizer.pkl", "token_bytes.pt"):
        (base / "tokenizer" / name).write_bytes(name.encode())
    return base


Settings = Callable[..., dict[str, Any]]


@pytest.fixture
def settings(checkout: Path, base: Path) -> Settings:
    """`settings(flags={...}, ...)`: those of a short training, with others laid over them."""

    def laid(flags: dict[str, Any] | None = None, trap: str = "", **more: Any) -> dict[str, Any]:
        usual = {
            "checkout": str(checkout),
            "python": sys.executable,
            "data": str(base / "base_data_climbmix"),
            "tokenizer": str(base / "tokenizer"),
            "target_flops": TARGET_FLOPS,
            "eager": True,
            "flags": FLAGS | (flags or {}),
            "environment": {"FAKE_TRAP": trap} if trap else {},
        }
        return usual | more

    return laid


Load = Callable[..., CheckoutObjective]


@pytest.fixture
def load(settings: Settings) -> Load:
    """`load(flags={...}, trap="nan", ...)`: the objective with those settings."""
    return lambda **more: CheckoutObjective.from_settings(settings(**more))


@dataclass
class Place:
    """Where evaluations of a test are made, and what they told while they ran."""

    root: Path
    beats: list[dict[str, float]] = field(default_factory=list)
    made: int = 0

    def context(self, device: str = "cpu") -> Context:
        self.made += 1
        directory = self.root / f"attempt{self.made}"
        directory.mkdir(parents=True)
        return Context(directory, device, 1, lambda m: self.beats.append(dict(m)), "an-attempt")

    @property
    def last(self) -> Path:
        """The directory of the last evaluation."""
        return self.root / f"attempt{self.made}"

    def evaluate(self, objective: CheckoutObjective, seed: int = 1, **knobs: float) -> Measurement:
        """An evaluation of the baseline with some knobs elsewhere."""
        baseline = {knob.name: knob.baseline for knob in objective.space.knobs}
        elsewhere = {name.replace("_", "-"): value for name, value in knobs.items()}
        return objective.evaluate(baseline | elsewhere, seed, self.context())


@pytest.fixture
def attempts(tmp_path: Path) -> Place:
    return Place(tmp_path / "attempts")
