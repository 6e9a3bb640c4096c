"""Training runs with checkpoints: resumed anywhere bit for bit, refused where another run lies."""

import errno
import json
import signal
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

import pytest
import torch

from objectives.api import SetupError
from objectives.nanochat import flops
from objectives.nanochat.__main__ import main, plan_document, resolve
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.run import Manifest, Stop, StoppedError, TrainingRun, locked
from objectives.nanochat.train import Trainer

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
Train = Callable[..., tuple[dict[str, Any], str]]
Words = Callable[..., list[str]]


class PowerCutError(BaseException):
    """Nobody handles it."""


@dataclass
class Moment(Stop):
    """`happen` at the n-th time the run asks whether to stop: before a step or between the parts
    of an evaluation."""

    left: int
    happen: Callable[["Moment"], None]
    signum: int | None = None

    def check(self) -> None:
        self.left -= 1
        if self.left == 0:
            self.happen(self)
        super().check()


def power_cut(_: Stop) -> None:
    raise PowerCutError


def sigterm(stop: Stop) -> None:
    stop.receive(signal.SIGTERM)


@pytest.fixture(scope="session")
def words(text: str) -> Words:
    """`--set` for a small run in `directory`."""

    def build(directory: Path, **settings: Any) -> list[str]:
        chosen = SMALL | {"data": text, "checkpoint_dir": str(directory)} | settings
        return [f"{name}={json.dumps(value)}" for name, value in chosen.items()]

    return build


@pytest.fixture(scope="session")
def train(words: Words) -> Train:
    """Trains in this process; returns the summary and what was printed."""

    def run(
        directory: Path, stop: Stop | None = None, free: int = 2**40, **settings: Any
    ) -> tuple[dict[str, Any], str]:
        shown: list[str] = []
        config, how = resolve(None, None, None, words(directory, **settings))
        run = TrainingRun(config, how, shown.append, stop or Stop(), lambda _: free)
        return run.train(), "\n".join(shown)

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
    found = Manifest.read(directory)
    assert found is not None
    return found


def last(directory: Path) -> Any:
    """The newest checkpoint without what depends on the clock."""
    path = directory / manifest(directory).checkpoints[-1].name
    content = torch.load(path, weights_only=True)
    return content["trainer"], content["progress"]["evaluations"]


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
        train(tmp_path, Moment(moment, power_cut), model=model)
    train(tmp_path, model=model)
    assert same(last(tmp_path), last(whole[model]))
    assert metrics(tmp_path) == metrics(whole[model])


@pytest.mark.parametrize("moment", [2, 6, 40])
def test_a_stopped_run_is_saved_where_it_stood(
    train: Train, whole: dict[str, Path], tmp_path: Path, moment: int
) -> None:
    with pytest.raises(StoppedError) as stopped:
        train(tmp_path, Moment(moment, sigterm))
    assert stopped.value.exit_code == 128 + signal.SIGTERM
    saved = last(tmp_path)[0]["done"]
    summary, shown = train(tmp_path)
    assert f"step {saved} of 12" in shown
    assert summary["processes"] == 2
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_stop_before_the_first_step_leaves_no_checkpoint(train: Train, tmp_path: Path) -> None:
    with pytest.raises(StoppedError):
        train(tmp_path, Moment(1, sigterm))
    assert not list(tmp_path.glob("*.pt"))


@pytest.mark.parametrize("damaged", [1, 99], ids=["the newest", "all"])
def test_a_damaged_checkpoint_costs_the_steps_since_the_one_before(
    train: Train, whole: dict[str, Path], tmp_path: Path, damaged: int
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, Moment(40, power_cut))
    for one in manifest(tmp_path).checkpoints[-damaged:]:
        path = tmp_path / one.name
        path.write_bytes(path.read_bytes()[:-10])
    kept = {path.name for path in tmp_path.glob("*.pt")}
    _, shown = train(tmp_path)
    assert "is damaged" in shown
    assert ("Resuming" in shown) == (damaged == 1)
    assert same(last(tmp_path), last(whole["synaptic"]))
    assert damaged == 1 or kept <= {path.name for path in tmp_path.glob("*.pt")}


def test_how_often_a_run_saves_and_logs_may_change(
    train: Train, whole: dict[str, Path], tmp_path: Path
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, Moment(16, power_cut))
    train(tmp_path, save_interval_steps=1, log_interval_steps=1)
    assert same(last(tmp_path), last(whole["synaptic"]))


def test_a_full_disk_leaves_the_checkpoint_before(
    train: Train, whole: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(PowerCutError):
        train(tmp_path, Moment(16, power_cut))
    before, save = last(tmp_path), torch.save
    with monkeypatch.context() as full:
        full.setattr(torch, "save", lambda content, file: save(content, cast("Any", Full(file))))
        with pytest.raises(OSError, match=r"step 6 could not be written .*No space left"):
            train(tmp_path)
    assert same(last(tmp_path), before)
    train(tmp_path)
    assert same(last(tmp_path), last(whole["synaptic"]))


@dataclass
class Full:
    """A file that takes 1000 bytes and no more."""

    file: IO[bytes]
    left: int = 1000

    def write(self, data: bytes) -> int:
        self.left -= len(data)
        if self.left < 0:
            raise OSError(errno.ENOSPC, "No space left on device")
        return self.file.write(data)

    def flush(self) -> None:
        self.file.flush()


def test_the_last_and_the_best_checkpoints_are_kept_and_nothing_else_is_touched(
    train: Train, tmp_path: Path
) -> None:
    (tmp_path / "step-00000004.pt").write_text("somebody's")
    summary, _ = train(tmp_path, save_interval_steps=1, keep_checkpoints=2)
    listed = manifest(tmp_path).checkpoints
    best = min(summary["evaluations"].values())
    assert [one.step for one in listed][-2:] == [11, 12]
    assert summary["best"]["bpb"] == best
    assert {path.name for path in tmp_path.glob("*.pt")} == {
        "step-00000004.pt",
        *(one.name for one in listed),
    }
    assert (tmp_path / "step-00000004.pt").read_text() == "somebody's"
    estimate = flops.checkpoint_bytes(
        NanochatConfig(
            **{name: value for name, value in SMALL.items() if name in NanochatConfig.model_fields}
        ),
        12,
    )
    assert estimate == pytest.approx(listed[-1].bytes, rel=0.15)


def test_a_finished_run_is_not_trained_again(train: Train, whole: dict[str, Path]) -> None:
    files = {path: path.read_bytes() for path in whole["gpt"].iterdir()}
    summary, shown = train(whole["gpt"], model="gpt")
    assert "finished" in shown
    assert summary["steps"] == 12
    assert {path: path.read_bytes() for path in whole["gpt"].iterdir()} == files


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"seed": 7}, "holds another run: seed was 42, is 7"),
        ({"matrix_lr": 0.03}, "holds another run: matrix_lr was 0.02, is 0.03"),
        ({"num_batches": None, "target_flops": 1.0}, "pays for no step"),
        ({"checkpoint_dir": "/dev/null/x"}, "checkpoint_dir /dev/null/x"),
    ],
)
def test_another_run_is_refused(
    train: Train, whole: dict[str, Path], settings: dict[str, Any], expected: str
) -> None:
    with pytest.raises(ValueError, match=expected):
        train(whole["synaptic"], **settings)


def test_a_directory_with_somebodys_files_is_refused(train: Train, tmp_path: Path) -> None:
    (tmp_path / "summary.json").write_text("{}")
    with pytest.raises(ValueError, match="may be somebody's"):
        train(tmp_path)
    (tmp_path / "manifest.json").write_text("{}")
    with pytest.raises(ValueError, match="damaged or not ours"):
        train(tmp_path)


def test_two_processes_do_not_train_in_one_directory(train: Train, tmp_path: Path) -> None:
    with locked(tmp_path), pytest.raises(ValueError, match="another process trains"):
        train(tmp_path)


def test_too_little_disk_is_refused_before_training(train: Train, tmp_path: Path) -> None:
    with pytest.raises(SetupError, match="MB are free"):
        train(tmp_path, free=1000)
    assert list(tmp_path.iterdir()) == []


def test_the_command_resolves_in_order_and_trains_what_an_evaluation_scores(
    words: Words, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "run.toml"
    file.write_text('preset = "quick"\n[training]\nmicro_batch_size = 4\nnum_batches = 3\n')
    config, run = resolve(file, None, "fast", ["training.num_batches=5", "model=gpt"])
    assert (config.micro_batch_size, config.gradient_accumulation_steps) == (4, 4)
    assert (config.num_batches, config.model, run.log_interval_steps) == (5, "gpt", 1)
    sets = [part for word in words(tmp_path / "out") for part in ("--set", word)]
    assert main(["train", *sets, "--dry-run"]) == 0
    planned = json.loads(capsys.readouterr().out)
    assert not (tmp_path / "out").exists()
    assert main(["train", *sets]) == 0
    summary = json.loads((tmp_path / "out/summary.json").read_text())
    assert summary["train_flops"] == planned["train_flops"]
    assert f"{summary['bpb']:.5f} bits per byte after 12 steps" in capsys.readouterr().out


def test_the_dry_run_counts_every_parameter(trainer: Callable[..., Trainer], words: Words) -> None:
    subject = trainer(5, n_layer=2, n_head=4, n_kv_head=2, n_embd=32)
    _, run = resolve(None, None, None, words(Path("x")))
    planned = plan_document(subject.config, run)
    assert planned["parameters"] == sum(weight.numel() for weight in subject.parameters)


@pytest.mark.parametrize(
    "options",
    [
        ["--set", "num_batch=1"],
        ["--set", "num_batches"],
        ["--preset", "fast"],
        ["--profile", "quick"],
        ["--config", "missing.toml"],
        ["--set", "seed=true"],
    ],
)
def test_bad_input_is_refused_in_one_line(
    options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["train", *options]) == 2
    assert len(capsys.readouterr().err.splitlines()) == 1


def test_memory_does_not_grow_with_the_steps(trainer: Callable[..., Trainer]) -> None:
    subject = trainer(10**9)
    subject.step()
    assert len(subject.losses) < 10**4
