"""A window that is too short ends a run in time, with everything saved; one that fits does not."""

from collections.abc import Callable
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
import typer

from budgets.events import Settled
from budgets.ledger import LEDGER, read
from budgets.plan import Calibration, Window
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.cli.session import Output, finish
from orchestrator.cli.terminal import console
from orchestrator.config import Config
from orchestrator.execution.engine import devices_of
from orchestrator.look.reports import ReportFiles
from orchestrator.matrix.search import Searching
from orchestrator.plan.fit import Wanted, choices, room_of
from orchestrator.plan.history import read_history
from orchestrator.plan.times import NOTHING, Times
from orchestrator.records.recorded import Result, load_state
from orchestrator.running.amend import Amendment, amend
from orchestrator.running.session import Session
from tests.asking import config_for
from tests.simulation.instant import InstantExecutor, Machine
from tests.simulation.session import BEGAN, Person, SimulatedClock, SimulatedEngine

if TYPE_CHECKING:
    from tests.conftest import Command

MACHINE = Machine(devices=2, seconds=59.9, spread=0.0)  # and 0.1 s to start
SECONDS = 60.0
HOUR = 3600.0
MARGIN = 120.0

Search = Callable[..., Result]


@pytest.fixture
def clock() -> SimulatedClock:
    return SimulatedClock()


def request(**fields: Any) -> Config:
    """Eight candidates a generation on two devices, 60 s each: 4 minutes, and 300 s reserved."""
    values: dict[str, Any] = {
        "phase": "phase1",
        "tier": "min",
        "objective": registry.load(ObjectiveSpec(name="sphere", settings={"noise": 0.01})),
        "limit_seconds": 290.0,
        "assumed_seconds": SECONDS,
        **fields,
    }
    return config_for(**values)


def within(seconds: float) -> Window:
    return Window(hours=seconds / HOUR, margin_seconds=MARGIN)


@pytest.fixture
def search(tmp_path: Path, clock: SimulatedClock) -> Search:
    """Runs or takes up a search in simulated time."""

    def run(asked: Config) -> Result:
        rng = np.random.default_rng(1)
        engine = SimulatedEngine("inline", make=lambda _: InstantExecutor(MACHINE, clock, rng))
        session = Session(
            tmp_path,
            engine,
            lambda *_: None,
            lambda _: None,
            clock.clock,
            stop=Person(),
            reports=ReportFiles(),
        )
        with session:
            return Searching(asked, MACHINE.slots).carry_out(session)

    return run


def last_end(directory: Path) -> timedelta:
    """When the last evaluation was settled, after the run began."""
    ends = [r.at for r in read(directory / LEDGER).records if isinstance(r.event, Settled)]
    return datetime.fromisoformat(max(ends)) - BEGAN


def named(asked: Config, run_id: str, seconds: float) -> Config:
    """With so long a window."""
    window = {"budget.window": f"{seconds!r}s", "budget.safety_margin": f"{MARGIN!r}s"}
    return asked.having({"search.run_id": run_id, **window})


def needed_seconds(asked: Config) -> float:
    """So much `plan --fit` says must be free."""
    devices = devices_of(MACHINE.slots)
    times = Times("assumed", Calibration(assumed_seconds=SECONDS), overheads=NOTHING)
    roomy = asked.having({"budget.window": "1000h"})
    found = choices(Wanted(roomy, devices, times, room_of(roomy.budget, BEGAN)))
    return HOUR * found[0].forecast.hours_free


@pytest.mark.parametrize(
    "asked",
    [
        request(),
        request(tier="target", generations=3),
        request(tier="target", generations=2, rung=0.0),
    ],
    ids=["smoke test", "with a verdict and a rung", "with a verdict"],
)
def test_a_window_that_fit_says_suffices_does_and_a_shorter_one_does_not(
    search: Search, clock: SimulatedClock, asked: Config
) -> None:
    enough = needed_seconds(asked) + MARGIN
    whole = search(named(asked, "enough", enough + 1))
    assert whole.ruling.decision == "done"
    assert len(whole.state.told) == whole.state.plan.resolved.generations
    clock.advance_to(clock.seconds + 1)
    short = search(named(asked, "short", enough - 1))
    assert len(short.state.told) == whole.state.plan.resolved.generations - 1
    assert any(fired.rule == "budget" for fired in short.state.fired)


def test_a_window_that_is_too_short_ends_the_run_in_time_with_everything_saved(
    search: Search, tmp_path: Path
) -> None:
    result = search(request(window=within(780)))  # one generation of 240 s, not two and 240 more
    assert (result.ruling.decision, len(result.state.told)) == ("stop", 1)
    assert last_end(result.directory) <= timedelta(seconds=780 - MARGIN)
    for name in ("run.json", "progress.csv", "best.json", "summary.md", "reports/gen_0000.md"):
        assert (result.directory / name).stat().st_size > 0
    assert "--window" in (result.directory / "summary.md").read_text()
    kept = read_history(tmp_path)[-1]
    assert (kept.decision, kept.evaluations, kept.evaluations_planned) == ("stop", 8, 16)
    assert kept.accuracy == pytest.approx(100)
    assert kept.actual_hours == pytest.approx(240 / HOUR)
    with pytest.raises(typer.Exit) as left, Output(console()) as live:
        finish(result, Person(), live, as_json=False)
    assert left.value.exit_code == 4


def test_a_later_window_lets_it_go_on(search: Search, clock: SimulatedClock) -> None:
    asked = request(window=within(780))
    stopped = search(asked)
    amend(stopped.directory, Amendment("more time", window=within(5000)), clock.clock)
    result = search(asked)
    assert result.ruling.decision == "done"
    assert len(result.state.told) == 2
    assert result.state.accounts.evaluations == 16


def test_from_the_command_line_it_ends_with_code_4_and_goes_on_when_amended(
    command: "Command", tmp_path: Path
) -> None:
    """70 s are reserved for an attempt, and a window of 65 s has no room for one."""
    what = ("phase1", "--tier", "min", "--objective", "sphere", "--assume-eval-seconds", "1")
    asked = (*what, "--executor", "inline", "--workers", "1")
    answer = command(*asked, "--window", "65s", "--set", "budget.safety_margin=0s")
    assert answer.code == 4
    run = tmp_path / "artifacts/cmaes/phase1/min-sphere-s1"
    assert load_state(run).accounts.evaluations == 0
    amended = ("--window", "10m", "--set", "budget.safety_margin=0s", "--reason", "more time")
    assert command("amend", "min-sphere-s1", *amended).code == 0
    answer = command(*asked, "--window", "65s", "--set", "budget.safety_margin=0s")
    assert answer.code == 0
    assert answer.out.count("On track") == 2  # one a generation
    assert "evaluations an hour." in answer.out
    assert "accuracy" in answer.out
    assert load_state(run).accounts.evaluations == 16
