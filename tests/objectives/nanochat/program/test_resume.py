"""A run that is interrupted, anywhere and anyhow, and taken up again."""

import errno
import io
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pytest
import torch
from rich.console import Console

from objectives.nanochat.program.session import Session
from objectives.nanochat.program.stop import Stop, StoppedError
from objectives.nanochat.program.store import Entry, Store, read_manifest

Train = Callable[..., tuple[dict[str, Any], str]]
NOT_TRAINED = ("wall_seconds", "cpu_seconds", "processes")  # of a tally


class PowerCut(BaseException):
    """Nobody handles it."""


@dataclass
class Moment(Stop):
    """Something happens at the n-th time the run asks whether to stop: before a step or between
    the parts of an evaluation."""

    left: int
    happen: Callable[["Moment"], None]
    signum: int | None = None

    def check(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.happen(self)
        super().check()


class Leaving(Console):
    """As Rich's own, but for pytest's stdout, which that would make unreadable."""

    def on_broken_pipe(self) -> None:
        raise SystemExit(1)


def power_cut(_: Stop) -> None:
    raise PowerCut


def asked_to_stop(stop: Stop) -> None:
    stop.receive(signal.SIGTERM)


def last(directory: Path) -> dict[str, Any]:
    """The newest checkpoint without what depends on the clock."""
    manifest = read_manifest(directory)
    assert manifest is not None
    path = directory / manifest.checkpoints[-1].name
    content: dict[str, Any] = torch.load(path, weights_only=True)
    for name in NOT_TRAINED:
        del content["tally"][name]
    return content


def same(one: Any, other: Any) -> bool:
    """Bit for bit, through all containers."""
    if isinstance(one, torch.Tensor):
        return one.dtype == other.dtype and torch.equal(one, other)
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


def metrics(directory: Path) -> list[tuple[int, float]]:
    """Every loss and every bits per byte on record, with its step."""
    lines = map(json.loads, (directory / "metrics.jsonl").read_text().splitlines())
    return [(line["step"], line.get("loss", line.get("val_bpb"))) for line in lines]


@pytest.fixture(scope="module")
def whole(train: Train, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """An uninterrupted run of either model."""
    directories = {}
    for model in ("synaptic", "gpt"):
        directories[model] = tmp_path_factory.mktemp(model)
        train(directories[model], model=model)
    return directories


# A run asks before each of 12 steps, and within each of 4 evaluations 8 times. So: before the first
# step, the second, in the first evaluation, right after two saves, in the second evaluation, later.
@pytest.mark.parametrize("model", ["synaptic", "gpt"])
@pytest.mark.parametrize("moment", [1, 2, 6, 12, 13, 16, 40])
def test_a_killed_run_taken_up_again_ends_bit_for_bit_as_an_uninterrupted_one(
    train: Train, whole: dict[str, Path], tmp_path: Path, model: str, moment: int
) -> None:
    with pytest.raises(PowerCut):
        train(tmp_path, Moment(moment, power_cut), model=model)
    train(tmp_path, model=model)
    assert same(last(tmp_path), last(whole[model]))
    assert metrics(tmp_path) == metrics(whole[model])


@pytest.mark.parametrize("moment", [2, 6, 14, 40])
def test_a_stopped_run_is_saved_where_it_stood_and_goes_on_from_there(
    train: Train, whole: dict[str, Path], tmp_path: Path, moment: int
) -> None:
    with pytest.raises(StoppedError) as stopped:
        train(tmp_path, Moment(moment, asked_to_stop))
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    saved = last(tmp_path)["trainer"]["done"]
    summary, shown = train(tmp_path)
    assert f"step {saved} of 12" in shown
    assert summary["processes"] == 2
    assert same(last(tmp_path), last(whole["synaptic"]))


class Reader(io.StringIO):
    """Of what a training prints; who may be gone."""

    is_gone = False

    def write(self, text: str) -> int:
        if self.is_gone:
            raise BrokenPipeError
        return super().write(text)


def test_a_run_that_is_stopped_after_its_reader_is_saved_all_the_same(
    train: Train, small: Callable[..., Any], tmp_path: Path
) -> None:
    heard, unheard, reader = tmp_path / "heard", tmp_path / "unheard", Reader()
    rarely = {f"{what}_interval_steps": 12 for what in ("log", "eval", "save")}

    def both_stop(stop: Stop) -> None:
        reader.is_gone = True
        stop.receive(signal.SIGINT)

    with pytest.raises(StoppedError):
        train(heard, Moment(7, asked_to_stop), **rarely)
    program = small(unheard, **rarely)
    session = Session(program, Leaving(file=reader), Moment(7, both_stop), lambda _: 2**40)
    with pytest.raises((StoppedError, SystemExit)):
        session.train()
    assert same(last(unheard)["trainer"], last(heard)["trainer"])


def test_a_run_stopped_before_its_first_step_leaves_no_checkpoint(
    train: Train, tmp_path: Path
) -> None:
    with pytest.raises(StoppedError):
        train(tmp_path, Moment(1, asked_to_stop))
    assert not list(tmp_path.glob("*.pt"))


def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCut):
        train(tmp_path, Moment(40, power_cut))
    manifest = read_manifest(tmp_path)
    assert manifest is not None
    damaged = tmp_path / manifest.checkpoints[-1].name
    damaged.write_bytes(damaged.read_bytes()[:-10])
    _, shown = train(tmp_path)
    assert f"{damaged.name} is damaged" in shown.replace("\n", "")
    assert f"Going on from {manifest.checkpoints[-2].name}" in shown
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_with_no_whole_checkpoint_left_the_run_begins_again(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCut):
        train(tmp_path, Moment(16, power_cut))
    for path in tmp_path.glob("*.pt"):
        path.unlink()
    assert "beginning again" in train(tmp_path)[1]
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_how_often_a_run_saves_and_looks_may_change(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCut):
        train(tmp_path, Moment(16, power_cut))
    train(tmp_path, save_interval_steps=1, eval_interval_steps=3, log_interval_steps=1)
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_disk_that_fills_up_is_named_and_the_last_checkpoint_left(
    train: Train, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PowerCut):
        train(tmp_path, Moment(16, power_cut))
    before = last(tmp_path)
    with monkeypatch.context() as full:
        full.setattr(Store, "add", _on_a_full_disk(Store.add))
        with pytest.raises(OSError, match=r"step 6 could not be written .*No space left"):
            train(tmp_path)
    assert same(last(tmp_path), before)
    train(tmp_path)
    assert same(last(tmp_path), last(whole["synaptic"]))


def _on_a_full_disk(add: Callable[..., Entry]) -> Callable[..., Entry]:
    """A checkpoint's file takes 1000 bytes and no more."""

    def limited(self: Store, step: int, bpb: float, write: Callable[[IO[bytes]], None]) -> Entry:
        def cut(file: IO[bytes]) -> None:
            write(cast("IO[bytes]", Full(file)))

        return add(self, step, bpb, cut)

    return limited


@dataclass
class Full:
    file: IO[bytes]
    left: int = 1000

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()
