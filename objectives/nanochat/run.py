"""A training by itself: the loop with checkpoints, resume, metrics and a summary in one directory.

`manifest.json` names every checkpoint before the file gets its name, and until after it is deleted:
only checkpoints that it names, and unfinished files of ours, are ever deleted or overwritten. What
is due at a step follows from the step, so a run resumed at any moment does the same.
"""

import fcntl
import json
import math
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import is_zipfile

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from objectives.api import DivergedError, SetupError
from objectives.files import replace
from objectives.nanochat import flops
from objectives.nanochat.config import NOT_TRAINED, NanochatConfig, RunConfig
from objectives.nanochat.data import load
from objectives.nanochat.train import Trainer, diagnose, torch_set

MANIFEST, METRICS, SUMMARY = "manifest.json", "metrics.jsonl", "summary.json"
UNFINISHED = re.compile(r"(manifest\.json|summary\.json|step-\d{8,}\.pt)\.\d+\.partial")
"""Files that `replace` has not finished."""
ELSEWHERE = "choose another directory with --set checkpoint_dir=DIR"


class StoppedError(Exception):
    """Training was told to stop, and has written a checkpoint."""


class Manifest(BaseModel):
    """Which run a directory holds, and its checkpoints."""

    model_config = ConfigDict(extra="forbid")

    run: dict[str, Any]  # settings, seed, device, hash of the text: another value, another run
    checkpoints: dict[int, float | None] = {}  # by step, in order; validation bits per byte or None

    @property
    def best(self) -> int | None:
        """The step of the checkpoint with the lowest bits per byte."""
        measured = [(bpb, step) for step, bpb in self.checkpoints.items() if bpb is not None]
        return min(measured)[1] if measured else None


def train(
    config: NanochatConfig,
    run: RunConfig,
    say: Callable[[str], None],
    check: Callable[[], None],
) -> dict[str, Any]:
    """Begin a run or resume it; return its summary, as written to `summary.json`.

    `check`, called before every step, raises StoppedError when it shall end. Raises ValueError and
    SetupError before anything is trained; later StoppedError, DivergedError, OutOfMemoryError and
    OSError, which leave the last checkpoint.
    """
    if run.device == "cuda" and not torch.cuda.is_available():
        raise SetupError(f"device cuda: torch {torch.__version__} sees no GPU: --set device=cpu")
    device = "cuda" if run.device != "cpu" and torch.cuda.is_available() else "cpu"
    corpus = load(config.data)
    steps = flops.plan(config, len(corpus.train)).steps
    if steps < 1:
        raise ValueError("the budget pays for no step: raise target_flops or num_batches")
    identity = {
        **config.model_dump(mode="json", exclude=NOT_TRAINED),
        "seed": run.seed,
        "device": device,
        "data_sha256": corpus.facts["data_sha256"],
    }
    with locked(run.checkpoint_dir), torch_set(run.threads, device):
        manifest = read_manifest(run.checkpoint_dir, identity)
        _require_disk(run, flops.checkpoint_bytes(config, steps), len(manifest.checkpoints))
        loop = Loop(run, manifest, Trainer(config, corpus, run.seed, device), say)
        loop.resume()
        loop.to_the_end(check)
        return loop.summarise()


def read_manifest(directory: Path, identity: dict[str, Any]) -> Manifest:
    """Return the manifest in `directory`, or a new one if the directory is empty.

    Raises ValueError when what is there is damaged, of another run or not ours.
    """
    path = directory / MANIFEST
    if not path.exists() and all(map(UNFINISHED.fullmatch, os.listdir(directory))):
        return Manifest(run=identity)
    try:
        found = Manifest.model_validate_json(path.read_bytes())
    except (OSError, ValidationError) as error:
        raise ValueError(f"{path} is damaged, or the files are not ours: {ELSEWHERE}") from error
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


def _require_disk(run: RunConfig, size: int, kept: int) -> None:
    """Raises SetupError when the checkpoints to come, of `size` bytes, do not fit."""
    free, needed = shutil.disk_usage(run.checkpoint_dir).free, size * (run.most_checkpoints - kept)
    if free < needed:
        raise SetupError(
            f"{run.checkpoint_dir} needs {needed / 1e6:,.1f} MB more for checkpoints of "
            f"{size / 1e6:,.1f} MB, and {free / 1e6:,.1f} MB are free: free some, "
            f"--set keep_checkpoints=1, or {ELSEWHERE}"
        )


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Make `directory` and let only this process train in it. Raises ValueError."""
    directory.mkdir(parents=True, exist_ok=True)
    handle = os.open(directory, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError as error:
        raise ValueError(f"another process trains in {directory}: {ELSEWHERE}") from error
    finally:
        os.close(handle)


@dataclass
class Loop:
    """One process's work on a run: every step that is left, with what is due at each."""

    run: RunConfig
    manifest: Manifest
    trainer: Trainer
    say: Callable[[str], None]
    # Of all the run's processes, and part of a checkpoint: bits per byte by step, and the time.
    evaluations: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    logged: tuple[int, float] = (0, 0.0)  # step and training seconds when losses were last read

    def resume(self) -> None:
        """Bring the trainer to the newest checkpoint, and cut the metrics there.

        Raises ValueError when it cannot be read.
        """
        trainer, written = self.trainer, 0
        for path in self.run.checkpoint_dir.iterdir():
            if UNFINISHED.fullmatch(path.name):  # of a process that was killed
                path.unlink()
        listed = self.manifest.checkpoints.items()
        self._list({step: bpb for step, bpb in listed if self._path(step).exists()})
        if self.manifest.checkpoints:
            path = self._path(max(self.manifest.checkpoints))
            try:  # on the CPU: the state of a random generator must stay there
                if not is_zipfile(path):
                    raise EOFError
                saved = torch.load(path, map_location="cpu", weights_only=True)
            except (RuntimeError, EOFError, LookupError) as error:
                raise ValueError(
                    f"{path} is damaged: delete it to resume from the checkpoint before"
                ) from error
            trainer.load_state_dict(saved["trainer"])
            self.evaluations, self.seconds = saved["evaluations"], saved["train_seconds"]
            written = saved["metrics_bytes"]
            self.say(f"Resuming from {path.name}, step {trainer.done} of {trainer.steps}.")
        self.logged = (trainer.done, self.seconds)
        with self._metrics.open("ab") as file:
            file.truncate(min(written, file.tell()))

    def to_the_end(self, check: Callable[[], None]) -> None:
        """Do every step that is left, and an evaluation and a checkpoint at the end.

        Raises StoppedError once a checkpoint is written, DivergedError without writing one, and
        OSError when one cannot be written.
        """
        trainer, run = self.trainer, self.run
        try:
            while trainer.done < trainer.steps:
                check()
                began = time.perf_counter()
                trainer.step()
                self.seconds += time.perf_counter() - began
                if self._is_due(run.log_interval_steps):
                    self._log_losses()
                if self._is_due(run.eval_interval_steps):
                    self._evaluate()
                if self._is_due(run.save_interval_steps) or trainer.done in self.evaluations:
                    self._save()
        except StoppedError:
            self._save()
            raise

    def _is_due(self, interval: int) -> bool:
        return self.trainer.done % interval == 0 or self.trainer.done == self.trainer.steps

    def _log_losses(self) -> None:
        """Read the losses since the last time, and log the last. Raises DivergedError."""
        trainer, done, (since, before) = self.trainer, self.trainer.done, self.logged
        trainer.require_finite(since)
        self.logged = (done, self.seconds)
        loss, norm = float(trainer.losses[done - 1]), float(trainer.grad_norms[done - 1])
        rate = (done - since) * trainer.config.tokens_per_step / (self.seconds - before)
        left = (trainer.steps - done) * trainer.config.tokens_per_step / rate
        self._log(loss=loss, grad_norm=norm, tokens_per_second=rate, train_seconds=self.seconds)
        self.say(
            f"step {done}/{trainer.steps}  loss {loss:.4f}  {rate:,.0f} tokens/s  {left:.0f} s left"
        )

    def _evaluate(self) -> None:
        """Raises DivergedError when there is no score."""
        done, bpb = self.trainer.done, self.trainer.evaluate_bpb()
        if not math.isfinite(bpb):
            raise DivergedError(f"the validation bits per byte are {bpb} at step {done}")
        self.evaluations[done] = bpb
        self._log(val_bpb=bpb)
        self.say(f"step {done}  validation {bpb:.5f} bits per byte")

    def _log(self, **values: float) -> None:
        with self._metrics.open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self.trainer.done, **values}) + "\n")

    def _save(self) -> None:
        """Write a checkpoint, and drop what is too old.

        Raises DivergedError, and OSError, which leaves the checkpoints before.
        """
        self.trainer.require_finite(self.logged[0])
        content, step = BytesIO(), self.trainer.done
        state = {
            "trainer": self.trainer.state_dict(),
            "evaluations": self.evaluations,
            "train_seconds": self.seconds,
            "metrics_bytes": self._metrics.stat().st_size,
        }
        torch.save(state, content)
        self._list(self.manifest.checkpoints | {step: self.evaluations.get(step)})
        replace(self._path(step), content.getvalue())
        listed = self.manifest.checkpoints
        stay = {*sorted(listed)[-self.run.keep_checkpoints :], self.manifest.best}
        for old in listed.keys() - stay:
            self._path(old).unlink(missing_ok=True)
        self._list({step: bpb for step, bpb in listed.items() if step in stay})

    def _path(self, step: int) -> Path:
        return self.run.checkpoint_dir / f"step-{step:08d}.pt"

    @property
    def _metrics(self) -> Path:
        return self.run.checkpoint_dir / METRICS

    def _list(self, checkpoints: dict[int, float | None]) -> None:
        self.manifest.checkpoints = checkpoints
        document = self.manifest.model_dump_json(indent=2) + "\n"
        replace(self.run.checkpoint_dir / MANIFEST, document.encode())

    def summarise(self) -> dict[str, Any]:
        """Write and return `summary.json`."""
        trainer, best = self.trainer, self.manifest.best
        document = {
            "bpb": self.evaluations.get(trainer.done),
            "best": best and {"step": best, "bpb": self.manifest.checkpoints[best]},
            "steps": trainer.plan.steps,
            "tokens": trainer.plan.tokens,
            "train_flops": trainer.plan.train,
            "train_seconds": self.seconds,
            "health": diagnose(trainer.losses, trainer.grad_norms),
            "run": self.manifest.run,
            "torch": torch.__version__,
        }
        content = json.dumps(document, indent=2) + "\n"
        replace(self.run.checkpoint_dir / SUMMARY, content.encode())
        return document
