"""What each section says of a run."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from budgets.blocks import Table, Text
from budgets.events import Status
from orchestrator.report.collect import report
from orchestrator.report.contents.blocks import Block, Commands, Figure, Log, Ruler
from orchestrator.report.contents.sections import SECTIONS, sections
from orchestrator.report.model import FailureGroup, Report
from orchestrator.report.plots import PLOTS, plots
from tests.budgets.conftest import Story, small_plan
from tests.orchestrator.report.conftest import KNOBS, judged, reported


@pytest.fixture(scope="module")
def confirmed_report(confirmed_run: Path) -> Report:
    return report(confirmed_run)


def blocks(own: Report, name: str) -> Sequence[Block]:
    return next(s.blocks for s in sections(own, plots(own)) if s.name == name)


def table(own: Report, name: str, caption: str) -> Table:
    found = [b for b in blocks(own, name) if isinstance(b, Table) and caption in b.caption]
    assert len(found) == 1, caption
    return found[0]


def text(own: Report, name: str) -> str:
    return " ".join(block.text for block in blocks(own, name) if isinstance(block, Text))


def test_every_plot_has_its_place() -> None:
    assert {kind.section for kind in PLOTS.values()} <= {name for name, _, _ in SECTIONS}


def test_every_plot_that_a_run_has_is_shown_once(confirmed_report: Report) -> None:
    own = plots(confirmed_report)
    shown = [
        block.plot.name
        for section in sections(confirmed_report, own)
        for block in section.blocks
        if isinstance(block, Figure)
    ]
    assert sorted(shown) == sorted(plot.name for plot in own)


def test_scores_on_fresh_seeds_are_a_row_a_seed(confirmed_report: Report) -> None:
    found = table(confirmed_report, "verdict", "fresh seeds")
    by_arm = {(a.name, s): v for a in confirmed_report.arms for s, v in a.scores.items()}
    assert len(found.rows) == len({seed for _, seed in by_arm})
    titles = [column.removeprefix(">") for column in found.columns[2:]]
    for row in found.rows:
        for name, cell in zip(titles, row[2:], strict=True):
            known = by_arm.get((name, int(str(row[0]))))
            assert cell == ("" if known is None else f"{known:.5g}")


def test_seeds_with_more_training_are_called_what_the_rung_is() -> None:
    own = reported(judged(winner=8 * (0.98,), rung=((1.0, 1.0), (0.98, 0.98))))
    found = table(own, "verdict", "fresh seeds")
    assert [row[1] for row in found.rows][-2:] == ["4 x FLOPs"] * 2
    drawn = next(plot for plot in plots(own) if plot.name == "pairs")
    assert [chart.title for chart in drawn.charts][-1] == "With 4 x FLOPs"


def test_device_time_adds_up_in_the_last_row(confirmed_report: Report) -> None:
    found = table(confirmed_report, "budget", "device-seconds")
    *parts, whole = [[float(str(c).replace("-", "0")) for c in row[2:]] for row in found.rows]
    for place, value in enumerate(whole):
        assert sum(part[place] for part in parts) == pytest.approx(value, rel=0.02, abs=0.002)


def test_a_knob_is_shown_on_its_ruler(confirmed_report: Report) -> None:
    found = table(confirmed_report, "knobs", "baseline and recommendation")
    rulers = [row[-1] for row in found.rows]
    assert rulers == [Ruler(k.baseline_unit, k.recommended_unit) for k in confirmed_report.knobs]


def test_after_a_no_go_no_knob_is_recommended() -> None:
    own = reported(judged(winner=8 * (1.01,)))
    assert "Nothing is recommended" in text(own, "knobs")
    assert table(own, "knobs", "ranges and baseline")


def test_the_slowest_come_first_and_the_failed_by_themselves(run: Path) -> None:
    own = report(run)
    found = table(own, "evaluations", "Every evaluation")
    assert len(found.rows) == 16
    many = own.model_copy(update={"evaluations": 2 * own.evaluations})
    slowest = table(many, "evaluations", "slowest")
    longest = max(e.seconds for e in own.evaluations if e.status is Status.OK)
    assert slowest.rows[0][4] == slowest.rows[1][4]
    assert len(slowest.rows) == 10
    assert longest > 0
    failed = sum(e.status is not Status.OK for e in many.evaluations)
    assert len(table(many, "evaluations", "gave no score").rows) == failed


def test_failures_are_shown_with_the_last_lines_of_a_log() -> None:
    own = reported(judged(winner=8 * (1.01,)))
    group = FailureGroup(
        whose="configuration", what="an exception", attempts=2, final=2,
        places=("eval/gen_0000/cand_0001/seed_5",), example="ValueError: no",
        log=("Traceback", "ValueError: no"), log_from="eval/gen_0000/cand_0001/seed_6/stderr.txt",
    )  # fmt: skip
    rude = own.model_copy(update={"failures": (group, group.model_copy(update={"log": ()}))})
    found = blocks(rude, "failures")
    (log,) = [block for block in found if isinstance(block, Log)]
    assert log.where == "eval/gen_0000/cand_0001/seed_6/stderr.txt"
    assert log.lines == group.log
    assert "None of them left a log." in text(rude, "failures")


def test_what_has_not_failed_says_so(confirmed_report: Report) -> None:
    assert text(confirmed_report, "failures") == "Nothing has failed."


def test_rules_that_fired_and_what_people_decided_are_listed() -> None:
    story = Story(small_plan(space={"knobs": KNOBS}))
    own = reported(story)
    assert "No rule fired" in text(own, "rules")
    budget = own.budget.model_copy(update={"overrides": ("crash_rate, generation 0: known",)})
    said = blocks(own.model_copy(update={"budget": budget}), "rules")
    assert any("crash_rate, generation 0: known" in str(block) for block in said)


def test_the_way_to_get_it_again_is_there(confirmed_report: Report) -> None:
    (found,) = [b for b in blocks(confirmed_report, "provenance") if isinstance(b, Commands)]
    assert any("verify" in line for line in found.lines)
    assert confirmed_report.identity.head in text(confirmed_report, "ledger")
