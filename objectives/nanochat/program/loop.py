"""A training run with evaluations, checkpoints and figures along the way."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from objectives.api import DivergedError
from objectives.nanochat.optim import lr_factor
from objectives.nanochat.program import checkpoint
from objectives.nanochat.program.settings import ProgramConfig
from objectives.nanochat.program.sinks import Sink
from objectives.nanochat.program.stop import Stop, StoppedError
from objectives.nanochat.program.store import Store
from objectives.nanochat.program.tally import Tally
from objectives.nanochat.train import Trainer


@dataclass
class Run:
    """Takes `trainer` from where it stands to its last step.

    What is due at a step is decided from what was done at it, so a run taken up again at any
    moment does the same.
    """

    trainer: Trainer
    program: ProgramConfig
    store: Store
    tally: Tally
    sinks: Sequence[Sink]
    stop: Stop
    _seen: int = field(init=False)  # steps whose losses were looked at
    _seen_at: float = field(init=False)  # train_seconds then

    def __post_init__(self) -> None:
        self._seen, self._seen_at = self.trainer.done, self.tally.train_seconds

    def to_the_end(self) -> None:
        """Every step that is left, and an evaluation and a checkpoint at the end.

        Raises StoppedError once a checkpoint is written, DivergedError without writing one, and
        OSError when one cannot be written.
        """
        try:
            self._settle()
            while self.trainer.done < self.trainer.steps:
                self.stop.check()
                with self.tally.timed("train"):
                    self.trainer.step()
                self._settle()
        except StoppedError:
            with self.tally.timed("train"):
                self.trainer.require_finite(self._seen)
            self._save()  # before anything is said: whoever listens may be gone
            self._look()
            raise

    def _settle(self) -> None:
        """All that is due after the steps done."""
        done = self.trainer.done
        if done == 0:
            return
        if self._due(self.program.log_interval_steps):
            self._look()
        if self._due(self.program.eval_interval_steps) and self.tally.bpb_at(done) is None:
            self._evaluate()
        if self._due(self.program.save_interval_steps) or self._is_best():
            self._look()
            self._save()

    def _due(self, interval: int) -> bool:
        return self.trainer.done % interval == 0 or self.trainer.done == self.trainer.steps

    def _is_best(self) -> bool:
        """Whether an evaluation here beat every checkpoint that is kept."""
        bpb, best = self.tally.bpb_at(self.trainer.done), self.store.best
        if not self.program.keep_best or bpb is None:
            return False
        return best is None or best.bpb is None or bpb < best.bpb

    def _look(self) -> None:
        """At the losses since the last time, and report on them. Raises DivergedError."""
        done, trainer = self.trainer.done, self.trainer
        if done == self._seen:
            return
        with self.tally.timed("train"):
            trainer.require_finite(self._seen)
        tokens = trainer.config.tokens_per_step
        seconds = self.tally.train_seconds - self._seen_at
        self._log(
            loss=float(trainer.losses[done - 1]),
            grad_norm=float(trainer.grad_norms[done - 1]),
            lr_factor=lr_factor(done - 1, trainer.steps, trainer.config),
            tokens=done * tokens,
            train_flops=done * trainer.plan.flops_per_step,
            tokens_per_second=(done - self._seen) * tokens / seconds,
            train_seconds=self.tally.train_seconds,
        )
        self._seen, self._seen_at = done, self.tally.train_seconds

    def _evaluate(self) -> None:
        """Raises StoppedError in the middle of it, and DivergedError when there is no score."""
        self._look()
        with self.tally.timed("evaluate"):
            bpb = self.trainer.bits_per_byte(self.trainer.val, self.stop.check)
        if not math.isfinite(bpb):
            raise DivergedError(
                f"the validation bits per byte are {bpb} at step {self.trainer.done}"
            )
        self.tally.evaluations.append((self.trainer.done, bpb))
        self._log(val_bpb=bpb)

    def _save(self) -> None:
        """Unless what stands is saved already."""
        done, bpb = self.trainer.done, self.tally.bpb_at(self.trainer.done)
        if done == 0 or any((e.step, e.bpb) == (done, bpb) for e in self.store.entries):
            return
        with self.tally.timed("save"):
            checkpoint.save(self.trainer, self.tally, self.store)

    def _log(self, **values: float) -> None:
        for sink in self.sinks:
            sink.log(self.trainer.done, values)
