from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from objectives.nanochat.program.checks import Check
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.train import Trainer

Small = Callable[..., Resolved]


def checked(resolved: Resolved, free: int = 2**40) -> tuple[Check, dict[str, list[str]]]:
    """The check, and the subjects of its findings by state."""
    check = Check(resolved, lambda _: free)
    ready = check.run()
    found = {
        state: [f.subject for f in check.findings if f.state == state]
        for state in ("ok", "warning", "missing")
    }
    assert ready == (not found["missing"])
    return check, found


def text(check: Check, subject: str) -> str:
    return next(f.text for f in check.findings if f.subject == subject)


def test_a_run_that_could_begin_is_ok_throughout_and_nothing_is_written(
    small: Small, tmp_path: Path
) -> None:
    _, found = checked(small(tmp_path / "new", num_batches=300, eval_interval_steps=99))
    assert found == {
        "ok": ["data", "device", "configuration", "disk", "directory", "steps", "time"],
        "warning": ["configuration"],
        "missing": [],
    }
    assert not (tmp_path / "new").exists()


def test_the_time_of_the_whole_run_follows_from_a_few_steps(small: Small, tmp_path: Path) -> None:
    measured = checked(small(tmp_path, num_batches=300, eval_interval_steps=100))[0].measured
    assert measured["seconds_per_step"] > 0
    assert measured["peak_memory_bytes"] > 1e7
    assert measured["expected_seconds"] == pytest.approx(
        300 * measured["seconds_per_step"] + 3 * measured["seconds_per_evaluation"]
    )


@pytest.mark.parametrize(
    ("settings", "free", "missing"),
    [
        ({"data": "file-that-is-not-there.txt"}, 2**40, ["data"]),
        ({"sequence_len": 65536}, 2**40, ["data"]),
        ({"num_batches": None, "target_flops": 1e3}, 2**40, ["configuration"]),
        ({}, 1000, ["disk"]),
        ({"device": "cuda"}, 2**40, ["device"]),
    ],
)
def test_what_is_missing_is_named_and_the_rest_is_checked_all_the_same(
    small: Small, tmp_path: Path, settings: dict[str, Any], free: int, missing: list[str]
) -> None:
    if "cuda" in settings.values():
        torch = pytest.importorskip("torch")
        if torch.cuda.is_available():
            pytest.skip("there is a GPU")
    _, found = checked(small(tmp_path, **settings), free)
    assert found["missing"] == missing
    assert found["ok"]


def test_a_directory_says_what_a_run_would_do_there(
    small: Small, train: Any, tmp_path: Path
) -> None:
    train(tmp_path)
    assert "this run, finished" in text(checked(small(tmp_path))[0], "directory")
    (tmp_path / "summary.json").unlink()
    assert "goes on from step 12" in text(checked(small(tmp_path))[0], "directory")
    other, found = checked(small(tmp_path, seed=1))
    assert found["missing"] == ["directory"]
    assert "seed was 42, is 1" in text(other, "directory")


def test_a_loss_that_is_not_finite_is_found(
    small: Small, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Trainer, "step", _broken(Trainer.step))
    check, found = checked(small(tmp_path))
    assert found["missing"] == ["steps"]
    assert "loss is nan at step 3" in text(check, "steps")


def _broken(step: Callable[[Trainer], None]) -> Callable[[Trainer], None]:
    def broken(self: Trainer) -> None:
        step(self)
        if self.done == 3:
            self.losses[2] = float("nan")

    return broken
