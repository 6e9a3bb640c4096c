"""From runs on disk to what they are side by side."""

import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import fmean

import pytest

from budgets.statistics.comparison import gain
from orchestrator.compare.collect import compare
from orchestrator.compare.collect import compared as of_reports
from orchestrator.compare.model import Compared
from orchestrator.records.recorded import Result
from orchestrator.report.collect import report
from orchestrator.report.model import Report


def test_each_run_says_what_it_is_and_what_it_found(
    compared: Compared, confirmed_run: Path
) -> None:
    first, second = compared.runs
    own = report(confirmed_run)
    assert (first.name, second.name) == ("confirmed", "min-sphere-s1")
    assert first.answer == own.answer
    assert first.gain == next(one.gain for one in own.comparisons if one.is_decisive)
    assert second.gain is None
    assert first.statuses == {"ok": 8}
    assert [knob.name for knob in second.knobs] == [f"x{n}" for n in range(10)]


def test_an_id_is_whole_and_short_for_a_plot_alone(confirmed_run: Path) -> None:
    own = report(confirmed_run)
    ids = [f"target-command-{'so-' * 12}long-s{number}" for number in (1, 2)]
    reports = [
        own.model_copy(update={"identity": own.identity.model_copy(update={"run_id": name})})
        for name in ids
    ]
    runs = of_reports(reports, [confirmed_run, confirmed_run]).runs
    assert [run.name for run in runs] == ids
    assert [len(run.label) for run in runs] == [28, 28]
    assert [run.label[-8:] for run in runs] == ["-long-s1", "-long-s2"]


def test_different_settings_are_facts_that_differ(compared: Compared) -> None:
    differences = {(fact.part, fact.name): fact.values for fact in compared.differences}
    assert differences["objective", "dimension"] == ("2", "10")
    assert differences["search", "tier"] == ("target", "min")
    assert differences["space", "x9"][0] is None
    assert ("objective", "seconds") not in differences
    assert not any("fingerprint" in name for _, name in differences)


def test_runs_of_different_settings_cannot_be_compared(compared: Compared) -> None:
    assert compared.scores.groups == ((0,), (1,))
    assert "dimension" in compared.scores.why_not[0]
    assert not compared.duels


def test_steps_are_gains_over_the_runs_own_baseline(compared: Compared, finished_run: Path) -> None:
    own = report(finished_run)
    assert own.noise is not None
    steps = compared.runs[1].steps
    assert [step.evaluations for step in steps] == [8, 16]
    best = [generation.best_so_far for generation in own.generations]
    expected = [(own.noise.mean - (score or 0)) / own.noise.mean for score in best]
    assert [step.best for step in steps] == pytest.approx(expected)
    assert steps[0].device_hours < steps[1].device_hours


def test_without_a_calibration_the_baseline_is_that_of_the_fresh_seeds(
    compared: Compared, confirmed_run: Path
) -> None:
    own = report(confirmed_run)
    assert own.noise is None  # its time was assumed
    arm = next(arm for arm in own.arms if arm.panel == "reference" and arm.name == "baseline")
    known = [score for score in arm.scores.values() if score is not None]
    assert compared.runs[0].baseline == pytest.approx(fmean(known))
    assert compared.runs[0].steps


def test_winners_meet_on_the_seeds_that_both_were_evaluated_on(
    tmp_path: Path, confirmed_run: Path, search_confirmed: Callable[..., Result]
) -> None:
    other = search_confirmed(tmp_path, search_seed=2, run_id="other").directory
    found = compare([confirmed_run, other])
    assert found.scores.are_comparable
    (duel,) = found.duels
    own, others = (
        {s: v for s, v in arm.scores.items() if v is not None}
        for run in (confirmed_run, other)
        for arm in report(run).arms[-99:]
        if arm.panel == "winner"
    )
    assert duel.gain == gain(own, others, duel.gain.level)
    assert duel.gain.pairs == 2
    assert {fact.name for fact in found.differences} == {"seed"}


def test_runs_of_one_name_are_told_apart(tmp_path: Path, finished_run: Path) -> None:
    shutil.copytree(finished_run, tmp_path / "copy")
    found = compare([finished_run, tmp_path / "copy"])
    assert len({run.name for run in found.runs}) == 2
    assert found.scores.are_comparable


def test_the_same_runs_compare_the_same(
    compared: Compared, confirmed_run: Path, finished_run: Path
) -> None:
    assert compare([confirmed_run, finished_run]) == compared


def test_many_runs_are_compared_with_the_first(confirmed_run: Path) -> None:
    own = report(confirmed_run)
    found = side_by_side([own] * 8, confirmed_run)
    assert [(duel.run, duel.against) for duel in found.duels] == [(0, n) for n in range(1, 8)]
    assert len(side_by_side([own] * 4, confirmed_run).duels) == 6


def side_by_side(reports: Sequence[Report], directory: Path) -> Compared:
    return of_reports(reports, [directory] * len(reports))
