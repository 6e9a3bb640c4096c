"""Runs side by side: numbers computed once more, groups of scores, and the command."""

import json
from itertools import combinations
from statistics import fmean

import pytest
from scipy import stats

from budgets.events import Settled
from budgets.ledger import LEDGER, read
from budgets.state import fold
from orchestrator.look.compare import Comparison
from orchestrator.look.page import markdown
from orchestrator.look.run import Run
from tests.orchestrator.look.golden import GOLDEN, NOW, RUNS, golden


def compared(*names: str) -> Comparison:
    return Comparison(list(map(golden, names)))


def test_winner_against_winner_is_the_paired_gain_on_shared_seeds() -> None:
    run, records, gains = golden("go"), list(read(GOLDEN / "go" / LEDGER)), []
    for place, record in enumerate(records):
        end = record.event
        if isinstance(end, Settled) and end.comparison == "winner" and end.score is not None:
            gains.append(0.004 + end.seed % 5 / 1e3)  # that it is worse in another run
            worse = end.model_copy(update={"score": end.score + gains[-1]})
            records[place] = record._replace(event=worse)
    other = Run(fold(records), NOW, GOLDEN / "go")
    (duel,) = Comparison([run, other]).duels
    winner = other.state.comparisons.get("winner")
    assert winner is not None
    scale = fmean(winner.scores_by_seed(0).values())
    gain = duel["gain"]
    low, high = stats.ttest_1samp(gains, 0.0).confidence_interval(1 - 2 * gain.level)
    assert (duel["run"], duel["against"], gain.pairs) == (0, 1, len(gains))
    assert gain.mean == pytest.approx(fmean(gains) / scale)
    assert (gain.lower, gain.upper) == pytest.approx((low / scale, high / scale), rel=1e-3)


def test_only_scores_of_the_same_fingerprint_are_compared() -> None:
    own = compared("go", "go_fades", "phase2", "no_go_noise")
    assert len({run.plan.objective_fingerprint for run in own.runs}) == 3
    assert not own.is_comparable
    assert not own.duels  # they share no seeds
    assert compared("go", "smoke").is_comparable
    assert not compared("go", "smoke").why_not


def test_what_differs_is_named_with_its_values() -> None:
    go = golden("go")
    for other, said in (
        (golden("go_fades"), "objective.settings.persists"),
        (golden("go", provenance={"data": "new"}, objective_fingerprint="0"), "provenance.data"),
        (golden("go", objective_fingerprint="1"), "code"),
    ):
        (why,) = Comparison([go, other]).why_not
        assert said in why
    ((name, values),) = Comparison([go, golden("go", evaluation_seed=77)]).differences.items()
    assert (name, values[1]) == ("evaluation_seed", "77")


@pytest.mark.parametrize(("one", "other"), list(combinations(RUNS, 2))[::20])
def test_any_two_runs_can_stand_side_by_side(one: str, other: str) -> None:
    own = compared(one, other)
    sections, found = own.page().sections, own.document()
    assert json.loads(json.dumps(found))["comparable"] == own.is_comparable
    for run, row in zip(own.runs, found["runs"], strict=True):
        shown = row["findings"] or row["campaign"] or {"gains": []}
        assert [one["gain"]["mean"] for one in shown["gains"]] == [
            each.gain.mean for each in run.gains
        ]
        assert (row["baseline"] and row["baseline"]["mean"]) == (run.baseline and run.baseline.mean)
    text = markdown(sections).replace("\\", "")
    assert all(name in text and len(set(own.differences[name])) > 1 for name in own.differences)
