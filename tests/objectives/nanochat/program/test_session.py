import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import Context, DivergedError, SetupError
from objectives.nanochat.evaluation import evaluate
from objectives.nanochat.flops import per_token
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.program.stop import Stop
from objectives.nanochat.program.store import read_manifest
from objectives.nanochat.train import Trainer

Train = Callable[..., tuple[dict[str, Any], str]]
Small = Callable[..., Resolved]


class NoTraining(Stop):
    """Nothing may be trained or evaluated."""

    def check(self) -> None:
        raise AssertionError


def test_the_score_is_the_one_an_evaluation_of_the_objective_gives(
    small: Small, train: Train, tmp_path: Path
) -> None:
    resolved = small(tmp_path, num_batches=25)
    context = Context(tmp_path, "cpu", resolved.program.threads, lambda _: None)
    measured = evaluate(resolved.training, resolved.program.seed, context)
    assert train(tmp_path, num_batches=25)[0]["bpb"] == measured.score


def test_a_finished_run_says_so_and_trains_nothing(train: Train, tmp_path: Path) -> None:
    first, _ = train(tmp_path)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again, shown = train(tmp_path, NoTraining(), free=0)
    assert "finished: nothing to train" in shown
    assert again == first
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == before


def test_a_lost_summary_is_written_again_from_the_last_checkpoint(
    train: Train, tmp_path: Path
) -> None:
    first, _ = train(tmp_path)
    (tmp_path / "summary.json").write_text("{")
    again, _ = train(tmp_path, NoTraining())
    assert again["bpb"] == first["bpb"]
    assert again["processes"] == 2


@pytest.mark.parametrize(
    ("change", "difference"),
    [({"matrix_lr": 0.5}, "matrix_lr was 0.02, is 0.5"), ({"seed": 1}, "seed was 42, is 1")],
)
def test_a_checkpoint_of_another_run_is_refused(
    train: Train, tmp_path: Path, change: dict[str, Any], difference: str
) -> None:
    train(tmp_path)
    with pytest.raises(ValueError, match=difference):
        train(tmp_path, **change)


def test_what_does_not_fit_on_the_disk_is_refused_before_anything_is_made(
    train: Train, tmp_path: Path
) -> None:
    with pytest.raises(SetupError, match=r"1\.0 kB are free"):
        train(tmp_path / "new", free=1000)
    assert not (tmp_path / "new").exists()


def test_a_diverged_run_keeps_its_last_checkpoint(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = Trainer.step

    def broken(self: Trainer) -> None:
        step(self)
        if self.done == 5:
            self.model.head.data.fill_(torch.nan)

    monkeypatch.setattr(Trainer, "step", broken)
    with pytest.raises(DivergedError, match="loss is nan at step 6"):
        train(tmp_path)
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    assert manifest.checkpoints[-1].step == 4
    assert not (tmp_path / "summary.json").exists()


def test_the_best_checkpoint_is_kept_wherever_it_was_evaluated(
    train: Train, tmp_path: Path
) -> None:
    summary, _ = train(tmp_path, keep_checkpoints=1, save_interval_steps=1000)
    assert summary["best"]["bpb"] == min(e["bpb"] for e in summary["evaluations"])
    assert (tmp_path / summary["best"]["name"]).exists()


def test_the_summary_accounts_for_the_run(small: Small, train: Train, tmp_path: Path) -> None:
    summary, shown = train(tmp_path)
    config = small(tmp_path).training
    assert (summary["steps"], summary["tokens"]) == (12, 12 * 4 * 64)
    assert summary["planned_flops"] == summary["train_flops"] > 0
    assert len(summary["evaluations"]) == 4
    assert summary["eval_flops"] == pytest.approx(4 * 64 * 64 * per_token(config).forward)
    assert summary["settings"]["n_embd"] == 16
    assert summary["sources"]["n_embd"] == "--set"
    assert summary["data"]["train_tokens"] > 0
    assert (
        set(summary["wall_seconds"])
        == set(summary["cpu_seconds"])
        == {
            "train",
            "evaluate",
            "save",
        }
    )
    assert math.isfinite(summary["health"]["train_loss_tail"])
    assert "Warning: 12 steps: below 20" in shown
    assert json.loads((tmp_path / "summary.json").read_text()) == summary


@pytest.mark.parametrize("model", ["synaptic", "gpt"])
def test_an_effective_batch_trains_alike_however_it_is_cut(
    train: Train, tmp_path: Path, model: str
) -> None:
    found = []
    for micro, accumulation in ((8, 1), (4, 2), (2, 4)):
        summary, _ = train(
            tmp_path / f"{micro}x{accumulation}",
            model=model,
            micro_batch_size=micro,
            gradient_accumulation_steps=accumulation,
        )
        found.append([e["bpb"] for e in summary["evaluations"]])
    assert found[1] == pytest.approx(found[0], rel=1e-5)
    assert found[2] == pytest.approx(found[0], rel=1e-5)


@pytest.mark.needs("tensorboard")
def test_tensorboard_shows_the_figures(train: Train, tmp_path: Path) -> None:
    train(tmp_path, tensorboard=True)
    from tensorboard.backend.event_processing import (
        event_accumulator,
    )

    events = event_accumulator.EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [e.step for e in events.Scalars("val_bpb")] == [3, 6, 9, 12]
    assert {"loss", "grad_norm", "tokens_per_second"} <= set(events.Tags()["scalars"])


def test_tensorboard_that_is_missing_is_named_with_the_command_that_mends_it(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(SetupError, match=r"pip install 'cmaes-orchestrator\[tensorboard\]'"):
        train(tmp_path / "new", tensorboard=True)
    assert not (tmp_path / "new").exists()
