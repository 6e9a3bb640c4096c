"""A run survives whatever happens to it: cut anywhere, it ends the same."""

import shutil
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from budgets.events import Concluded, Status
from budgets.ledger import LEDGER, Ledger
from budgets.state import ImpossibleEventError
from orchestrator.execution.api import Attempt, EngineError
from orchestrator.execution.engine import Engine
from orchestrator.execution.processes import this_owner
from orchestrator.look.reports import rebuild
from orchestrator.records.runs import Result
from orchestrator.run.files import PlanChangedError, open_run
from orchestrator.run.session import system_clock
from tests.executors import Which, ending, failing
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


def test_a_finished_run_is_only_read_when_the_command_is_repeated(
    finished: Path, tmp_path: Path, run_search: RunSearch
) -> None:
    run = copy_run(finished, tmp_path)
    before = (run / LEDGER).read_bytes()

    result = run_search(tmp_path, **NOISY)

    assert result.ruling.decision == "done"
    assert (run / LEDGER).read_bytes() == before


def test_every_derived_file_is_rebuilt_from_the_ledger_alone(
    finished: Path, tmp_path: Path
) -> None:
    run = copy_run(finished, tmp_path)
    derived = ["run.json", "best.json", "progress.csv", "reports"]  # a summary names its place
    kept = {p: p.read_bytes() for name in derived for p in files(run / name)}
    for name in derived:
        shutil.rmtree(run / name) if (run / name).is_dir() else (run / name).unlink()

    rebuild(run, datetime.now(UTC))

    assert {p: p.read_bytes() for name in derived for p in files(run / name)} == kept
    assert len(kept) == 7


def files(path: Path) -> list[Path]:
    return sorted(path.rglob("*")) if path.is_dir() else [path]


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
        run = open_run(ledger, plan, this_owner(), lambda state, event: None)
        with pytest.raises(ImpossibleEventError):
            run.record(Concluded())
    assert (directory / LEDGER).read_bytes() == before


def losing(which: Which) -> Engine:
    """Loses such attempts, as a dying node would."""
    lost = (Status.LOST, "its node died")
    return ending(lambda attempt: lost if which(attempt) else None, on_disk=False)


def test_a_calibration_that_a_cap_stopped_does_not_stop_the_next_one(
    tmp_path: Path, run_search: RunSearch
) -> None:
    stopped = run_search(tmp_path, max_device_hours=1 / 60)
    again = run_search(tmp_path, max_device_hours=1.0)

    assert stopped.state.plan.phase == "calibration"
    assert (again.state.plan.phase, again.ruling.decision) == ("phase1", "done")


def test_searches_can_share_a_calibration_that_somebody_is_reading(
    finished: Path, tmp_path: Path, run_search: RunSearch
) -> None:
    copy_run(finished, tmp_path)
    calibration = next((tmp_path / "calibration").iterdir())
    with Ledger(calibration, system_clock()):
        result = run_search(tmp_path, **NOISY, run_id="other")

    assert result.ruling.decision == "done"


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


def test_the_time_left_is_that_of_the_workers_in_use(tmp_path: Path, run_search: RunSearch) -> None:
    paused: dict[str, Any] = {"population": 8, "assumed_seconds": 10.0}
    run_search(tmp_path, **paused, engine=failing(3, 7, workers=2))
    state = run_search(tmp_path, **paused, engine=failing(3, 7)).state

    assert [opened.workers for opened in state.opened] == [2, 1]


def test_the_engine_failing_loses_nothing(
    finished: Path, tmp_path: Path, run_search: RunSearch, found: Found
) -> None:
    def fail(attempt: Attempt) -> bool:
        raise EngineError("the cluster is gone")

    with pytest.raises(EngineError):
        run_search(tmp_path, **NOISY, engine=losing(fail))
    run_search(tmp_path, **NOISY)

    assert (
        found(tmp_path / "phase1" / finished.name)["generations"] == found(finished)["generations"]
    )
