"""What the arithmetic says of runs that are over, and of every moment on the way there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from budgets.effects import campaign_of
from budgets.ledger import LEDGER, read
from budgets.liveness import liveness
from budgets.pace import timing
from budgets.proxy import certificate
from budgets.rules import ruling_of
from budgets.state import RunState, apply, begin, fold
from budgets.verdict import decide, recommendation

RUNS = sorted((Path(__file__).parents[1] / "golden/runs").iterdir())


def folded(name: str) -> RunState:
    (run,) = (run for run in RUNS if run.name == name)
    return fold(read(run / LEDGER))


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_moment_of_a_run_has_its_numbers(run: Path) -> None:
    essence = json.loads((run / "essence.json").read_text())
    records = read(run / LEDGER)
    state = begin(records[0])
    for record in records[1:]:
        apply(state, record)
        ruling = ruling_of(state)
        assert (ruling.decision == "done") <= (not state.accounts.holds)
        fired = [trigger.fired() for trigger in ruling.triggers if trigger.observed is not None]
        assert all(one.decision in ("pause", "stop") for one in fired)
        assert (campaign_of(state, is_over=False) is None) == (run.name != "campaign")
        assert certificate(state) is None or run.name == "proxy_check"
        assert liveness(state) is None or run.name == "space_check"
    if (verdict := essence["verdict"]) is not None:
        point = verdict["point"]
        assert recommendation(state) == (None if point is None else tuple(point))
    if (found := timing(state)) is not None:
        assert found.is_telling == (found.actual_hours >= 1 / 60)
        assert (85 <= found.accuracy <= 115) == found.is_good


def test_before_a_verdict_the_search_recommends_what_it_stands_for() -> None:
    state = folded("smoke")
    assert state.decided is None
    assert recommendation(state) is not None


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_decision_is_what_the_records_before_it_give(run: Path) -> None:
    state = fold(read(run / LEDGER))
    recorded, state.decided = state.decided, None
    if recorded is None:
        return
    fired, decided = decide(state)
    numbers = (decided.gain, decided.lower)
    assert numbers == pytest.approx((recorded.gain, recorded.lower), rel=1e-9)
    assert replace(decided, gain=recorded.gain, lower=recorded.lower) == recorded
    assert {one.rule for one in fired} <= {one.rule for one in state.fired}
