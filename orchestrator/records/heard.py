"""A run's ledger read, and when each attempt in flight was reserved."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

from budgets.events import Reserved
from budgets.fold import fold
from budgets.ledger.chain import Record
from budgets.state import RunState
from orchestrator.records.recorded import records_of


@dataclass(frozen=True)
class Heard:
    """A run, and when each of its attempts was reserved last."""

    state: RunState
    begun: dict[tuple[int, int], datetime]  # candidate, seed


def hear(directory: Path) -> Heard | None:
    """The run in `directory`; None when no whole record is there yet.

    Raises as `recorded_state` does.
    """
    records, begun = records_of(directory), dict[tuple[int, int], datetime]()
    return None if records is None else Heard(fold(_noting(records, begun)), begun)


def _noting(records: Iterable[Record], begun: dict[tuple[int, int], datetime]) -> Iterator[Record]:
    for record in records:
        if isinstance(record.event, Reserved):
            begun[record.event.candidate, record.event.seed] = datetime.fromisoformat(record.at)
        yield record
