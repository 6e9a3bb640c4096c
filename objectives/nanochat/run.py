"""A training run on its own: checkpoints, resume, figures and a summary in one directory.

`manifest.json` names every checkpoint with its SHA-256 before the file gets its name, and until
after it is deleted. Whatever a power cut leaves is either listed or one of the two files
`*.partial`, and nothing that is not listed is ever deleted or overwritten. What is due at a step is
decided from what was done at it, so a run resumed at any moment does the same.
"""

import fcntl
import json
import math
import os
import platform
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from hashlib import file_digest
from importlib.metadata import version
from pathlib import Path
from types import FrameType
from typing import Any, Literal, Self

import torch
from pydantic import BaseModel, ConfigDict, ValidationError

from objectives.api import DivergedError, SetupError
from objectives.files import rename, replace
from objectives.nanochat import flops
from objectives.nanochat.config import NOT_TRAINED, NanochatConfig, RunConfig
from objectives.nanochat.data import Corpus, load, require_length
from objectives.nanochat.evaluation import torch_set
from objectives.nanochat.optim import lr_factor
from objectives.nanochat.train import Trainer, diagnose

MANIFEST, METRICS, SUMMARY = "manifest.json", "metrics.jsonl", "summary.json"
PARTIAL = "checkpoint.partial"  # the one file a checkpoint is written to before it gets its name
EXIT_SIGNAL = 128  # plus the signal's number

Say = Callable[[str], None]


class StoppedError(Exception):
    """Training was stopped by a signal, after a checkpoint."""

    def __init__(self, signum: int) -> None:
        super().__init__(signal.Signals(signum).name)
        self.exit_code = EXIT_SIGNAL + signum


class Stop:
    """The first SIGINT or SIGTERM ends the run after the step, the second at once.

    A context manager: both signals are taken over inside.
    """

    def __init__(self) -> None:
        self.signum: int | None = None
        self._before: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        for signum in (signal.SIGINT, signal.SIGTERM):
            self._before[signum] = signal.signal(signum, self.receive)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._before.items():
            signal.signal(signum, handler)

    def receive(self, signum: int, _frame: FrameType | None = None) -> None:
        """The handler of both signals."""
        if self.signum is not None:
            os._exit(EXIT_SIGNAL + signum)
        self.signum = signum
        with suppress(OSError):
            os.write(2, b"\nSaving a checkpoint; interrupt again to end at once.\n")

    def check(self) -> None:
        """Raises StoppedError once a signal came."""
        if self.signum is not None:
            raise StoppedError(self.signum)


class Checkpoint(BaseModel):
    """One file of a run's state."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    step: int  # optimiser steps done
    bpb: float | None  # validation bits per byte, where it was measured
    sha256: str
    bytes: int


class Manifest(BaseModel):
    """Which run a directory holds, and its checkpoints by step."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal[2] = 2
    run: dict[str, Any]  # settings, seed, device, hashes of the text: another value, another run
    computed_with: dict[str, Any]  # threads and versions: another value, other last bits
    checkpoints: tuple[Checkpoint, ...] = ()

    @classmethod
    def of(cls, config: NanochatConfig, run: RunConfig, corpus: Corpus, device: str) -> Self:
        """Of a run that begins."""
        settings = config.model_dump(mode="json", exclude=NOT_TRAINED)
        text = {"data_sha256": corpus.sha256, "tokenizer_sha256": corpus.tokenizer_sha256}
        return cls(
            run={**settings, "seed": run.seed, "device": device, **text},
            computed_with={"threads": run.threads, **versions()},
        )

    @classmethod
    def read(cls, directory: Path) -> Self | None:
        """The one in `directory`, None if it has none. Raises ValueError when it is damaged."""
        path = directory / MANIFEST
        try:
            return cls.model_validate_json(path.read_bytes())
        except (FileNotFoundError, NotADirectoryError):
            return None
        except ValidationError as error:
            raise ValueError(
                f"{path} is damaged or not ours: {error.errors()[0]['msg']}. "
                "Move it away or choose another checkpoint_dir"
            ) from error

    @property
    def best(self) -> Checkpoint | None:
        """The checkpoint with the lowest bits per byte, the earliest of equals."""
        measured = [one for one in self.checkpoints if one.bpb is not None]
        return min(measured, key=lambda one: (one.bpb, one.step), default=None)

    def require_same(self, now: "Manifest", directory: Path) -> None:
        """Raises ValueError, naming every difference, when `directory` holds another run."""
        if found := differences(self.run, now.run):
            raise ValueError(
                f"{directory} holds another run: {'; '.join(found)}. Go back to those settings, "
                "or choose another directory with --set checkpoint_dir=DIR"
            )


def differences(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """Each key whose value differs, with both values."""
    return [
        f"{name} was {before.get(name)!r}, is {now.get(name)!r}"
        for name in sorted({*before, *now})
        if before.get(name) != now.get(name)
    ]


def versions() -> dict[str, str]:
    """Of what computes the numbers."""
    return {"python": platform.python_version(), **{n: version(n) for n in ("torch", "numpy")}}


class Store:
    """The checkpoints of one run in one directory, which the caller has locked."""

    def __init__(self, directory: Path, begun: Manifest, keep: int, keep_best: bool) -> None:
        """Raises ValueError when the directory holds another run, or files that are not ours."""
        self.directory, self._keep, self._keep_best = directory, keep, keep_best
        found = Manifest.read(directory)
        if found is None:
            for name in (METRICS, SUMMARY, PARTIAL, f"{MANIFEST}.partial"):
                if (directory / name).exists():
                    raise ValueError(
                        f"{directory} has {name} but no {MANIFEST}, so it may be somebody's: "
                        "move it away, or choose another directory with --set checkpoint_dir=DIR"
                    )
            self._write(begun)
        else:
            found.require_same(begun, directory)
            self.manifest = found

    def add(self, step: int, bpb: float | None, content: Mapping[str, Any]) -> None:
        """Keep `content` as the checkpoint of `step`, and drop what is too old.

        Raises OSError, the checkpoints before being as they were.
        """
        partial = self.directory / PARTIAL
        try:
            with partial.open("wb") as file:
                torch.save(content, file)
                file.flush()
                os.fsync(file.fileno())
        except (OSError, RuntimeError) as error:
            partial.unlink(missing_ok=True)  # a full disk needs the room
            cause = error if isinstance(error, OSError) else error.__context__
            if not isinstance(cause, OSError):  # torch wraps what the disk said
                raise
            raise OSError(
                f"the checkpoint of step {step} could not be written to {self.directory}: "
                f"{cause.strerror}. Those before it are whole: mend it and repeat the command"
            ) from error
        path, number = self.directory / f"step-{step:08d}.pt", 1
        while path.exists() or path.is_symlink():  # somebody's
            number += 1
            path = path.with_name(f"step-{step:08d}-{number}.pt")
        size = partial.stat().st_size
        new = Checkpoint(name=path.name, step=step, bpb=bpb, sha256=_sha256(partial), bytes=size)
        self._list((*self.manifest.checkpoints, new))
        rename(partial, path)
        self._drop_old()

    def newest(self, say: Say) -> tuple[Checkpoint, Any] | None:
        """The newest checkpoint that is as it was written, and its content; None without one.

        A damaged one is reported, taken off the list, and left where it is.
        """
        for one in reversed(self.manifest.checkpoints):
            path = self.directory / one.name
            if path.is_file() and _sha256(path) == one.sha256:
                # On the CPU: the state of a random generator must stay there.
                return one, torch.load(path, map_location="cpu", weights_only=True)
            fault = "is damaged (its SHA-256 differs)" if path.exists() else "is missing"
            say(f"{path} {fault}: not used, and left as it is")
            self._list(tuple(other for other in self.manifest.checkpoints if other != one))
        return None

    def _drop_old(self) -> None:
        by_step = sorted({one.step: one for one in self.manifest.checkpoints}.items())
        newest_of_step = tuple(one for _, one in by_step)
        best = self.manifest.best if self._keep_best else None
        kept = {one.name for one in (*newest_of_step[-self._keep :], *([best] if best else []))}
        for one in self.manifest.checkpoints:
            if one.name not in kept:
                (self.directory / one.name).unlink(missing_ok=True)
        self._list(tuple(one for one in newest_of_step if one.name in kept))

    def _list(self, checkpoints: tuple[Checkpoint, ...]) -> None:
        if checkpoints != self.manifest.checkpoints:
            self._write(self.manifest.model_copy(update={"checkpoints": checkpoints}))

    def _write(self, manifest: Manifest) -> None:
        replace(self.directory / MANIFEST, manifest.model_dump_json(indent=2).encode() + b"\n")
        self.manifest = manifest


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(directory: Path) -> Iterator[None]:
    """Only this process trains in `directory`, which is made if need be. Raises ValueError."""
    try:
        directory.mkdir(parents=True, exist_ok=True)
        handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise ValueError(f"checkpoint_dir {directory}: {error.strerror}") from error
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise ValueError(
                f"another process trains in {directory}: wait for it, or choose another directory "
                "with --set checkpoint_dir=DIR"
            ) from error
        yield
    finally:
        os.close(handle)


def device_for(wanted: str) -> str:
    """ "cpu" or "cuda". Raises SetupError when torch does not see the GPU that is wanted."""
    if wanted == "cuda" and not torch.cuda.is_available():
        raise SetupError(
            f"device cuda: torch {torch.__version__} sees no GPU here: --set device=cpu, or "
            "install a torch built for CUDA"
        )
    return "cuda" if wanted != "cpu" and torch.cuda.is_available() else "cpu"


def free_bytes(directory: Path) -> int:
    """Free bytes on the disk where `directory` is or would be made. Raises OSError."""
    existing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    return shutil.disk_usage(existing).free


@dataclass
class Progress:
    """What a run has found and spent over all its processes; part of a checkpoint."""

    evaluations: dict[int, float] = field(default_factory=dict)  # bits per byte by step
    train_seconds: float = 0.0
    wall_seconds: float = 0.0  # with evaluations and saves
    processes: int = 0


@dataclass
class TrainingRun:
    """One process's work on a run: begin it or resume it, and train what is left of it."""

    config: NanochatConfig
    run: RunConfig
    say: Say
    stop: Stop
    free: Callable[[Path], int] = free_bytes

    def train(self) -> dict[str, Any]:
        """The run's summary, as written to `summary.json`.

        Raises ValueError and SetupError before anything is trained; StoppedError, DivergedError,
        OutOfMemoryError and OSError later, the last checkpoint being left.
        """
        directory = self.run.checkpoint_dir
        device = device_for(self.run.device)
        corpus = load(self.config.data, self.config.tokenizer)
        require_length(corpus, self.config.sequence_len)
        steps = flops.plan(self.config, len(corpus.train)).steps
        if steps < 1:
            raise ValueError("the budget pays for no step: raise target_flops or num_batches")
        begun, found = Manifest.of(self.config, self.run, corpus, device), Manifest.read(directory)
        if found is not None:
            found.require_same(begun, directory)
            if finished := _finished(directory, found, steps):
                self.say(f"{directory} holds this run, finished: nothing to train.")
                return finished
        self._require_disk(found.checkpoints if found else (), steps)
        with locked(directory), torch_set(self.run.threads, device):
            self._resume(begun, Trainer(self.config, corpus, self.run.seed, device))
            with (directory / METRICS).open("a", encoding="utf-8") as self._metrics:
                self._to_the_end()
            return self._summarise()

    def _require_disk(self, held: tuple[Checkpoint, ...], steps: int) -> None:
        """Raises SetupError when the checkpoints to come do not fit beside those `held`."""
        size = flops.checkpoint_bytes(self.config, steps)
        needed = size * (self.run.most_kept + 1) - sum(one.bytes for one in held)
        there = self.free(self.run.checkpoint_dir)
        if there < needed:
            raise SetupError(
                f"{self.run.checkpoint_dir} needs {needed / 1e6:,.1f} MB more for checkpoints of "
                f"{size / 1e6:,.1f} MB, and {there / 1e6:,.1f} MB are free: free some, "
                "--set keep_checkpoints=1, or --set checkpoint_dir=DIR on another disk"
            )

    def _resume(self, begun: Manifest, trainer: Trainer) -> None:
        """Bring a new trainer to where the newest whole checkpoint left the run."""
        run, self._trainer, self._progress = self.run, trainer, Progress()
        self._store = Store(run.checkpoint_dir, begun, run.keep_checkpoints, run.keep_best)
        had_any = bool(self._store.manifest.checkpoints)
        if newest := self._store.newest(self.say):
            trainer.load_state_dict(newest[1]["trainer"])
            self._progress = Progress(**newest[1]["progress"])
            self.say(f"Resuming from {newest[0].name}, step {trainer.done} of {trainer.steps}.")
            if drift := differences(self._store.manifest.computed_with, begun.computed_with):
                self.say(f"Warning: {'; '.join(drift)}: the last bits may differ.")
        elif had_any:
            self.say("No checkpoint is whole: beginning again.")
        self._progress.processes += 1
        self._clock = time.perf_counter() - self._progress.wall_seconds
        self._looked = (trainer.done, self._progress.train_seconds)
        metrics = run.checkpoint_dir / METRICS
        lines = metrics.read_bytes().splitlines(keepends=True) if metrics.exists() else []
        replace(metrics, b"".join(line for line in lines if _is_until(line, trainer.done)))

    def _to_the_end(self) -> None:
        """Every step that is left, and an evaluation and a checkpoint at the end.

        Raises StoppedError once a checkpoint is written, DivergedError without writing one, and
        OSError when one cannot be written.
        """
        trainer, progress = self._trainer, self._progress
        try:
            self._do_what_is_due()
            while trainer.done < trainer.steps:
                self.stop.check()
                began = time.perf_counter()
                trainer.step()
                progress.train_seconds += time.perf_counter() - began
                self._do_what_is_due()
        except StoppedError:
            trainer.require_finite(self._looked[0])
            self._save()  # before anything is printed: whoever reads may be gone
            self._look()
            raise

    def _do_what_is_due(self) -> None:
        done, run = self._trainer.done, self.run
        if done == 0:
            return
        if self._due(run.log_interval_steps):
            self._look()
        if self._due(run.eval_interval_steps) and done not in self._progress.evaluations:
            self._evaluate()
        bpb, best = self._progress.evaluations.get(done), self._store.manifest.best
        is_best = bpb is not None and (best is None or best.bpb is None or bpb < best.bpb)
        if self._due(run.save_interval_steps) or (run.keep_best and is_best):
            self._look()
            self._save()

    def _due(self, interval: int) -> bool:
        return self._trainer.done % interval == 0 or self._trainer.done == self._trainer.steps

    def _look(self) -> None:
        """Look at the losses since the last time, and log them. Raises DivergedError."""
        trainer, done, seconds = self._trainer, self._trainer.done, self._progress.train_seconds
        since, before = self._looked
        if done == since:
            return
        trainer.require_finite(since)
        self._looked = (done, seconds)
        tokens = trainer.config.tokens_per_step
        rate, loss = (done - since) * tokens / (seconds - before), float(trainer.losses[done - 1])
        self._log(
            loss=loss,
            grad_norm=float(trainer.grad_norms[done - 1]),
            lr_factor=lr_factor(done - 1, trainer.steps, trainer.config),
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
        self._look()
        trainer = self._trainer
        bpb = trainer.bits_per_byte(trainer.val, self.stop.check)
        if not math.isfinite(bpb):
            raise DivergedError(f"the validation bits per byte are {bpb} at step {trainer.done}")
        self._progress.evaluations[trainer.done] = bpb
        self._log(val_bpb=bpb)
        self.say(f"step {trainer.done}  validation {bpb:.5f} bits per byte")

    def _log(self, **values: float) -> None:
        self._metrics.write(json.dumps({"step": self._trainer.done, **values}) + "\n")
        self._metrics.flush()

    def _save(self) -> None:
        """Write a checkpoint, unless the run is saved as it stands."""
        done, progress = self._trainer.done, self._progress
        bpb = progress.evaluations.get(done)
        if done == 0 or any(
            (c.step, c.bpb) == (done, bpb) for c in self._store.manifest.checkpoints
        ):
            return
        progress.wall_seconds = time.perf_counter() - self._clock
        content = {"trainer": self._trainer.state_dict(), "progress": asdict(progress)}
        self._store.add(done, bpb, content)

    def _summarise(self) -> dict[str, Any]:
        """Write `summary.json`. Evaluations' FLOPs are outside the planned ones."""
        trainer, progress, corpus = self._trainer, self._progress, self._trainer.corpus
        tokens, plan = trainer.done * self.config.tokens_per_step, trainer.plan
        windows, best = (
            len(progress.evaluations) * len(trainer.val.tokens),
            self._store.manifest.best,
        )
        document = {
            "bpb": progress.evaluations.get(trainer.done),
            "best": best and best.model_dump(include={"name", "step", "bpb"}),
            "steps": trainer.done,
            "tokens": tokens,
            "epochs": tokens / len(corpus.train),
            "decided_by": plan.paid_by,
            "train_flops": trainer.done * plan.flops_per_step,
            "eval_flops": windows * plan.eval_flops_per_window,
            "tokens_per_second": tokens / progress.train_seconds,
            **asdict(progress),
            "wall_seconds": time.perf_counter() - self._clock,
            "health": diagnose(trainer.losses, trainer.grad_norms, self.config.max_grad_norm),
            "documents": corpus.documents,
            "duplicates": corpus.duplicates,
            "versions": versions(),
            "run": self._store.manifest.run,
        }
        replace(self.run.checkpoint_dir / SUMMARY, (json.dumps(document, indent=2) + "\n").encode())
        return document


def _finished(directory: Path, manifest: Manifest, steps: int) -> dict[str, Any] | None:
    """The summary, if the run has reached its last step and it is whole."""
    if not manifest.checkpoints or manifest.checkpoints[-1].step < steps:
        return None
    with suppress(OSError, ValueError):
        document: dict[str, Any] = json.loads((directory / SUMMARY).read_bytes())
        return document
    return None


def _is_until(line: bytes, step: int) -> bool:
    """Whether a line of metrics is whole and about no later step."""
    with suppress(ValueError, LookupError, TypeError):
        return line.endswith(b"\n") and bool(json.loads(line)["step"] <= step)
    return False
