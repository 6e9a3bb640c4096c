"""Golden runs, also cut short or as if their plan were another."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from budgets.events import Planned
from budgets.ledger import LEDGER, read
from budgets.state import fold
from orchestrator.look.run import Run
from orchestrator.records.runs import Tail
from tests.conftest import REPOSITORY

GOLDEN = REPOSITORY / "tests/golden/runs"
RUNS = sorted(path.name for path in GOLDEN.iterdir())
NOW = datetime(2026, 11, 23, tzinfo=UTC)


def golden(name: str, records: int | None = None, **settings: Any) -> Run:
    """The run after so many records, with those settings of its plan changed."""
    first, *rest = read(GOLDEN / name / LEDGER)[:records]
    assert isinstance(first.event, Planned)
    event = Planned(plan=first.event.plan.model_copy(update=settings))
    return Run(fold([first._replace(event=event), *rest]), NOW, GOLDEN / name)


def moments(name: str, directory: Path | None = None) -> Iterator[Run]:
    """The run as it was a second after each of its records."""
    tail = Tail(GOLDEN / name)
    for record in tail.news():
        assert tail.state is not None
        now = datetime.fromisoformat(record.at) + timedelta(seconds=1)
        yield Run(tail.state, now, directory)
