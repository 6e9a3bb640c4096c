"""What the arithmetic says of runs that are over, and of every moment on the way there."""

import json
from pathlib import Path

import pytest

from budgets.ledger import LEDGER, read
from budgets.measurements import campaign_report, certificate, liveness
from budgets.rules import ruling_of
from budgets.schedule import pace
from budgets.state import apply, fold
from budgets.verdict import decide, findings, recommendation

RUNS = sorted((Path(__file__).parents[1] / "golden/runs").iterdir())


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_every_moment_of_a_run_has_its_numbers(run: Path) -> None:
    essence = json.loads((run / "essence.json").read_text())
    records = read(run / LEDGER)
    state = apply(None, records[0])
    for record in records[1:]:
        apply(state, record)
        ruling = ruling_of(state)
        assert (ruling.decision == "done") <= (not state.accounts.holds)
        assert all(one.decision == ruling.decision for one in ruling.triggers)
        if run.name == "campaign":
            campaign_report(state, is_over=False)
        assert certificate(state) is None or run.name == "proxy_check"
        assert liveness(state) is None or run.name == "space_check"
        assert 0 <= pace(state).progress <= 1
        assert (findings(state) is None) == (state.plan.confirmation is None)
    if (verdict := essence["verdict"]) is not None:
        point = verdict["point"]
        assert recommendation(state) == (None if point is None else tuple(point))
    found = pace(state)
    assert found.elapsed_hours < 1 / 6
    assert not found.is_out_of_date
    assert state.decided or not state.completed or recommendation(state)


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_decision_is_what_the_records_before_it_give(run: Path) -> None:
    state = fold(read(run / LEDGER))
    recorded, state.decided = state.decided, None
    if recorded is None:
        return
    fired, decided = decide(state)
    numbers = (decided.gain, decided.lower)
    assert numbers == pytest.approx((recorded.gain, recorded.lower), rel=1e-9)
    assert decided.model_copy(update={"gain": recorded.gain, "lower": recorded.lower}) == recorded
    assert {one.rule for one in fired} <= {one.rule for one in state.fired}
