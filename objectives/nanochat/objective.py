"""The nanochat objective: knobs of a small GPT in, held-out bits per byte out."""

import ast
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, Self

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
from objectives.nanochat.config import NanochatConfig, group_names, search_space
from objectives.nanochat.flops import (
    GOOD_STEPS,
    MAX_EPOCHS,
    plan,
    require_steps,
    scored_windows,
)
from objectives.space import SearchSpace


@dataclass(frozen=True)
class NanochatObjective(Objective):
    """Trains a small GPT for a fixed budget and scores it on held-out text."""

    config: NanochatConfig

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting."""
        objective = cls(NanochatConfig.from_settings(settings))
        objective.space  # noqa: B018 - an impossible space is a wrong setting too
        return objective

    @property
    def spec(self) -> ObjectiveSpec:
        return ObjectiveSpec(name="nanochat", settings=self.config.model_dump(exclude_none=True))

    @property
    def space(self) -> SearchSpace:
        return search_space(self.config)

    @property
    def fingerprint(self) -> str:
        """Raises SetupError when the data cannot be read."""
        text = data.load(self.config.data, self.config.tokenizer).fingerprint
        settings = self.config.model_dump() | {"data": text}
        parts = {"settings": settings, "space": self.space.model_dump(), "code": _code_sha256()}
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def provenance(self) -> dict[str, str | int]:
        corpus = data.load(self.config.data, self.config.tokenizer)
        return {
            "data": self.config.data,
            "data_sha256": corpus.sha256,
            "documents": corpus.documents,
            "train_bytes": corpus.train_bytes,
            "val_bytes": corpus.val_bytes,
            "tokenizer": corpus.tokenizer,
            "tokenizer_sha256": corpus.tokenizer_sha256,
            "train_tokens": len(corpus.train),
            "val_tokens": len(corpus.val),
        }

    @property
    def requires(self) -> tuple[str, ...]:
        return ("torch",)

    @property
    def preload(self) -> tuple[str, ...]:
        # torch._dynamo: torch's optimizers import it when first used, which takes over a second.
        return ("torch", "torch._dynamo", "objectives.nanochat.evaluation", __name__)

    def controls(self) -> tuple[Variant, ...]:
        """The synaptic model without its synapses: plain attention, no gains."""
        if self.config.model == "gpt":
            return ()
        space = "+".join(group_names(self.config))
        settings = {"model": "gpt", "space": space, "control": True}
        return (Variant(label="synapses off", settings=settings),)

    def _scaled(self, factor: float) -> Variant:
        settings = self.config.scaled(factor)
        return Variant(label=f"{factor:g} x FLOPs", settings=settings, length=factor)

    def flops(self) -> Flops:
        """As `evaluate` would report them, whatever the knobs that shape nothing."""
        config, train_tokens = self.config, 0
        if config.target_flops is None and config.num_batches is None:
            train_tokens = len(data.load(config.data, config.tokenizer).train)
        bought = plan(config, train_tokens)
        return Flops(
            train=bought.train_flops,
            score=scored_windows(config) * bought.eval_flops_per_window,
            steps=bought.steps,
            tokens=bought.steps * config.tokens_per_step,
        )

    def arguments(self, knobs: Knobs) -> tuple[str, ...]:
        """As `python -m orchestrator` and `python -m objectives.nanochat` take them."""
        words = (f"{name}={value!r}" for name, value in self.space.typed(knobs).items())
        return tuple(part for word in words for part in ("--set", word))

    def with_baseline(self, knobs: Knobs) -> ObjectiveSpec:
        spec = self.spec
        settings = {**spec.settings, **self.space.typed(knobs)}
        return spec.model_copy(update={"settings": settings})

    def preflight(self) -> tuple[str, ...]:
        if find_spec("torch") is None:
            raise SetupError(missing_package("torch"))
        corpus = data.load(self.config.data, self.config.tokenizer)
        data.require_length(corpus, self.config.sequence_len)
        plans = [plan(config, len(corpus.train)) for config in self._extremes()]
        for bought in plans:
            require_steps(bought)
        fewest, most = min(p.steps for p in plans), max(p.steps for p in plans)
        epochs = most * self.config.tokens_per_step / len(corpus.train)
        warnings = []
        if fewest < GOOD_STEPS:
            warnings.append(
                f"{fewest} steps: below {GOOD_STEPS} a score hardly tells candidates apart; "
                "raise target_flops"
            )
        if epochs > MAX_EPOCHS:
            warnings.append(
                f"{epochs:.1f} passes over the training text: above {MAX_EPOCHS:.0f} it repeats "
                "more than it teaches; use more text or fewer target_flops"
            )
        return tuple(warnings)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        try:
            from objectives.nanochat import evaluation  # imports torch
        except ModuleNotFoundError as error:
            raise SetupError(missing_package(error.name)) from error

        names = {knob.name for knob in self.space.knobs}
        if set(knobs) != names:
            missing, unknown = sorted(names - set(knobs)), sorted(set(knobs) - names)
            raise ValueError(f"nanochat needs its knobs: missing {missing}, unknown {unknown}")
        return evaluation.evaluate(self.config.with_knobs(knobs), seed, context)

    def _extremes(self) -> Iterator[NanochatConfig]:
        """The configuration itself, and every corner of the knobs that change its shape."""
        yield self.config
        ends = [[(k.name, k.low), (k.name, k.high)] for k in self.space.knobs if k.kind == "int"]
        for corner in product(*ends) if ends else ():
            yield self.config.with_knobs(dict(corner))


@cache
def _code_sha256() -> str:
    """Of every source file that can change a score; the training program beside it cannot.

    Neither can comments and docstrings, which are left out.
    """
    folder = Path(__file__).parent
    sources = sorted(folder.glob("[!_]*.py"))
    whole = sha256()
    for path in (*sources, folder.parent / "space.py"):
        whole.update(f"{path.name}\0{_without_docstrings(path)}\0".encode())
    return whole.hexdigest()


def _without_docstrings(path: Path) -> str:
    tree = ast.parse(path.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            is_told = ast.get_docstring(node) is not None
            node.body[:1] = [ast.Pass()] if is_told else node.body[:1]
    return ast.unparse(tree)
