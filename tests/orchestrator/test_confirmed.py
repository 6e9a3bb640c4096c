"""A search that is confirmed survives whatever happens to it, whichever panel it is at."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import (
    ComparisonAsked,
    Settled,
)
from budgets.plan import ComparisonName
from orchestrator.execution.api import Outcome
from orchestrator.execution.inline import InlineExecutor
from orchestrator.records.runs import Result
from orchestrator.verify import verify
from tests.ledgers import cut, events_of, state_of
from tests.simulation.session import SimulatedEngine

Found = Callable[[Path], dict[str, Any]]
Search = Callable[..., Result]

RECORDS = 64
"""Of such a run: plan, session, 2 x (ask, 4 x (reserve, settle), tell), 4 panels with 5 + 9 + 2 + 2
evaluations, decision, conclusion."""

PANELS: tuple[ComparisonName, ...] = ("reference", "finalists", "winner", "long_run")


@pytest.fixture
def search(search_confirmed: Search) -> Search:
    return search_confirmed


@pytest.fixture
def finished(confirmed_run: Path) -> Path:
    return confirmed_run


@pytest.fixture
def run(finished: Path, place: Path) -> Path:
    """A copy of it to do harm to."""
    return Path(shutil.copytree(finished, place / "phase1" / finished.name))


def test_an_attempt_of_a_panel_that_a_lost_record_reserved_is_adopted_beside_one_in_flight(
    run: Path, finished: Path, search: Search, found: Found
) -> None:
    """It is not taken for the candidate's that runs then."""
    cut(run, 4)  # the first generation is asked
    shutil.rmtree(run / "eval/gen_0000/cand_0003")

    state = search(run.parent.parent).state

    assert found(run) == found(finished)
    reference = state.comparison("reference")
    assert reference is not None
    assert all(result.recovered for result in reference.results())


class Dawdling(InlineExecutor):
    """Evaluates the reference last."""

    def wait(self, timeout_seconds: float) -> list[Outcome]:
        if self._queue and self._queue[0].directory.parent.parent.name.startswith("reference"):
            self._queue.rotate(-1)
        return super().wait(timeout_seconds)


def test_the_winner_is_not_asked_for_before_the_reference_is_closed_too(
    place: Path, finished: Path, search: Search, found: Found
) -> None:
    engine = SimulatedEngine("inline", workers=2, make=Dawdling)
    run = search(place, engine=engine).directory
    number = max(
        n
        for n, e in enumerate(events_of(run))
        if isinstance(e, Settled) and e.comparison == "finalists"
    )
    cut(run, number + 1)
    reference, finalists = (state_of(run).comparison(name) for name in PANELS[:2])
    assert reference is not None
    assert finalists is not None
    assert finalists.closed
    assert reference.running_attempts()
    shutil.rmtree(run / "eval")  # so that they are owed again

    search(place)

    assert found(run) == found(finished)
    assert verify(run).divergence is None
    told = events_of(run)
    closed = max(
        n for n, e in enumerate(told) if isinstance(e, Settled) and e.comparison == "reference"
    )
    assert isinstance(told[closed + 1], ComparisonAsked)
