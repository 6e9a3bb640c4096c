"""One process's work on a training run: begin it or take it up, and bring it to its end."""

import json
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console

from objectives.nanochat.evaluation import torch_set
from objectives.nanochat.program import checkpoint, forecast, summary
from objectives.nanochat.program.identity import Identity
from objectives.nanochat.program.loop import Run
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.program.room import Free, device_for, free_bytes, require_disk
from objectives.nanochat.program.sinks import MetricsFile, Sink, TensorBoard, require_tensorboard
from objectives.nanochat.program.stop import Stop
from objectives.nanochat.program.store import (
    SUMMARY,
    Manifest,
    Store,
    alone_in,
    read_manifest,
    require_same,
)
from objectives.nanochat.program.tally import Tally
from objectives.nanochat.program.watch import watch
from objectives.nanochat.text import data
from objectives.nanochat.text.data import Corpus, require_length
from objectives.nanochat.train import Trainer


@dataclass(frozen=True)
class Session:
    """A run to be made, and what it is shown with and stopped by."""

    resolved: Resolved
    console: Console
    stop: Stop
    free: Free = free_bytes

    def train(self) -> dict[str, Any]:
        """The run's summary, after training what is left of it.

        Raises ValueError and SetupError before anything is trained; StoppedError, DivergedError,
        OutOfMemoryError and OSError later, the last checkpoint being left.
        """
        config, program = self.resolved.training, self.resolved.program
        if program.tensorboard:
            require_tensorboard()
        device = device_for(program.device)
        corpus = data.load(config.data, config.tokenizer)
        require_length(corpus, config.sequence_len)
        expected = forecast.forecast(self.resolved, len(corpus.train))
        warnings = list(forecast.warnings(self.resolved, expected))
        identity = Identity.of(self.resolved, corpus, device)
        directory = program.checkpoint_dir
        manifest = read_manifest(directory)
        if manifest is not None:
            require_same(manifest, identity, directory)
            if finished := finished_summary(directory, manifest, expected.plan.steps):
                self._say(f"{directory} holds this run, finished: nothing to train.")
                return finished
        require_disk(expected, program, manifest.checkpoints if manifest else (), self.free)
        for warning in warnings:
            self._say(f"Warning: {warning}.")
        with alone_in(directory), torch_set(program.threads, device):
            store = Store(directory, identity, program.keep_checkpoints, program.keep_best)
            return self._carry_on(store, corpus, identity, warnings)

    def _carry_on(
        self, store: Store, corpus: Corpus, identity: Identity, warnings: list[str]
    ) -> dict[str, Any]:
        program, tally = self.resolved.program, Tally()
        trainer = Trainer(self.resolved.training, corpus, program.seed, identity.device)
        damaged = bool(store.entries)
        entry = checkpoint.resume(trainer, tally, store, self._say)
        tally.processes += 1
        if entry is not None:
            self._say(f"Going on from {entry.name}, step {entry.step} of {trainer.steps}.")
            if drift := store.manifest.identity.drift(identity):
                self._say(f"Warning: {'; '.join(drift)}: the last bits may differ.")
        elif damaged:
            self._say("No checkpoint is whole: beginning again.")
        with ExitStack() as stack:
            sinks = [stack.enter_context(sink) for sink in self._sinks(store, trainer)]
            Run(trainer, program, store, tally, sinks, self.stop).to_the_end()
        return summary.write(self.resolved, trainer, tally, store, warnings)

    def _sinks(self, store: Store, trainer: Trainer) -> list[Sink]:
        """Opened one after the other by whoever enters them."""
        sinks: list[Sink] = [
            MetricsFile(store.directory, trainer.done),
            watch(self.console, trainer.done, trainer.steps),
        ]
        if self.resolved.program.tensorboard:
            sinks.append(TensorBoard(store.directory / "tensorboard", trainer.done))
        return sinks

    def _say(self, text: str) -> None:
        self.console.print(text, soft_wrap=True)


def finished_summary(directory: Path, manifest: Manifest, steps: int) -> dict[str, Any] | None:
    """The summary, if the run has reached its last step and it is whole."""
    if not manifest.checkpoints or manifest.checkpoints[-1].step < steps:
        return None
    with suppress(OSError, ValueError):
        document: dict[str, Any] = json.loads((directory / SUMMARY).read_bytes())
        return document
    return None
