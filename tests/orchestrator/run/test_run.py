"""Opening a run: another plan, events that cannot follow, reasons of overrides."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Concluded
from budgets.ledger import LEDGER, Ledger
from budgets.state import ImpossibleEventError
from orchestrator.execution.processes import this_owner
from orchestrator.records.runs import Result
from orchestrator.run.files import PlanChangedError, open_run
from orchestrator.run.session import system_clock
from tests.executors import failing
from tests.ledgers import cut, state_of
from tests.orchestrator.conftest import NOISY

RunSearch = Callable[..., Result]
Found = Callable[[Path], dict[str, Any]]

RECORDS = 39
"""Of such a run of tier min: plan, session, 2 x (ask, 8 x (reserve, settle), tell), conclusion."""


@pytest.fixture(scope="module")
def finished(finished_run: Path) -> Path:
    state = state_of(finished_run)
    assert state.records == RECORDS
    assert sum(len(g.failed) for g in state.generations) == 1
    return finished_run


def copy_run(run: Path, root: Path) -> Path:
    """The run and its calibration in another place."""
    shutil.copytree(run.parent.parent, root, dirs_exist_ok=True)
    return root / run.relative_to(run.parent.parent)


@pytest.mark.parametrize("records", [12, RECORDS], ids=["begun", "concluded"])
def test_another_plan_in_a_used_directory_is_refused_and_says_what_differs(
    finished: Path, tmp_path: Path, run_search: RunSearch, records: int
) -> None:
    run = copy_run(finished, tmp_path)
    cut(run, records)
    before = (run / LEDGER).read_bytes()

    with pytest.raises(PlanChangedError, match=r"search\.sigma0: 0\.15 -> 0\.1.*--run-id"):
        run_search(tmp_path, **NOISY, sigma0=0.1)

    assert (run / LEDGER).read_bytes() == before


def test_an_event_that_cannot_follow_is_not_written(finished: Path, tmp_path: Path) -> None:
    directory = copy_run(finished, tmp_path)
    before, plan = (directory / LEDGER).read_bytes(), state_of(directory).plan
    with Ledger(directory, system_clock()) as ledger:
        run = open_run(ledger, plan, this_owner(), [])
        with pytest.raises(ImpossibleEventError):
            run.record(Concluded())
    assert (directory / LEDGER).read_bytes() == before


def test_a_reason_lets_through_only_the_generation_it_was_given_for(
    tmp_path: Path, run_search: RunSearch
) -> None:
    engine = failing(3, 7, generations=2)
    fragile: dict[str, Any] = {"engine": engine, "population": 8, "assumed_seconds": 1.0}
    run_search(tmp_path, **fragile)
    again = run_search(tmp_path, **fragile, overrides=[("crash_rate", "known")])
    (trigger,) = again.ruling.triggers
    assert (trigger.rule, trigger.generation) == ("crash_rate", 1)

    refusal = (
        "--override crash_rate: this reason let generation 0 through; the rule fires again in "
        "generation 1: look, and give another --reason"
    )
    with pytest.raises(ValueError, match=f"^{refusal}$"):
        run_search(tmp_path, **fragile, overrides=[("crash_rate", "known")])

    state = run_search(tmp_path, **fragile, overrides=[("crash_rate", "known too")]).state
    overridden = [(one.generation, one.reason) for one in state.overridden]
    assert overridden == [(0, "known"), (1, "known too")]
