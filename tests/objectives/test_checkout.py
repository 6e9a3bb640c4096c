"""A checkout that trains nothing: its settings, what is pinned, and each end of an evaluation."""

import json
import math
import re
import shutil
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.api import (
    Context,
    DivergedError,
    Measurement,
    NoScoreError,
    ObjectiveError,
    OutOfMemoryError,
    ProgramFailedError,
    SetupError,
)
from objectives.checkout import CheckoutObjective

FAKE = Path(__file__).parent / "fake_nanochat"

FLAGS: dict[str, Any] = {
    "depth": 4,
    "aspect-ratio": 32,
    "head-dim": 64,
    "max-seq-len": 128,
    "device-batch-size": 16,
    "total-batch-size": 2048,
    "eval-tokens": 8192,
}
KNOBS: dict[str, Any] = {
    "matrix-lr": {"kind": "log10", "min": 0.002, "max": 2.0, "baseline": 0.02},
    "warmup-steps": {"kind": "int", "min": 0, "max": 4, "baseline": 2},
}
DEPTH = {"kind": "int", "min": 1, "max": 9, "baseline": 5}
SHARDS = [f"base_data_climbmix/shard_0000{number}.parquet" for number in (0, 1)]

Load = Callable[..., CheckoutObjective]
Evaluate = Callable[..., Measurement]


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A fake checkout, the test's own."""
    return shutil.copytree(FAKE, tmp_path / "nanochat", ignore=shutil.ignore_patterns("*.pyc"))


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """Where its data and tokenizer are."""
    for name in (*SHARDS, "tokenizer/tokenizer.pkl", "tokenizer/token_bytes.pt"):
        file = tmp_path / "base" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(name.encode() * 10)
    return tmp_path / "base"


@pytest.fixture
def load(checkout: Path, base: Path) -> Load:
    """`load(flags={...}, trap="nan", ...)`: a training of eight steps, with other settings."""

    def objective(
        flags: dict[str, Any] | None = None, trap: str = "", **more: Any
    ) -> CheckoutObjective:
        usual = {
            "checkout": str(checkout),
            "python": sys.executable,
            "data": str(base / "base_data_climbmix"),
            "tokenizer": str(base / "tokenizer"),
            "target_flops": 1e11,
            "flags": FLAGS | (flags or {}),
            "knobs": KNOBS,
            "environment": {"FAKE_TRAP": trap} if trap else {},
        }
        return CheckoutObjective.from_settings("nanochat", usual | more)

    return objective


@pytest.fixture
def attempt(tmp_path: Path) -> Path:
    """The directory of the last evaluation."""
    return tmp_path / "attempt"


@pytest.fixture
def evaluate(attempt: Path) -> Evaluate:
    """Evaluates the baseline."""

    def run(
        objective: CheckoutObjective, seed: int = 1, pinned: dict[str, str | int] | None = None
    ) -> Measurement:
        shutil.rmtree(attempt, ignore_errors=True)
        attempt.mkdir()
        context = Context(attempt, "cpu", 1, lambda _: None, "an-attempt", pinned or {})
        knobs = {knob.name: knob.baseline for knob in objective.space.knobs}
        return objective.evaluate(knobs, seed, context)

    return run


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"checkout": "/nowhere"}, "expected a clone"),
    ({"target_flops": None}, "target_flops"),
    ({"flags": {"target_flops": 5}}, "target_flops cannot be set here"),
]


@pytest.mark.parametrize(("wrong", "word"), WRONG)
def test_a_wrong_setting_is_refused_by_name(wrong: dict[str, Any], word: str, load: Load) -> None:
    with pytest.raises(ValueError, match=re.escape(word)):
        load(**wrong)


def test_the_fingerprint_is_of_all_that_decides_a_score(
    load: Load, checkout: Path, base: Path, tmp_path: Path
) -> None:
    before = load().fingerprint
    (checkout / "README.md").write_text("read me")
    moved = shutil.copytree(base / "base_data_climbmix", tmp_path / "elsewhere")
    elsewhere = shutil.copytree(checkout, tmp_path / "another")
    assert load(checkout=str(elsewhere), data=str(moved)).fingerprint == before

    seen = [before]
    for name in (
        "nanochat/scripts/base_train.py",
        f"base/{SHARDS[0]}",
        "base/tokenizer/tokenizer.pkl",
    ):
        with (tmp_path / name).open("a") as file:
            file.write("# another line\n")
        seen.append(load().fingerprint)
    shard = base / SHARDS[1]
    shard.write_bytes(shard.read_bytes()[:-1] + b"x")  # the same size
    more: list[dict[str, Any]] = [{"target_flops": 2e11}, {"environment": {"A": "1"}}, {}]
    seen += [load(**settings).fingerprint for settings in more]
    assert len(set(seen)) == len(seen)
    assert {"data_sha256", "tokenizer_sha256"} <= set(load().provenance)


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"python": "/nowhere/python"}, "/nowhere/python"),
        ({"data": "/nowhere"}, "/nowhere"),
        ({"tokenizer": "/nowhere"}, "tokenizer.pkl"),
        ({"knobs": {"adam-beta1": DEPTH}}, "'adam-beta1'"),
    ],
)
def test_what_cannot_come_to_a_score_is_refused(
    wrong: dict[str, Any], word: str, load: Load
) -> None:
    assert load().preflight() == ()
    with pytest.raises(SetupError) as refused:
        load(**wrong).preflight()
    assert word in str(refused.value)


def test_an_evaluation_measures_what_the_program_reports(
    load: Load, evaluate: Evaluate, attempt: Path
) -> None:
    found = evaluate(load())
    per_token = 6 * (12 * 4 * 128**2 + 2048 * 128)
    assert 2.9 < found.score < 3.6
    assert (found.steps, found.tokens) == (8, 8 * 2048)
    assert found.train_flops == pytest.approx(per_token * found.tokens, rel=1e-6)
    assert found.metrics == {"peak_mib": 12.5, "loss": pytest.approx(7.53)}
    argv = json.loads((attempt / "program.json").read_text())["argv"]
    assert argv[-2:] == ["--matrix-lr=0.02", "--warmup-steps=2"]
    assert "--device-type=cpu" in argv


def test_the_seed_reaches_the_program(load: Load, evaluate: Evaluate) -> None:
    first = evaluate(load()).score
    assert evaluate(load(), seed=2).score != first
    assert math.isnan(evaluate(load(trap="late nan")).score)


ENDS: list[tuple[dict[str, Any], type[ObjectiveError], str]] = [
    ({"trap": "nan"}, DivergedError, "loss: nan"),
    ({"target_flops": 1e9}, NoScoreError, "no score"),
    ({"flags": {"grad-clip": 1.0}}, ProgramFailedError, "--grad-clip=1.0"),
    ({"trap": "oom"}, OutOfMemoryError, "memory"),
]


@pytest.mark.parametrize(("given", "error", "word"), ENDS)
def test_every_other_end_says_why_and_leaves_nothing(
    given: dict[str, Any],
    error: type[ObjectiveError],
    word: str,
    load: Load,
    evaluate: Evaluate,
    attempt: Path,
    base: Path,
) -> None:
    before = sorted(base.rglob("*"))
    with pytest.raises(error) as raised:
        evaluate(load(**given))
    assert word in str(raised.value)
    assert {path.name for path in attempt.iterdir()} == {"program.json"}
    assert sorted(base.rglob("*")) == before


@pytest.mark.parametrize("name", [SHARDS[1], "tokenizer/tokenizer.pkl"])
def test_other_data_than_the_plans_is_refused(
    name: str, load: Load, evaluate: Evaluate, base: Path, attempt: Path
) -> None:
    objective = load()
    pinned = objective.provenance
    (base / name).write_bytes(b"another")
    with pytest.raises(SetupError, match="changed"):
        evaluate(objective, pinned=pinned)
    assert not list(attempt.iterdir())
