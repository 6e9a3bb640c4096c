"""Trainings with checkpoints: resumed anywhere bit for bit, refused where another run lies."""

import json
import os
import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass
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
    """Nobody handles it."""


@dataclass
class At:
    """Raises an error, as often as it is asked, from the n-th time that the run asks on: before a
    step or between the parts of an evaluation."""

    left: int
    error: type[BaseException]

    def __call__(self) -> None:
        self.left -= 1
        if self.left <= 0:
            raise self.error


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


def last(directory: Path) -> Any:
    """The newest checkpoint without what depends on the clock."""
    path = directory / manifest(directory).checkpoints[-1].name
    content = torch.load(path, weights_only=True)
    return content["trainer"], content["progress"]["evaluations"]


def leaves(content: Any) -> Iterator[Any]:
    """Everything in containers of containers, with its place."""
    if isinstance(content, dict):
        for key in sorted(content, key=str):
            yield key
            yield from leaves(content[key])
    elif isinstance(content, list | tuple):
        yield len(content)
        for part in content:
            yield from leaves(part)
    else:
        yield content.numpy().tobytes() if isinstance(content, torch.Tensor) else content


def same(one: Any, other: Any) -> bool:
    """Bit for bit."""
    return list(leaves(one)) == list(leaves(other))


def metrics(directory: Path) -> list[tuple[int, float]]:
    """Every loss and every bits per byte on record, with its step."""
    lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line.get("loss", line.get("val_bpb"))) for line in lines]


# A run asks before each of 12 steps, and within each of 4 evaluations 8 times. So: before the first
# step, the second, in the first evaluation, right after two saves, in the second evaluation, later.
@pytest.mark.parametrize(
    ("model", "moment"),
    [("gpt", 6), ("gpt", 13), *(("synaptic", m) for m in (1, 2, 6, 12, 16, 40))],
)
def test_a_killed_run_resumes_bit_for_bit(
    train: Train, whole: dict[str, Path], tmp_path: Path, model: str, moment: int
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, At(moment, PowerCutError), model=model)
    train(tmp_path, model=model)
    assert same(last(tmp_path), last(whole[model]))
    assert metrics(tmp_path) == metrics(whole[model])


@pytest.mark.parametrize("moment", [2, 40])
def test_a_stopped_run_is_saved_where_it_stood(
    train: Train, whole: dict[str, Path], tmp_path: Path, moment: int
) -> None:
    with pytest.raises(StoppedError):
        train(tmp_path, At(moment, StoppedError))
    saved = last(tmp_path)[0]["done"]
    _, said = train(tmp_path, save_interval_steps=1)  # how often it saves may change
    assert f"step {saved} of 12" in said
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_damaged_checkpoint_is_named_and_without_it_the_one_before_is_resumed(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, At(40, PowerCutError))
    path = tmp_path / manifest(tmp_path).checkpoints[-1].name
    path.write_bytes(path.read_bytes()[:-10])
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
        train(tmp_path, At(16, PowerCutError))
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
    assert [one.step for one in listed][-2:] == [11, 12]
    assert summary["best"]["bpb"] == min(summary["evaluations"].values())
    assert {path.name for path in tmp_path.glob("*.pt")} == {one.name for one in listed}
    size = (tmp_path / listed[-1].name).stat().st_size
    assert flops.checkpoint_bytes(NanochatConfig(**SMALL), 12) == pytest.approx(size, rel=0.15)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"seed": 7}, "holds another run: seed was 42, is 7"),
        ({"matrix_lr": 0.03}, "holds another run: matrix_lr was 0.02, is 0.03"),
        ({"num_batches": None, "target_flops": 1.0}, "pays for no step"),
    ],
)
def test_another_run_is_refused(
    train: Train, whole: dict[str, Path], settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        train(whole["synaptic"], **settings)


def test_a_directory_that_is_not_ours_or_not_free_is_refused(
    train: Train, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match="is not ours"):
        train(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged or not ours"):
        train(tmp_path)
    with locked(tmp_path / "free"), pytest.raises(ValueError, match="another process trains"):
        train(tmp_path / "free")
    usage = shutil.disk_usage(tmp_path)._replace(free=1000)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage)
    with pytest.raises(SetupError, match="MB are free"):
        train(tmp_path / "small")
