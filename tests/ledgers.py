"""A run's ledger as tests look at it, and as a death leaves it."""

import shutil
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar

from budgets.accounts import Attempt
from budgets.events import Event, Reserved, Settled
from budgets.ledger import HEAD, LEDGER, read
from budgets.plan import Configuration
from budgets.state import Batch, RunState, fold

E = TypeVar("E", bound=Event)


def state_of(run: Path) -> RunState:
    return fold(read(run / LEDGER))


def events_of(run: Path) -> list[Event]:
    return [record.event for record in read(run / LEDGER)]


def every(kind: type[E], run: Path) -> list[E]:
    """The events of that kind, in their order."""
    return [event for event in events_of(run) if isinstance(event, kind)]


def cut(run: Path, records: int) -> None:
    """Leave the ledger's first `records` records, and no reports."""
    lines = (run / LEDGER).read_bytes().splitlines(keepends=True)
    (run / LEDGER).write_bytes(b"".join(lines[:records]))
    (run / HEAD).unlink()
    shutil.rmtree(run / "reports", ignore_errors=True)  # of a search


def closed_batch(
    number: int, points: Iterable[tuple[float, ...]], ends: Sequence[Settled], **more: Any
) -> Batch:
    """A generation on seed 5 whose candidates ended so."""
    configurations = tuple(Configuration(name="", point=point) for point in points)
    batch = Batch(None, number, configurations, ((5,),) * len(configurations), **more)
    for end in ends:
        place = {
            name: getattr(end, name) for name in ("generation", "candidate", "seed", "attempt")
        }
        held = Reserved(**place, reserve_ms=1)
        batch.attempts[end.candidate, end.seed] = (Attempt(0, held, end),)
    batch.pending.clear()
    batch.settled = batch.planned
    return batch
