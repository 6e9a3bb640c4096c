"""A training by itself: the loop with checkpoints, resume, metrics and a summary in one directory.

`manifest.json` names every checkpoint before the file gets its name, and until after it is deleted:
only files that it names are ever deleted or overwritten. What is due at a step follows from what
was done at it, so a run resumed at any moment does the same.
"""

import fcntl
import json
import math
import os
import platform
import shutil
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.metadata import version
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from objectives.api import DivergedError, SetupError
from objectives.files import PARTIAL, replace
from objectives.nanochat import flops
from objectives.nanochat.config import NOT_TRAINED, NanochatConfig, RunConfig
from objectives.nanochat.data import Corpus, load, require_length
from objectives.nanochat.optim import get_lr_multiplier
from objectives.nanochat.train import Trainer, diagnose, torch_set

MANIFEST, METRICS, SUMMARY = "manifest.json", "metrics.jsonl", "summary.json"
ELSEWHERE = "choose another directory with --set checkpoint_dir=DIR"


class StoppedError(Exception):
    """Training was told to stop, and has written a checkpoint."""


class Checkpoint(BaseModel):
    """One file of a run's state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    step: int  # optimiser steps done
    bpb: float | None = None  # validation bits per byte, where it was measured

    @property
    def name(self) -> str:
        return f"step-{self.step:08d}.pt"


class Manifest(BaseModel):
    """Which run a directory holds, and its checkpoints by step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    run: dict[str, Any]  # settings, seed, device, hashes of the text: another value, another run
    checkpoints: tuple[Checkpoint, ...] = ()

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint with the lowest bits per byte, the earliest of equals."""
        measured = [one for one in self.checkpoints if one.bpb is not None]
        return min(measured, key=lambda one: (one.bpb, one.step), default=None)


@dataclass
class Progress:
    """What a run has found and spent over all its processes; part of a checkpoint."""

    evaluations: dict[int, float] = field(default_factory=dict)  # bits per byte by step
    train_seconds: float = 0.0


def train(
    config: NanochatConfig,
    run: RunConfig,
    say: Callable[[str], None],
    check: Callable[[], None],
) -> dict[str, Any]:
    """Begin a run or resume it; return its summary, as written to `summary.json`.

    `check` raises StoppedError when it shall end. Raises ValueError and SetupError before anything
    is trained; later StoppedError, DivergedError, OutOfMemoryError and OSError, which leave the
    last checkpoint.
    """
    directory, device = run.checkpoint_dir, _device(run.device)
    corpus = load(config.data, config.tokenizer)
    require_length(corpus, config.sequence_len)
    steps = flops.plan(config, len(corpus.train)).steps
    if steps < 1:
        raise ValueError("the budget pays for no step: raise target_flops or num_batches")
    with locked(directory), torch_set(run.threads, device):
        manifest = read_manifest(directory, _identity(config, run, corpus, device))
        _require_disk(config, run, steps, manifest)
        loop = Loop(run, manifest, Trainer(config, corpus, run.seed, device), say, check)
        loop.resume()
        loop.to_the_end()
        return loop.summarise()


def _device(wanted: str) -> str:
    """Return "cpu" or "cuda". Raises SetupError when torch does not see the GPU that is wanted."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SetupError(
            f"device cuda: torch {torch.__version__} sees no GPU here: --set device=cpu, or "
            "install a torch built for CUDA"
        )
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


def _identity(
    config: NanochatConfig, run: RunConfig, corpus: Corpus, device: str
) -> dict[str, Any]:
    """Return what makes a training this one: settings, seed, device and text."""
    settings = config.model_dump(mode="json", exclude=NOT_TRAINED)
    text = {"data_sha256": corpus.sha256, "tokenizer_sha256": corpus.tokenizer_sha256}
    return {**settings, "seed": run.seed, "device": device, **text}


def read_manifest(directory: Path, identity: dict[str, Any]) -> Manifest:
    """Return the manifest in `directory`, or a new one if the directory is empty.

    Raises ValueError when what is there is damaged, of another run or not ours.
    """
    path = directory / MANIFEST
    if not path.exists() and any(one.suffix != PARTIAL for one in directory.iterdir()):
        raise ValueError(f"{directory} has files but no {MANIFEST}, so it is not ours: {ELSEWHERE}")
    if not path.exists():
        return Manifest(run=identity)
    try:
        found = Manifest.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise ValueError(f"{path} is damaged or not ours: {ELSEWHERE}") from error
    changed = [
        f"{name} was {found.run.get(name)!r}, is {identity.get(name)!r}"
        for name in sorted({*found.run, *identity})
        if found.run.get(name) != identity.get(name)
    ]
    if changed:
        raise ValueError(
            f"{directory} holds another run: {'; '.join(changed)}. Go back to those settings, "
            f"or {ELSEWHERE}"
        )
    return found


def _require_disk(config: NanochatConfig, run: RunConfig, steps: int, manifest: Manifest) -> None:
    """Raises SetupError when the checkpoints to come do not fit."""
    free = shutil.disk_usage(run.checkpoint_dir).free
    size = flops.checkpoint_bytes(config, steps)
    needed = size * (run.most_kept + 1 - len(manifest.checkpoints))
    if free < needed:
        raise SetupError(
            f"{run.checkpoint_dir} needs {needed / 1e6:,.1f} MB more for checkpoints of "
            f"{size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free: free some, "
            f"--set keep_checkpoints=1, or {ELSEWHERE}"
        )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make `directory` and let only this process train in it. Raises ValueError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ValueError(f"checkpoint_dir {directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(f"another process trains in {directory}: {ELSEWHERE}") from error
        yield
    finally:
        os.close(handle)


@dataclass
class Loop:
    """One process's work on a run: every step that is left, with what is due at each."""

    run: RunConfig
    manifest: Manifest
    trainer: Trainer
    say: Callable[[str], None]
    check: Callable[[], None]
    progress: Progress = field(default_factory=Progress)
    _logged: tuple[int, float] = (0, 0.0)  # step and training seconds when losses were last read

    def resume(self) -> None:
        """Bring the trainer to the newest checkpoint, and cut the metrics there.

        Raises ValueError when it cannot be read.
        """
        trainer, directory = self.trainer, self.run.checkpoint_dir
        for path in directory.glob(f"*{PARTIAL}"):  # of a process that was killed
            path.unlink()
        self._list(one for one in self.manifest.checkpoints if (directory / one.name).exists())
        if self.manifest.checkpoints:
            path = directory / self.manifest.checkpoints[-1].name
            try:  # on the CPU: the state of a random generator must stay there
                if not is_zipfile(path):
                    raise EOFError
                saved = torch.load(path, map_location="cpu", weights_only=True)
            except (RuntimeError, EOFError, LookupError) as error:
                raise ValueError(
                    f"{path} is damaged: delete it to resume from the checkpoint before"
                ) from error
            trainer.load_state_dict(saved["trainer"])
            self.progress = Progress(**saved["progress"])
            self.say(f"Resuming from {path.name}, step {trainer.done} of {trainer.steps}.")
        self._logged = (trainer.done, self.progress.train_seconds)
        self._metrics = directory / METRICS
        lines = self._metrics.read_bytes().splitlines(True) if self._metrics.exists() else []
        replace(self._metrics, b"".join(line for line in lines if _is_until(line, trainer.done)))

    def to_the_end(self) -> None:
        """Do every step that is left, and an evaluation and a checkpoint at the end.

        Raises StoppedError once a checkpoint is written, DivergedError without writing one, and
        OSError when one cannot be written.
        """
        trainer = self.trainer
        try:
            self._do_what_is_due()
            while trainer.done < trainer.steps:
                self.check()
                began = time.perf_counter()
                trainer.step()
                self.progress.train_seconds += time.perf_counter() - began
                self._do_what_is_due()
        except StoppedError:
            trainer.require_finite(self._logged[0])
            self._save()  # before anything is printed: the reader may be gone
            self._log_step()
            raise

    def _do_what_is_due(self) -> None:
        done, run = self.trainer.done, self.run
        if done == 0:
            return
        if self._is_due(run.log_interval_steps):
            self._log_step()
        if self._is_due(run.eval_interval_steps) and done not in self.progress.evaluations:
            self._evaluate()
        bpb, best = self.progress.evaluations.get(done), self.manifest.best
        is_best = bpb is not None and (best is None or best.bpb is None or bpb < best.bpb)
        if self._is_due(run.save_interval_steps) or is_best:
            self._log_step()
            self._save()

    def _is_due(self, interval: int) -> bool:
        return self.trainer.done % interval == 0 or self.trainer.done == self.trainer.steps

    def _log_step(self) -> None:
        """Read the losses since the last time, and log them. Raises DivergedError."""
        trainer, done, seconds = self.trainer, self.trainer.done, self.progress.train_seconds
        since, before = self._logged
        if done == since:
            return
        trainer.require_finite(since)
        self._logged = (done, seconds)
        tokens = trainer.config.tokens_per_step
        rate, loss = (done - since) * tokens / (seconds - before), float(trainer.losses[done - 1])
        self._log(
            loss=loss,
            grad_norm=float(trainer.grad_norms[done - 1]),
            lr_factor=get_lr_multiplier(done - 1, trainer.steps, trainer.config),
            tokens=done * tokens,
            train_flops=done * trainer.plan.flops_per_step,
            tokens_per_second=rate,
            train_seconds=seconds,
        )
        left = (trainer.steps - done) * tokens / rate
        self.say(
            f"step {done}/{trainer.steps}  loss {loss:.4f}  {rate:,.0f} tokens/s  {left:.0f} s left"
        )

    def _evaluate(self) -> None:
        """Raises StoppedError in the middle of it, and DivergedError when there is no score."""
        self._log_step()
        trainer = self.trainer
        bpb = trainer.evaluate_bpb(trainer.val, self.check)
        if not math.isfinite(bpb):
            raise DivergedError(f"the validation bits per byte are {bpb} at step {trainer.done}")
        self.progress.evaluations[trainer.done] = bpb
        self._log(val_bpb=bpb)
        self.say(f"step {trainer.done}  validation {bpb:.5f} bits per byte")

    def _log(self, **values: float) -> None:
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self.trainer.done, **values}) + "\n")

    def _save(self) -> None:
        """Write a checkpoint, unless the run is saved as it stands, and drop what is too old.

        Raises OSError, which leaves the checkpoints before.
        """
        done, directory = self.trainer.done, self.run.checkpoint_dir
        new = Checkpoint(step=done, bpb=self.progress.evaluations.get(done))
        if done == 0 or new in self.manifest.checkpoints:
            return
        buffer = BytesIO()
        state = {"trainer": self.trainer.state_dict(), "progress": asdict(self.progress)}
        torch.save(state, buffer)
        before = [one for one in self.manifest.checkpoints if one.step != done]
        self._list([*before, Checkpoint(step=done)])
        replace(directory / new.name, buffer.getvalue())
        self._list([*before, new])
        kept = (*self.manifest.checkpoints[-self.run.keep_checkpoints :], self.manifest.best)
        for one in self.manifest.checkpoints:
            if one not in kept:
                (directory / one.name).unlink(missing_ok=True)
        self._list(one for one in self.manifest.checkpoints if one in kept)

    def _list(self, checkpoints: Iterable[Checkpoint]) -> None:
        self.manifest = self.manifest.model_copy(update={"checkpoints": tuple(checkpoints)})
        document = self.manifest.model_dump_json(indent=2) + "\n"
        replace(self.run.checkpoint_dir / MANIFEST, document.encode())

    def summarise(self) -> dict[str, Any]:
        """Write and return `summary.json`."""
        trainer, progress, best = self.trainer, self.progress, self.manifest.best
        tokens = trainer.done * trainer.config.tokens_per_step
        document = {
            "bpb": progress.evaluations.get(trainer.done),
            "best": best and {"name": best.name, **best.model_dump()},
            "steps": trainer.done,
            "tokens": tokens,
            "train_flops": trainer.done * trainer.plan.flops_per_step,
            "tokens_per_second": tokens / progress.train_seconds,
            **asdict(progress),
            "health": diagnose(trainer.losses, trainer.grad_norms),
            "run": self.manifest.run,
            "threads": self.run.threads,
            "versions": {"python": platform.python_version(), "torch": version("torch")},
        }
        replace(self.run.checkpoint_dir / SUMMARY, (json.dumps(document, indent=2) + "\n").encode())
        return document


def _is_until(line: bytes, step: int) -> bool:
    """Return whether a line of metrics is whole and of no later step."""
    with suppress(ValueError, LookupError, TypeError):
        return line.endswith(b"\n") and bool(json.loads(line)["step"] <= step)
    return False
