"""Which run a checkpoint belongs to, and whether another process may go on with it."""

import platform
from importlib.metadata import version
from typing import Any

from pydantic import BaseModel, ConfigDict

from objectives.nanochat.config import NOT_TRAINED
from objectives.nanochat.program.options import Resolved
from objectives.nanochat.text.data import Corpus


class Identity(BaseModel):
    """All that decides a run's numbers."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    settings: dict[str, Any]  # of NanochatConfig
    seed: int
    device: str  # "cpu" or "cuda"
    data_sha256: str
    tokenizer_sha256: str
    threads: int
    versions: dict[str, str]  # of python, torch and numpy

    @classmethod
    def of(cls, resolved: Resolved, corpus: Corpus, device: str) -> "Identity":
        return cls(
            settings=resolved.training.model_dump(mode="json", exclude=NOT_TRAINED),
            seed=resolved.program.seed,
            device=device,
            data_sha256=corpus.sha256,
            tokenizer_sha256=corpus.tokenizer_sha256,
            threads=resolved.program.threads,
            versions=versions(),
        )

    def differences(self, now: "Identity") -> list[str]:
        """What `now` trains otherwise: any of it makes another run."""
        ours, theirs = self._deciding(), now._deciding()
        return [
            f"{name} was {ours.get(name)!r}, is {theirs.get(name)!r}"
            for name in sorted(ours.keys() | theirs.keys())
            if ours.get(name) != theirs.get(name)
        ]

    def drift(self, now: "Identity") -> list[str]:
        """What may change the last bits of what follows, and nothing more."""
        ours = {**self.versions, "threads": self.threads}
        theirs = {**now.versions, "threads": now.threads}
        return [
            f"{name} was {ours.get(name)}, is {theirs[name]}"
            for name in theirs
            if ours.get(name) != theirs[name]
        ]

    def _deciding(self) -> dict[str, Any]:
        own = self.model_dump(exclude={"settings", "threads", "versions"})
        return {**self.settings, **own}


def versions() -> dict[str, str]:
    """Of what computes the numbers."""
    return {"python": platform.python_version(), **{n: version(n) for n in ("torch", "numpy")}}
