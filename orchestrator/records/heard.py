"""What a ledger says of its run, and when it said it: read without disturbing whoever runs it."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import chain
from pathlib import Path
from typing import Literal

from budgets.events import Reserved
from budgets.fold import fold
from budgets.ledger.chain import LEDGER, Record
from budgets.ledger.head import Marked
from budgets.state import RunState
from orchestrator.execution.processes import boot_id, owner_is_gone
from orchestrator.records.recorded import is_there

Alive = Literal["yes", "no", "elsewhere"]
"""Whether a process has the run; of one on another machine nothing can be seen from here."""

PATIENCE_SECONDS = 60.0
"""Beyond an attempt's worst case: a run elsewhere that was silent for longer is taken for dead."""


@dataclass
class Heard:
    """A run, the moment of its last record, and when each attempt in flight was reserved."""

    state: RunState
    last: datetime
    begun: dict[tuple[int, int], datetime] = field(default_factory=dict)  # candidate, seed

    def alive(self) -> Alive:
        """Whether somebody carries it out at the moment."""
        state = self.state
        if state.concluded is not None or not state.opened:
            return "no"
        owner = state.opened[-1].owner
        if owner.boot_id != boot_id():
            return "elsewhere"
        return "no" if owner_is_gone(owner) else "yes"

    def goes_on(self, now: datetime) -> bool:
        """Whether it is carried out, or may be as far as can be told from here."""
        alive = self.alive()
        if alive != "elsewhere":
            return alive == "yes"
        worst = max((t.reserved.reserve_ms for t in self.state.open_tries()), default=0) / 1000
        return (now - self.last).total_seconds() <= worst + PATIENCE_SECONDS


def hear(directory: Path) -> Heard | None:
    """The run in `directory`; None when no whole record is there yet.

    Raises as `recorded_state` does.
    """
    path = directory / LEDGER
    if not is_there(path):
        return None
    records = iter(Marked(path))
    first = next(records, None)
    if first is None:
        return None
    begun: dict[tuple[int, int], datetime] = {}
    last = [first.at]
    state = fold(_noting(chain([first], records), begun, last))
    return Heard(state, datetime.fromisoformat(last[0]), begun)


def _noting(
    records: Iterable[Record], begun: dict[tuple[int, int], datetime], last: list[str]
) -> Iterator[Record]:
    for record in records:
        if isinstance(record.event, Reserved):
            begun[record.event.candidate, record.event.seed] = datetime.fromisoformat(record.at)
        last[0] = record.at
        yield record
