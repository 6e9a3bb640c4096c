"""The nanochat objective: ten synaptic knobs in, held-out bits per byte out."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

from objectives.api import Context, Knobs, Measurement, ObjectiveSpec
from objectives.nanochat import data
from objectives.nanochat.config import NanochatConfig
from objectives.nanochat.flops import GOOD_STEPS, plan
from objectives.nanochat.knobs import SPACE, SynapticKnobs
from objectives.space import SearchSpace

MAX_EPOCHS = 4.0  # beyond, repeated text teaches little


@dataclass(frozen=True)
class NanochatObjective:
    """Trains a small GPT for `config.target_flops` and scores it on held-out text."""

    config: NanochatConfig

    @classmethod
    def from_settings(cls, settings: Mapping[str, Any]) -> Self:
        """Raises ValueError on an unknown or a wrong setting."""
        return cls(NanochatConfig.from_settings(settings))

    @property
    def spec(self) -> ObjectiveSpec:
        return ObjectiveSpec(name="nanochat", settings=self.config.model_dump())

    @property
    def space(self) -> SearchSpace:
        return SPACE

    @property
    def fingerprint(self) -> str:
        """Raises SetupError when the data is a file that cannot be read."""
        settings = self.config.model_dump() | {"data": data.fingerprint(self.config.data)}
        parts = {"settings": settings, "space": SPACE.model_dump(), "code": _code_sha256()}
        return sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()

    @property
    def preload(self) -> tuple[str, ...]:
        # torch._dynamo: torch's optimizers import it when first used, which takes over a second.
        return ("torch", "torch._dynamo", "objectives.nanochat.train", __name__)

    def preflight(self) -> tuple[str, ...]:
        steps = plan(self.config).steps
        corpus = data.load(self.config.data)
        data.require_length(corpus, self.config.sequence_len)
        epochs = steps * self.config.tokens_per_step / len(corpus.train)
        warnings = []
        if steps < GOOD_STEPS:
            warnings.append(
                f"{steps} steps: below {GOOD_STEPS} a score hardly tells candidates apart; "
                "raise target_flops"
            )
        if epochs > MAX_EPOCHS:
            warnings.append(
                f"{epochs:.1f} passes over the training text: above {MAX_EPOCHS:.0f} it repeats "
                "more than it teaches; use more text or fewer target_flops"
            )
        if self.config.model == "gpt":
            warnings.append("model gpt ignores the synaptic knobs: a control, nothing to search")
        return tuple(warnings)

    def evaluate(self, knobs: Knobs, seed: int, context: Context) -> Measurement:
        from objectives.nanochat import train  # imports torch

        return train.evaluate(self.config, SynapticKnobs.from_mapping(knobs), seed, context)


def _code_sha256() -> str:
    """Of every source file here: whatever changes a score changes the fingerprint."""
    sources = sorted(Path(__file__).parent.glob("*.py"))
    return sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
