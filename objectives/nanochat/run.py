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
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from pathlib import Path
from typing import Annotated, Any
from zipfile import is_zipfile

import torch
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from objectives.api import DivergedError, SetupError
from objectives.files import PARTIAL, replace
from objectives.nanochat import flops
from objectives.nanochat.config import NOT_TRAINED, NanochatConfig, RunConfig
from objectives.nanochat.data import load, require_length
from objectives.nanochat.train import Trainer, diagnose, torch_set

MANIFEST, METRICS, SUMMARY = "manifest.json", "metrics.jsonl", "summary.json"
ELSEWHERE = "choose another directory with --set checkpoint_dir=DIR"


class StoppedError(Exception):
    """Training was told to stop, and has written a checkpoint."""


CheckpointName = Annotated[str, Field(pattern=r"\Astep-[0-9]{8,}\.pt\z")]


class Manifest(BaseModel):
    """Which run a directory holds, and its checkpoints."""

    model_config = ConfigDict(extra="forbid")

    run: dict[str, Any]  # settings, seed, device, hashes of the text: another value, another run
    checkpoints: dict[
        CheckpointName, float | None
    ] = {}  # by name, in order; validation bits per byte or None

    @property
    def best(self) -> str | None:
        """The checkpoint with the lowest bits per byte, the earliest of equals."""
        measured = {name: bpb for name, bpb in self.checkpoints.items() if bpb is not None}
        return min(measured, key=lambda name: measured[name], default=None)


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
    if run.device == "cuda" and not torch.cuda.is_available():
        raise SetupError(f"device cuda: torch {torch.__version__} sees no GPU: --set device=cpu")
    device = "cuda" if run.device != "cpu" and torch.cuda.is_available() else "cpu"
    corpus = load(config.data)
    require_length(corpus, config.sequence_len)
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
        loop = Loop(run, manifest, Trainer(config, corpus, run.seed, device), say, check)
        loop.resume()
        loop.to_the_end()
        return loop.summarise()


def read_manifest(directory: Path, identity: dict[str, Any]) -> Manifest:
    """Return the manifest in `directory`, or a new one if the directory is empty.

    Raises ValueError when what is there is damaged, of another run or not ours.
    """
    path = directory / MANIFEST
    if not path.exists() and all(one.suffix == PARTIAL for one in directory.iterdir()):
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
    free = shutil.disk_usage(run.checkpoint_dir).free
    needed = size * (run.most_kept + 1 - kept)
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
    check: Callable[[], None]
    # Of all the run's processes, and part of a checkpoint: bits per byte by step, and the time.
    evaluations: dict[int, float] = field(default_factory=dict)
    seconds: float = 0.0
    logged: tuple[int, float] = (0, 0.0)  # step and training seconds when losses were last read

    @property
    def directory(self) -> Path:
        return self.run.checkpoint_dir

    def resume(self) -> None:
        """Bring the trainer to the newest checkpoint, and cut the metrics there.

        Raises ValueError when it cannot be read.
        """
        trainer = self.trainer
        for path in self.directory.glob(f"*{PARTIAL}"):  # of a process that was killed
            path.unlink()
        listed = self.manifest.checkpoints.items()
        self._list({name: bpb for name, bpb in listed if (self.directory / name).exists()})
        if self.manifest.checkpoints:
            path = self.directory / list(self.manifest.checkpoints)[-1]
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
            self.say(f"Resuming from {path.name}, step {trainer.done} of {trainer.steps}.")
        self.logged = (trainer.done, self.seconds)
        metrics = self.directory / METRICS
        lines = metrics.read_bytes().splitlines(True) if metrics.exists() else []
        replace(metrics, b"".join(line for line in lines if _is_until(line, trainer.done)))

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
                self.seconds += time.perf_counter() - began
                self._do_what_is_due()
        except StoppedError:
            trainer.require_finite(self.logged[0])
            self._save()  # before anything is printed: the reader may be gone
            self._log_step()
            raise

    def _do_what_is_due(self) -> None:
        done, run = self.trainer.done, self.run
        if done == 0:
            return
        if self._is_due(run.log_interval_steps):
            self._log_step()
        if self._is_due(run.eval_interval_steps) and done not in self.evaluations:
            self._evaluate()
        bpb = self.evaluations.get(done)
        saved = [best for best in self.manifest.checkpoints.values() if best is not None]
        is_best = bpb is not None and all(bpb < best for best in saved)
        if self._is_due(run.save_interval_steps) or is_best:
            self._log_step()
            self._save()

    def _is_due(self, interval: int) -> bool:
        return self.trainer.done % interval == 0 or self.trainer.done == self.trainer.steps

    def _log_step(self) -> None:
        """Read the losses since the last time, and log them. Raises DivergedError."""
        trainer, done, (since, before) = self.trainer, self.trainer.done, self.logged
        if done == since:
            return
        trainer.require_finite(since)
        self.logged = (done, self.seconds)
        tokens = trainer.config.tokens_per_step
        rate = (done - since) * tokens / (self.seconds - before)
        loss = float(trainer.losses[done - 1])
        self._log(
            loss=loss,
            grad_norm=float(trainer.grad_norms[done - 1]),
            tokens_per_second=rate,
            train_seconds=self.seconds,
        )
        left = (trainer.steps - done) * tokens / rate
        self.say(
            f"step {done}/{trainer.steps}  loss {loss:.4f}  {rate:,.0f} tokens/s  {left:.0f} s left"
        )

    def _evaluate(self) -> None:
        """Raises StoppedError in the middle of it, and DivergedError when there is no score."""
        self._log_step()
        trainer = self.trainer
        bpb = trainer.evaluate_bpb(self.check)
        if not math.isfinite(bpb):
            raise DivergedError(f"the validation bits per byte are {bpb} at step {trainer.done}")
        self.evaluations[trainer.done] = bpb
        self._log(val_bpb=bpb)
        self.say(f"step {trainer.done}  validation {bpb:.5f} bits per byte")

    def _log(self, **values: float) -> None:
        with (self.directory / METRICS).open("a", encoding="utf-8") as file:
            file.write(json.dumps({"step": self.trainer.done, **values}) + "\n")

    def _save(self) -> None:
        """Write a checkpoint, unless the run is saved as it stands, and drop what is too old.

        Raises OSError, which leaves the checkpoints before.
        """
        done, directory, kept = self.trainer.done, self.directory, self.manifest.checkpoints
        name, bpb = f"step-{done:08d}.pt", self.evaluations.get(done)
        if done == 0 or (name in kept and kept[name] == bpb):
            return
        buffer = BytesIO()
        torch.save({"trainer": self.trainer.state_dict(), **self._found()}, buffer)
        self._list({**kept, name: None})
        replace(directory / name, buffer.getvalue())
        self._list({**kept, name: bpb})
        listed = self.manifest.checkpoints
        stay = {*list(listed)[-self.run.keep_checkpoints :], self.manifest.best}
        for old in listed.keys() - stay:
            (directory / old).unlink(missing_ok=True)
        self._list({one: value for one, value in listed.items() if one in stay})

    def _found(self) -> dict[str, Any]:
        return {"evaluations": self.evaluations, "train_seconds": self.seconds}

    def _list(self, checkpoints: dict[str, float | None]) -> None:
        self.manifest.checkpoints = checkpoints
        document = self.manifest.model_dump_json(indent=2) + "\n"
        replace(self.directory / MANIFEST, document.encode())

    def summarise(self) -> dict[str, Any]:
        """Write and return `summary.json`."""
        trainer, best = self.trainer, self.manifest.best
        document = {
            "bpb": self.evaluations.get(trainer.done),
            "best": best and {"name": best, "bpb": self.manifest.checkpoints[best]},
            "steps": trainer.plan.steps,
            "tokens": trainer.plan.tokens,
            "train_flops": trainer.plan.train,
            **self._found(),
            "health": diagnose(trainer.losses, trainer.grad_norms),
            "run": self.manifest.run,
            "threads": self.run.threads,
            "versions": {"python": platform.python_version(), "torch": torch.__version__},
        }
        replace(self.directory / SUMMARY, (json.dumps(document, indent=2) + "\n").encode())
        return document


def _is_until(line: bytes, step: int) -> bool:
    """Return whether a line of metrics is whole and of no later step."""
    with suppress(ValueError, LookupError, TypeError):
        return line.endswith(b"\n") and bool(json.loads(line)["step"] <= step)
    return False
