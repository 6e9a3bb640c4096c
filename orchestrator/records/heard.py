"""A run's ledger read, and when each attempt in flight was reserved."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import chain
from pathlib import Path

from budgets.events import Reserved
from budgets.fold import fold
from budgets.ledger.chain import LEDGER, Record
from budgets.ledger.head import Marked
from budgets.state import RunState
from orchestrator.records.recorded import is_there


@dataclass(frozen=True)
class Heard:
    """A run, and when each of its attempts was reserved last."""

    state: RunState
    begun: dict[tuple[int, int], datetime]  # candidate, seed


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
    return Heard(fold(_noting(chain([first], records), begun)), begun)


def _noting(records: Iterable[Record], begun: dict[tuple[int, int], datetime]) -> Iterator[Record]:
    for record in records:
        if isinstance(record.event, Reserved):
            begun[record.event.candidate, record.event.seed] = datetime.fromisoformat(record.at)
        yield record
