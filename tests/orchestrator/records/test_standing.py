"""How a run stands: by its records, its process, and one answer for every reader."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.events import Concluded, Owner, Status
from budgets.ledger import LEDGER, read
from budgets.rules import judge
from budgets.state import RunState, fold
from orchestrator.execution.devices import Engine
from orchestrator.execution.processes import this_owner
from orchestrator.look.serve import Site
from orchestrator.records.runs import REPEAT, Result, Standing, load_state, standing_of
from tests.budgets.conftest import OPENED, Story, small_plan
from tests.ledgers import cut

if TYPE_CHECKING:
    from tests.conftest import Command

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)
ME = this_owner()
GONE = Owner(boot_id=ME.boot_id, pid=2**22, start_ticks=1)  # of a process that is gone
ELSEWHERE = ME.model_copy(update={"boot_id": "another machine"})


class Owned(Story):
    """A run of 2 x 4 evaluations on two devices that a process carries out."""

    def __init__(self, owner: Owner = ME) -> None:
        self.owner = owner
        super().__init__(small_plan())

    def open(self) -> RunState:
        self.elapsed_ms = 0
        return self.say(OPENED.model_copy(update={"workers": 2, "owner": self.owner}))

    @property
    def now(self) -> datetime:
        return BEGAN + timedelta(milliseconds=self.elapsed_ms)


def stands(run: Owned, seconds: float | None = None) -> Standing:
    """As of that moment, or of the last record."""
    now = run.now if seconds is None else BEGAN + timedelta(seconds=seconds)
    return standing_of(run.state, now)


def begun(owner: Owner) -> Owned:
    run = Owned(owner=owner)
    run.ask()
    run.reserve(0)
    return run


@pytest.mark.parametrize(
    ("owner", "seconds", "kind", "whose", "way_on"),
    [
        (ME, 5, "running", f"running (pid {ME.pid})", ""),
        (GONE, 5, "interrupted", "interrupted", REPEAT),
        (ELSEWHERE, 10, "elsewhere", "running on here, last record 10 s ago", ""),
        (ELSEWHERE, 72, "elsewhere", "running on here, last record 1 min 12 s ago", ""),
        (ELSEWHERE, 73, "interrupted", "interrupted on here, last record 1 min 13 s ago", REPEAT),
    ],
    ids=["here", "gone", "elsewhere", "elsewhere, silent", "elsewhere, too long silent"],
)
def test_one_that_may_go_on_stands_as_its_process_does(
    owner: Owner, seconds: float, kind: str, whose: str, way_on: str
) -> None:
    found = stands(begun(owner), seconds)
    assert (found.kind, found.whose, found.way_on) == (kind, whose, way_on)
    assert found.goes_on == (kind in ("running", "elsewhere"))


def paused(owner: Owner) -> Owned:
    run = Owned(owner=owner)
    run.score(Status.ERROR, Status.ERROR, 1.0, 1.0)
    return run


def noted(run: Owned) -> Owned:
    (trigger,) = judge(run.state).triggers
    run.say(trigger)
    return run


@pytest.mark.parametrize(
    ("run", "kind"),
    [
        (paused(ME), "running"),  # its process has yet to put that on record
        (noted(paused(ME)), "paused"),  # and does no more, though it may go on to another run
        (paused(GONE), "paused"),
        (noted(paused(ELSEWHERE)), "paused"),
    ],
)
def test_one_that_a_rule_holds_is_paused_when_its_process_leaves_it_at_that(
    run: Owned, kind: str
) -> None:
    found = stands(run)
    assert (found.kind, found.way_on) == (kind, "")
    assert found.ruling.decision == "pause"


def test_one_whose_process_is_killed_with_a_pause_to_come_is_paused() -> None:
    run = Owned(owner=GONE)
    run.ask()
    for candidate in range(3):
        run.evaluate(candidate, Status.ERROR)
    run.reserve(3)
    assert judge(run.state).decision == "pause"
    assert stands(run).kind == "paused"


def test_a_concluded_one_is_finished_whoever_lives_on() -> None:
    run = Owned()
    run.finish()
    assert stands(run).kind == "running"  # nothing says so yet
    run.say(Concluded())
    assert (stands(run).kind, stands(run).whose) == ("finished", "finished")


# What only ends a search does not end its run: `patience` with an evaluation still in flight


@pytest.fixture
def comparing(tmp_path: Path, run_search: Callable[..., Result]) -> Path:
    """A run as it was when `patience` ended its search, whose process is gone."""
    size = {"tier": "target", "population": 4, "max_evals": 16, "confirm_seeds": 2}
    impatient = {"patience_generations": 1, "patience_improve": 0.5}
    more = {"settings": {"dimension": 2, "noise": 0.01}, "thresholds": impatient, **size}
    engine = Engine(kind="inline", workers=2)
    root = tmp_path / "artifacts/cmaes"
    run = run_search(root, engine=engine, assumed_seconds=1.0, **more).directory
    records = read(run / LEDGER)
    ended = next(n for n in range(1, len(records)) if judge(fold(records[:n])).decision == "stop")
    cut(run, ended)
    return run


def test_what_only_ends_the_search_is_no_end_for_any_reader(
    comparing: Path, command: "Command", monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("orchestrator.records.runs.owner_is_gone", lambda owner: True)
    assert judge(load_state(comparing)).triggers[0].rule == "patience"

    status = command("status", str(comparing)).out.splitlines()
    assert status[0].endswith(": interrupted")
    assert "2 of 4 generations" in status[1]

    page = command("report", str(comparing), "--out", "-").out
    assert "Interrupted" in page
    assert "Stopped" not in page

    assert [one.stands for one in Site(comparing).entries()] == ["interrupted"]
