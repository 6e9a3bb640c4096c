"""Runs to put side by side, and models of such that were never carried out."""

from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from budgets.statistics.comparison import Gain
from orchestrator.compare.collect import compare
from orchestrator.compare.model import Compared, Scores, Side, Step
from orchestrator.report.model import Answer, Identity, KnobView


@pytest.fixture(scope="session")
def compared(confirmed_run: Path, finished_run: Path) -> Compared:
    """A search with a Go, and one of tier min: of different settings."""
    return compare([confirmed_run, finished_run])


def gain(mean: float | None, reach: float = 0.01, pairs: int = 8) -> Gain:
    ends = (None, None) if mean is None else (mean - reach, mean + reach)
    return Gain(
        pairs=pairs, mean=mean, sd=0.01, lower=ends[0], upper=ends[1], level=0.01, detectable=0.01
    )


def side(name: str, **more: Any) -> Side:
    """A run that nobody has carried out."""
    now = datetime(2026, 1, 1, tzinfo=UTC)
    identity = Identity(
        run_id=name, phase="phase1", tier="target", objective="sphere", score="score", began=now,
        last=now, is_over=True, sessions=(), records=1, head="0",
    )  # fmt: skip
    answer = Answer(
        title="Go that persists", sentence="", meaning="", luck="", found="", sure="", cost="",
        next="", commands=(), mood="good",
    )  # fmt: skip
    knob = KnobView(
        name="x", kind="linear", low=0, high=2, baseline=1, recommended=0.5, baseline_unit=0.5,
        recommended_unit=0.25,
    )  # fmt: skip
    steps = tuple(
        Step(evaluations=8 * n, device_hours=n / 10, best=0.01 * n, mean=0.005 * n)
        for n in range(1, 4)
    )
    values: dict[str, Any] = {
        "name": name, "label": name, "directory": f"/runs/{name}", "identity": identity,
        "answer": answer,
        "fingerprint": "f", "baseline": 1.0, "sd": 0.01, "gain": gain(0.05), "asked": 0.01,
        "statuses": {"ok": 24}, "balances": (), "timing": None, "steps": steps, "knobs": (knob,),
    }  # fmt: skip
    return Side(**{**values, **more})


@pytest.fixture
def make_side() -> Callable[..., Side]:
    return side


@pytest.fixture
def make_gain() -> Callable[..., Gain]:
    return gain


@pytest.fixture
def side_by_side() -> Callable[..., Compared]:
    """Runs whose scores can be compared, unless groups are given."""

    def make(*runs: Side, groups: tuple[tuple[int, ...], ...] | None = None) -> Compared:
        own = (tuple(range(len(runs))),) if groups is None else groups
        scores = Scores(groups=own, why_not=(), mind=())
        return Compared(runs=runs, scores=scores, facts=(), duels=())

    return make
