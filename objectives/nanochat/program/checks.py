"""Everything a run needs, tried without training it."""

import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Literal

import torch
from rich.filesize import decimal

from objectives.api import ObjectiveError
from objectives.nanochat.evaluation import torch_set
from objectives.nanochat.flops import INITIAL_SHARE
from objectives.nanochat.program.forecast import Forecast, forecast, warnings
from objectives.nanochat.program.identity import Identity
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.program.room import Free, device_for, free_bytes, require_disk
from objectives.nanochat.program.session import finished_summary
from objectives.nanochat.program.sinks import require_tensorboard
from objectives.nanochat.program.store import Entry, read_manifest, require_same
from objectives.nanochat.program.summary import peak_memory_bytes
from objectives.nanochat.text import data
from objectives.nanochat.text.data import Corpus, require_length
from objectives.nanochat.train import Trainer

TIMED_STEPS = 5  # after one that warms up
TIMED_SECONDS = 20.0  # no further step is begun after


@dataclass(frozen=True)
class Finding:
    """One thing a run needs; the text of what is missing says what mends it."""

    state: Literal["ok", "warning", "missing"]
    subject: str
    text: str


@dataclass
class Check:
    """Goes through all of it. Afterwards `findings` and `measured` say what was found."""

    resolved: Resolved
    free: Free = free_bytes
    findings: list[Finding] = field(default_factory=list)
    measured: dict[str, float] = field(default_factory=dict)  # seconds, tokens per second, bytes
    _corpus: Corpus | None = None
    _device: str | None = None
    _expected: Forecast | None = None

    def run(self) -> bool:
        """Whether a run could begin now."""
        with self._trying("data"):
            self._load()
        with self._trying("device"):
            self._find_device()
        with self._trying("configuration"):
            self._forecast()
        if self.resolved.program.tensorboard:
            with self._trying("tensorboard"):
                require_tensorboard()
                self._ok("tensorboard", "installed")
        if self._expected is not None:
            with self._trying("disk"):
                self._find_disk(self._expected)
        if self._corpus is not None and self._device is not None and self._expected is not None:
            with self._trying("directory"):
                self._find_run(self._corpus, self._device, self._expected)
            with self._trying("steps"), torch_set(self.resolved.program.threads, self._device):
                self._time(self._corpus, self._device, self._expected)
        return all(finding.state != "missing" for finding in self.findings)

    @contextmanager
    def _trying(self, subject: str) -> Iterator[None]:
        """What goes wrong inside is a finding."""
        try:
            yield
        except (ValueError, ObjectiveError, OSError) as error:
            self.findings.append(Finding("missing", subject, str(error)))

    def _ok(self, subject: str, text: str) -> None:
        self.findings.append(Finding("ok", subject, text))

    def _load(self) -> None:
        config = self.resolved.training
        corpus = data.load(config.data, config.tokenizer)
        require_length(corpus, config.sequence_len)
        self._corpus = corpus
        self._ok(
            "data",
            f"{config.data}: {len(corpus.train):,} tokens to train on, {len(corpus.val):,} held "
            f"out, {corpus.documents:,} documents, SHA-256 {corpus.sha256[:12]}; tokenizer "
            f"{corpus.tokenizer} {corpus.tokenizer_sha256[:12]}".rstrip(),
        )

    def _find_device(self) -> None:
        self._device = device_for(self.resolved.program.device)
        threads = self.resolved.program.threads
        name = torch.cuda.get_device_name() if self._device == "cuda" else f"{threads} threads"
        self._ok("device", f"{self._device}, {name}")

    def _forecast(self) -> None:
        tokens = None if self._corpus is None else len(self._corpus.train)
        expected = forecast(self.resolved, tokens)
        self._expected = expected
        self._ok(
            "configuration",
            f"{expected.plan.steps:,} steps by {expected.plan.paid_by}, "
            f"{expected.parameters:,} parameters",
        )
        for warning in warnings(self.resolved, expected):
            self.findings.append(Finding("warning", "configuration", warning))

    def _find_disk(self, expected: Forecast) -> None:
        program = self.resolved.program
        held: tuple[Entry, ...] = ()
        with suppress(ValueError):  # told of with the directory
            manifest = read_manifest(program.checkpoint_dir)
            held = manifest.checkpoints if manifest else ()
        require_disk(expected, program, held, self.free)
        self._ok(
            "disk",
            f"{decimal(self.free(program.checkpoint_dir))} free, "
            f"{decimal(expected.disk_bytes)} needed in all",
        )

    def _find_run(self, corpus: Corpus, device: str, expected: Forecast) -> None:
        directory = self.resolved.program.checkpoint_dir
        manifest = read_manifest(directory)
        if manifest is None:
            self._ok("directory", f"{directory} is new: a run begins")
            return
        require_same(manifest, Identity.of(self.resolved, corpus, device), directory)
        if finished_summary(directory, manifest, expected.plan.steps):
            self._ok("directory", f"{directory} holds this run, finished")
        else:
            step = manifest.checkpoints[-1].step if manifest.checkpoints else 0
            self._ok("directory", f"{directory} holds this run: it goes on from step {step}")

    def _time(self, corpus: Corpus, device: str, expected: Forecast) -> None:
        """A few steps of a run of the same shape, thrown away; and part of an evaluation."""
        trainer = Trainer(self.resolved.training, corpus, self.resolved.program.seed, device)
        step = _seconds_per_step(trainer)
        some = trainer.val.every(INITIAL_SHARE, corpus)
        began = time.perf_counter()
        trainer.bits_per_byte(some)
        windows = len(trainer.val.tokens) / len(some.tokens)
        evaluation = (time.perf_counter() - began) * windows
        train, evaluate = step * expected.plan.steps, evaluation * expected.evaluations
        tokens = self.resolved.training.tokens_per_step / step
        memory = peak_memory_bytes(trainer.device)
        self.measured = {
            "seconds_per_step": step,
            "seconds_per_evaluation": evaluation,
            "tokens_per_second": tokens,
            "peak_memory_bytes": memory,
            "expected_seconds": train + evaluate,
        }
        self._ok(
            "steps",
            f"losses and gradients finite; {1e3 * step:.1f} ms per step, {tokens:,.0f} tokens/s, "
            f"{decimal(memory)} of memory at most",
        )
        self._ok(
            "time",
            f"about {_duration(train + evaluate)} for the whole run: {_duration(train)} of "
            f"training, {_duration(evaluate)} for {expected.evaluations} evaluations",
        )


def _seconds_per_step(trainer: Trainer) -> float:
    """The median of a few steps. Raises DivergedError when a loss is not finite."""
    seconds: list[float] = []
    while trainer.done < min(trainer.steps, TIMED_STEPS + 1) and sum(seconds) < TIMED_SECONDS:
        began = time.perf_counter()
        trainer.step()
        trainer.require_finite(trainer.done - 1)
        seconds.append(time.perf_counter() - began)
    if not trainer.grad_norms[: trainer.done].isfinite().all():
        raise ValueError("a gradient is not finite: try --set dtype=float32, or lower rates")
    warm = sorted(seconds[1:] or seconds)
    return warm[len(warm) // 2]


def _duration(seconds: float) -> timedelta:
    return timedelta(seconds=max(1, round(seconds)))
