"""What a tracker is to us: somewhere figures go, and nothing comes from."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from orchestrator.trackers.figures import Figures
from orchestrator.trackers.terms import Value


@dataclass(frozen=True)
class Beginning:
    """Which run a sink is to be told of."""

    run_id: str
    phase: str
    tier: str
    objective: str
    key: str  # names the ledger: two runs may have the same id
    config: Mapping[str, Value]
    directory: Path  # for files of its own; absolute, there, and nobody else's
    told: int  # all figures of earlier steps were told before; 0: none


class Sink(Protocol):
    """One tracker's library. Whatever it raises ends the telling, and nothing else."""

    def begin(self, run: Beginning) -> int:
        """Take the run up, or begin it; from which step on figures are wanted.

        Those of step `run.told` and later may have been told already: they come again.
        """

    def log(self, batch: Sequence[Figures]) -> None:
        """Take these figures, in the order of their steps. On return they are the library's."""

    def end(self, summary: Mapping[str, Value], *, is_over: bool) -> None:
        """Nothing more comes for now; nothing at all if the run `is_over`."""
