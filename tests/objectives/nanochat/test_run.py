"""Trainings with checkpoints: resumed anywhere bit for bit, refused where another run lies."""

import itertools
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from objectives.api import SetupError
from objectives.nanochat import flops
from objectives.nanochat import run as running
from objectives.nanochat.config import NanochatConfig, RunConfig
from objectives.nanochat.run import Manifest, StoppedError, locked

SMALL: dict[str, Any] = {
    "n_layer": 2,
    "n_embd": 16,
    "sequence_len": 64,
    "micro_batch_size": 2,
    "gradient_accumulation_steps": 2,
    "stochastic_train_frac": 0.3,
    "val_windows": 64,
    "num_batches": 12,
}
OFTEN: dict[str, Any] = {
    "save_interval_steps": 4,
    "eval_interval_steps": 3,
    "log_interval_steps": 2,
    "device": "cpu",
}
Train = Callable[..., tuple[dict[str, Any], str]]


class PowerCutError(BaseException):
    """Not handled by any code."""


def at(moment: int, error: type[BaseException]) -> Callable[[], None]:
    """Raises the error from that step on."""
    asked = itertools.count(1)

    def check() -> None:
        if next(asked) >= moment:
            raise error

    return check


@pytest.fixture(scope="session")
def train(text: str) -> Train:
    """Trains in this process; returns the summary and what was said."""

    def run(
        directory: Path, check: Callable[[], None] = lambda: None, **settings: Any
    ) -> tuple[dict[str, Any], str]:
        how = {n: settings.pop(n) for n in list(settings) if n in RunConfig.model_fields}
        config = NanochatConfig(**{**SMALL, "data": text, **settings})
        said: list[str] = []
        run = RunConfig(**{**OFTEN, "checkpoint_dir": directory, **how})
        return running.train(config, run, said.append, check), "\n".join(said)

    return run


@pytest.fixture(scope="module")
def whole(train: Train, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An uninterrupted run of either model."""
    directories = {}
    for model in ("synaptic", "gpt"):
        directories[model] = tmp_path_factory.mktemp(model)
        train(directories[model], model=model)
    return directories


def manifest(directory: Path) -> Manifest:
    return Manifest.model_validate_json((directory / "manifest.json").read_bytes())


def newest(directory: Path) -> Path:
    return directory / f"step-{max(manifest(directory).checkpoints):08d}.pt"


def last(directory: Path) -> Any:
    """The newest checkpoint without what depends on the clock."""
    content = torch.load(newest(directory), weights_only=True)
    return content["trainer"], content["evaluations"]


def same(one: Any, other: Any) -> bool:
    """Bit for bit."""
    torch.testing.assert_close(one, other, rtol=0, atol=0, equal_nan=True)
    return True


def metrics(directory: Path) -> list[tuple[int, float]]:
    """Every loss and every bits per byte on record, with its step."""
    lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line.get("loss", line.get("val_bpb"))) for line in lines]


# Before the first step, right after a save with and without an evaluation, later.
@pytest.mark.parametrize(
    ("model", "moment"),
    [("gpt", 6), *(("synaptic", m) for m in (1, 4, 5, 12))],
)
def test_a_killed_run_resumes_bit_for_bit(
    train: Train, whole: dict[str, Path], tmp_path: Path, model: str, moment: int
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, at(moment, PowerCutError), model=model)
    train(tmp_path, model=model)
    assert same(last(tmp_path), last(whole[model]))
    assert metrics(tmp_path) == metrics(whole[model])


@pytest.mark.parametrize("moment", [2, 8])
def test_a_stopped_run_is_saved_where_it_stood(
    train: Train, whole: dict[str, Path], tmp_path: Path, moment: int
) -> None:
    with pytest.raises(StoppedError):
        train(tmp_path, at(moment, StoppedError))
    saved = last(tmp_path)[0]["done"]
    _, said = train(tmp_path, save_interval_steps=1)  # how often it saves may change
    assert f"step {saved} of 12" in said
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_damaged_checkpoint_is_named_and_without_it_the_one_before_is_resumed(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, at(8, PowerCutError))
    path = newest(tmp_path)
    path.write_bytes(path.read_bytes()[:-10])
    with pytest.raises(ValueError, match="holds another run: seed was 42, is 7"):
        train(tmp_path, seed=7)
    with pytest.raises(ValueError, match=f"{path.name} is damaged: delete it"):
        train(tmp_path)
    path.unlink()
    _, said = train(tmp_path)
    assert "Resuming" in said
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_full_disk_leaves_the_checkpoint_before(
    train: Train, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, at(6, PowerCutError))
    before = last(tmp_path)

    def full(descriptor: int) -> None:
        if os.fstat(descriptor).st_size > 20_000:
            raise OSError(28, "No space left on device")

    with monkeypatch.context() as disk:
        disk.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space left"):
            train(tmp_path)
    assert not list(tmp_path.glob("*.partial"))
    _, said = train(tmp_path)
    assert f"Resuming from step-{before[0]['done']:08d}" in said
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_the_last_and_the_best_checkpoints_are_kept(train: Train, tmp_path: Path) -> None:
    summary, _ = train(tmp_path, save_interval_steps=1, keep_checkpoints=2)
    listed = manifest(tmp_path).checkpoints
    assert list(listed)[-2:] == [11, 12]
    assert summary["best"]["bpb"] == min(last(tmp_path)[1].values())
    assert {path.name for path in tmp_path.glob("*.pt")} == {f"step-{s:08d}.pt" for s in listed}
    size = newest(tmp_path).stat().st_size
    assert size < flops.checkpoint_bytes(NanochatConfig(**SMALL), 12) < 2 * size


def test_a_directory_that_is_not_ours_or_not_free_is_refused(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match="are not ours"):
        train(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="is damaged, or the files are not ours"):
        train(tmp_path)
    with locked(tmp_path / "free"), pytest.raises(ValueError, match="another process trains"):
        train(tmp_path / "free")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SetupError, match="MB are free"):
        train(tmp_path / "small")
