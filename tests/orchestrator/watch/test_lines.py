"""What records say in a line, and which of them are worth keeping beside a view."""

from dataclasses import replace

import pytest

from budgets.events import (
    Concluded,
    Decided,
    Event,
    Fired,
    Overridden,
    PanelAsked,
    Status,
    Withdrawn,
)
from budgets.terms import Arm, PanelName, Rung, Varied
from orchestrator.watch.lines import is_lasting, line_of
from tests.budgets.conftest import confirmation, confirmed_plan
from tests.orchestrator.watch.conftest import Watched

FIRED = Fired(rule="nan", generation=0, decision="pause", observed=1, limit=0, evidence="so many")


def last(run: Watched) -> str | None:
    return line_of(run.state, run.records[-1].event)


def test_a_healthy_evaluation_has_a_line_that_a_view_makes_superfluous(watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, 1.25)
    assert last(watched) == "[1/8]  generation 0  candidate  0  ok 1.25  in 2.0 s  8 s left"
    assert not is_lasting(watched.records[-1].event)
    assert not is_lasting(watched.records[-2].event)  # its reservation


@pytest.mark.parametrize("status", [Status.NAN, Status.ERROR, Status.LOST])
def test_a_failure_lasts(status: Status, watched: Watched) -> None:
    watched.ask()
    watched.evaluate(0, status, cause="why")
    assert f"candidate  0  {status}  in 2.0 s  (why)" in (last(watched) or "")
    assert is_lasting(watched.records[-1].event)


def test_a_generation_has_a_short_budget_and_in_brief_none(watched: Watched) -> None:
    watched.score(0.9, 1.0, 1.1, Status.NAN)
    watched.tell()
    event = watched.records[-1].event
    first, spent, pace = (line_of(watched.state, event) or "").splitlines()
    assert first == (
        "Generation 0 (1 of 2): best 0.9, mean 1, baseline 1, 1 failed, step size 0.2."
    )
    assert spent.startswith("  Spent: 4 of 8 evaluations; ")
    assert "50% done" in pace
    assert line_of(watched.state, event, brief=True) == first
    assert is_lasting(event)


@pytest.mark.parametrize(
    ("event", "said"),
    [
        (FIRED, "Rule nan: so many."),
        (Overridden(rule="nan", generation=0, reason="I looked"), "Rule nan is overridden: I look"),
        (Withdrawn(device="GPU-1", why="gone"), "Device GPU-1 gets no more work: gone."),
        (Decided(grade="go", evidence="better"), "Go; persistence not shown: better."),
    ],
    ids=lambda value: getattr(value, "kind", ""),
)
def test_what_decides_has_a_line_that_lasts(event: Event, said: str, watched: Watched) -> None:
    line = line_of(watched.state, event)
    assert line is not None
    assert line.startswith(said)
    assert is_lasting(event)


@pytest.mark.parametrize(
    ("panel", "where"),
    [
        ("reference", ", on workers that would be idle"),
        ("winner", ""),
        ("rung", ", with 4 x budget"),
    ],
)
def test_a_comparison_says_what_is_compared_where(panel: PanelName, where: str) -> None:
    rung = Rung(factor=4.0, seeds=2, varied=Varied(label="4 x budget", settings={}))
    run = Watched(confirmed_plan(confirmation=confirmation(rung=rung)))
    arms = tuple(Arm(name=name, point=(0.5, 0.5)) for name in ("baseline", "mean"))
    asked = PanelAsked(panel=panel, arms=arms, seeds=((31, 32), (31, 32)))
    assert line_of(run.state, asked) == f"On fresh seeds{where}: baseline, mean (4 evaluations)."


def test_a_session_says_whether_it_begins_or_takes_up(watched: Watched) -> None:
    assert last(watched) == "Starting phase1 small: 0 of 8 settled."
    watched.ask()
    watched.evaluate(0)
    watched.open()
    assert last(watched) == "Resuming phase1 small: 1 of 8 settled."


def test_what_says_nothing_new_has_no_line(watched: Watched) -> None:
    watched.ask()
    assert last(watched) is None
    assert line_of(watched.state, Concluded(reason="done")) is None
    assert line_of(watched.state, replace(watched.reserve(0))) is None


@pytest.mark.parametrize(("outcome", "is_said"), [(1.25, True), (Status.LOST, False)])
def test_only_what_had_finished_unheard_is_recovered(
    watched: Watched, outcome: float | Status, is_said: bool
) -> None:
    watched.ask()
    watched.evaluate(0, outcome, recovered=True)
    assert ("recovered" in (last(watched) or "")) is is_said
    assert watched.snapshot().recent[0].is_recovered is is_said
