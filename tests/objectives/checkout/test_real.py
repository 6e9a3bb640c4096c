"""The real thing, where there is one: NANOCHAT_CHECKOUT, NANOCHAT_PYTHON and NANOCHAT_BASE_DIR."""

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.api import DivergedError, SetupError
from objectives.checkout.objective import CheckoutObjective

NAMES = ("NANOCHAT_CHECKOUT", "NANOCHAT_PYTHON", "NANOCHAT_BASE_DIR")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        any(name not in os.environ for name in NAMES), reason=f"needs {', '.join(NAMES)}"
    ),
]


@pytest.fixture
def real(settings: Callable[..., dict[str, Any]]) -> Callable[..., CheckoutObjective]:
    """`real(flags={...}, ...)`: a training of two steps, without torch.compile."""

    def load(**more: Any) -> CheckoutObjective:
        base = Path(os.environ["NANOCHAT_BASE_DIR"])
        places = {
            "checkout": os.environ["NANOCHAT_CHECKOUT"],
            "python": os.environ["NANOCHAT_PYTHON"],
            "data": str(base / "base_data_climbmix"),
            "tokenizer": str(base / "tokenizer"),
        }
        flags = {"window-pattern": "L", "eval-tokens": 2048, **more.pop("flags", {})}
        return CheckoutObjective.from_settings(
            settings(**{**places, "target_flops": 3e10, "flags": flags, **more})
        )

    return load


def test_it_is_scored_the_same_twice_and_otherwise_on_another_seed(
    real: Any, attempts: Any
) -> None:
    objective = real()
    (warning,) = objective.preflight()
    assert "warmup-steps 2 is more than a third of the steps" in warning
    first = attempts.evaluate(objective)
    assert 1 < first.score < first.metrics["initial_bpb"]
    assert first.steps >= 1
    assert first.tokens == first.steps * 2048
    assert first.train_flops == pytest.approx(first.tokens * first.metrics["flops_per_token"])
    assert first.eval_flops > 0
    assert attempts.evaluate(objective).score == first.score
    assert attempts.evaluate(objective, seed=2).score != first.score
    assert {path.name for path in attempts.last.iterdir()} >= {"program.json"}
    assert not (attempts.last / "base").exists()


def test_a_training_that_diverges_is_ended(real: Any, attempts: Any) -> None:
    rates = dict.fromkeys(("matrix_lr", "embedding_lr", "unembedding_lr"), 1e30)
    with pytest.raises(DivergedError, match="the loss is nan at step"):
        attempts.evaluate(real(target_flops=1e11), **rates)


def test_the_checkout_stays_as_it_was(real: Any, attempts: Any) -> None:
    def status() -> str:
        git = shutil.which("git") or "git"
        argv = (git, "-C", os.environ["NANOCHAT_CHECKOUT"], "status", "--porcelain")
        return subprocess.run(argv, capture_output=True, text=True, check=True).stdout

    before = status()
    attempts.evaluate(real())
    assert status() == before


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target_flops": 1e9}, "pays for no step"),
        ({"flags": {"eval-tokens": 2047}}, "nothing was scored"),
        ({"flags": {"total-batch-size": 3000}}, "must be a multiple of 2048"),
        ({"flags": {"eval-every": -1}}, "no line"),
        ({"flags": {"grad-clip": 1.0}}, "unrecognized arguments"),
        ({"tokenizer": "/nowhere"}, "tokenizer.pkl"),
        ({"data": "/nowhere"}, r"expected two or more \*\.parquet"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_its_traps_are_those_of_the_fake(
    wrong: dict[str, Any], said: str, real: Any, attempts: Any
) -> None:
    with pytest.raises(SetupError, match=said):
        attempts.evaluate(real(**wrong))
