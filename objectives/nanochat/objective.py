"""The nanochat objective: knobs of a small GPT in, held-out bits per byte out."""

import ast
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from objectives.api import (
    Context,
    Flops,
    Knobs,
    Measurement,
    Objective,
    ObjectiveSpec,
    SetupError,
    Variant,
    missing_package,
)
from objectives.nanochat import data
from objectives.nanochat.config import LENGTHS, SYNAPTIC, NanochatConfig, search_space
from objectives.nanochat.flops import GOOD_STEPS, MAX_EPOCHS, plan, require_steps
from objectives.process import Heartbeat
from objectives.space import SearchSpace

if TYPE_CHECKING:  # torch is imported where something is trained: plans start quickly
    from objectives.nanochat.train import Trainer

HEARTBEAT_STEPS = 10
HEARTBEAT_SECONDS = 1.0


@dataclass(frozen=True)
class NanochatObjective(Objective):
    """Trains a small GPT for a fixed budget and scores it on held-out text."""

    model = NanochatConfig
    budget_settings, budget_unit = LENGTHS, "FLOPs"
    unscored = frozenset({"data"})  # the text counts, not where it lies

    config: NanochatConfig

    @classmethod
    def from_settings(cls, name: str, settings: Mapping[str, Any]) -> Self:
        objective = super().from_settings(name, settings)
        objective.space  # noqa: B018 - an impossible space is a wrong setting too
        return objective

    @property
    def space(self) -> SearchSpace:
        return search_space(self.config)

    def identity(self) -> Mapping[str, Any]:
        text = data.load(self.config.data).facts
        return {"text": [text["data_sha256"], text["train_tokens"]], "code": _code_sha256()}

    @property
    def provenance(self) -> dict[str, str | int]:
        corpus = data.load(self.config.data)
        return {"data": self.config.data, **corpus.facts}

    @property
    def preload(self) -> tuple[str, ...]:
        # torch._dynamo: torch's optimizers import it when first used, which takes over a second.
        return ("torch", "torch._dynamo", "objectives.nanochat.train", __name__)

    def controls(self) -> tuple[Variant, ...]:
        """The synaptic model without its synapses: plain attention, no gains."""
        if self.config.model == "gpt":
            return ()
        settings = {"model": "gpt", "space": self.config.space or SYNAPTIC, "control": True}
        return (Variant(name="synapses off", settings=settings),)

    def flops(self) -> Flops:
        """Return what `evaluate` would report at the baseline."""
        config, train_tokens = self.config, 0
        if config.target_flops is None and config.num_batches is None:
            train_tokens = len(data.load(config.data).train)
        return plan(config, train_tokens)

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        words = (f"{name}={value!r}" for name, value in self.space.typed(knobs).items())
        return tuple(part for word in words for part in ("--set", word))

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        settings = {**self.spec.settings, **self.space.typed(knobs)}
        return ObjectiveSpec(name=self.name, settings=settings)

    def preflight(self) -> tuple[str, ...]:
        if find_spec("torch") is None:
            raise SetupError(missing_package("torch"))
        corpus = data.load(self.config.data)
        data.require_length(corpus, self.config.sequence_len)
        bought = plan(self.config, len(corpus.train))
        require_steps(bought)
        steps, passes, warnings = bought.steps, bought.tokens / len(corpus.train), []
        if steps < GOOD_STEPS:
            warnings += [f"{steps} steps: below {GOOD_STEPS} a score hardly tells candidates apart"]
        if passes > MAX_EPOCHS:
            said = f"{passes:.1f} passes over the training text"
            warnings += [f"{said}: above {MAX_EPOCHS:.0f} it repeats itself"]
        return tuple(warnings)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        from objectives.nanochat.train import Trainer, torch_set

        config = self.config.with_knobs(knobs)
        with torch_set(context.threads, context.device):
            corpus = data.load(config.data)
            is_planned = context.pinned.get("data") == config.data
            if is_planned and context.pinned["data_sha256"] != corpus.facts["data_sha256"]:
                raise SetupError(
                    f"the text of {config.data} has changed since the run was planned: put it "
                    "back and repeat the command, or begin another run with --run-id"
                )
            trainer = Trainer(config, corpus, seed, context.device)
            require_steps(trainer.plan)
            return _measure(trainer, context.heartbeat)


def _measure(trainer: "Trainer", heartbeat: Heartbeat) -> Measurement:
    """Train the model, and score it."""
    from objectives.nanochat.train import diagnose

    seen, started, sent = 0, time.perf_counter(), time.monotonic()

    def is_due() -> bool:
        return time.monotonic() - sent >= HEARTBEAT_SECONDS

    def beat(**metrics: float) -> None:
        nonlocal sent
        if metrics or is_due():
            heartbeat(_finite(metrics))
            sent = time.monotonic()

    while trainer.done < trainer.steps:
        trainer.step()
        done = trainer.done
        often = done % HEARTBEAT_STEPS == 0 and trainer.device.type == "cpu"
        if often or done == trainer.steps or is_due():  # only reading losses waits for a GPU
            trainer.require_finite(seen)
            seen = done
            loss, norm = float(trainer.losses[done - 1]), float(trainer.grad_norms[done - 1])
            beat(step=done, loss=loss, grad_norm=norm)
    seconds = time.perf_counter() - started
    return Measurement(
        score=trainer.evaluate_bpb(beat),
        train_seconds=seconds,
        steps=trainer.plan.steps,
        tokens=trainer.plan.tokens,
        train_flops=trainer.plan.train,
        eval_flops=trainer.plan.score,
        metrics=_finite(diagnose(trainer.losses, trainer.grad_norms) | trainer.gpu_memory()),
    )


def _finite(metrics: Mapping[str, float]) -> dict[str, float]:
    return {name: value for name, value in metrics.items() if math.isfinite(value)}


@cache
def _code_sha256() -> str:
    """Return the hash of every file that can change a score, without comments and docstrings."""
    folder, whole = Path(__file__).parent, sha256()
    for path in (*sorted(folder.glob("[!_]*.py")), folder.parent / "space.py"):
        tree = ast.parse("" if path.stem == "run" else path.read_bytes())
        for node in ast.walk(tree):
            if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
                is_told = ast.get_docstring(node) is not None
                node.body[:1] = [ast.Pass()] if is_told else node.body[:1]
        whole.update(f"{path.name}\0{ast.unparse(tree)}\0".encode())
    return whole.hexdigest()
