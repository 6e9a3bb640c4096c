"""Noise as calibrated, scores on fresh seeds, and the gains that follow from them."""

from pathlib import Path

from budgets.ledger.chain import LEDGER, read
from orchestrator.report.collect import report, report_of
from tests.ledgers import state_of


def test_the_noise_is_the_calibrations_with_the_interval_of_its_sd(finished_run: Path) -> None:
    noise = report(finished_run).noise
    state = state_of(finished_run)

    assert noise is not None
    assert state.plan.calibration is not None
    assert noise.scores == tuple(sample.score for sample in state.plan.calibration.samples)
    assert noise.sd is not None
    assert noise.sd_low is not None
    assert noise.sd_high is not None
    assert noise.sd_low < noise.sd < noise.sd_high


def test_an_assumed_time_says_nothing_of_noise(confirmed_run: Path) -> None:
    assert report(confirmed_run).noise is None


def test_every_arm_has_a_score_or_none_on_each_of_its_seeds(confirmed_run: Path) -> None:
    state = state_of(confirmed_run)
    found = report(confirmed_run)

    assert len(found.arms) == sum(len(panel.arms) for panel in state.panels.values())
    for own in found.arms:
        panel = state.panels[own.panel, own.number]
        (place,) = [at for at, arm in enumerate(panel.arms) if arm.name == own.name]
        assert tuple(own.scores) == panel.seeds[place]


def test_what_is_owed_has_no_score(confirmed_run: Path) -> None:
    records = read(confirmed_run / LEDGER).records
    asked = next(at for at, record in enumerate(records) if record.event.kind == "panel_asked")

    (baseline, *_) = report_of(confirmed_run, records[: asked + 1]).arms

    assert baseline.name == "baseline"
    assert set(baseline.scores.values()) == {None}


def test_one_comparison_is_what_the_verdict_rests_on(confirmed_run: Path) -> None:
    found = report(confirmed_run)

    (decisive,) = [one for one in found.comparisons if one.is_decisive]
    assert found.budget.findings is not None
    assert (decisive.name, decisive.against) == ("winner", "baseline")
    assert decisive.gain == found.budget.findings.gain
    names = [one.name for one in found.comparisons]
    assert names[:2] == ["winner", "winner, 4 x effort"]
    assert "average (picking seeds)" in names


def test_a_search_that_is_not_compared_has_no_comparisons(finished_run: Path) -> None:
    found = report(finished_run)

    assert found.comparisons == ()
    assert found.arms == ()
