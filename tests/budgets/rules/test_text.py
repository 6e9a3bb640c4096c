"""The table of rules as text, and that the documentation has it word for word."""

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from budgets.events import Fired, Overridden, PanelAsked, Status
from budgets.rules.table import TABLE
from budgets.rules.text import as_dict, evidence_lines, rules_table, seen, seen_table
from budgets.terms import Arm, Thresholds

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.budgets.conftest import Story

DOCUMENT = Path(__file__).parents[3] / "docs/rules.md"


def row(table: list[str], name: str) -> str:
    (found,) = (line for line in table if line.startswith(f"| {name} |"))
    return found


def test_the_documentation_has_the_table() -> None:
    assert "\n".join(rules_table(Thresholds())) in DOCUMENT.read_text(), (
        "docs/rules.md: put in the table that budgets.rules.text.rules_table gives"
    )


@pytest.mark.parametrize("name", ["edge", "far", "nan_rate_pause", "patience_improve"])
def test_the_documentation_explains_what_is_not_plain(name: str) -> None:
    assert f"`{name}`" in DOCUMENT.read_text().split("## ", 1)[1]


def test_limits_other_than_the_default_show_both() -> None:
    limits = Thresholds(crash_rate_pause=0.25, patience_generations=5)
    table = rules_table(limits)
    assert "`crash_rate_pause` 0.25 (default 0.1), `crash_count_pause` 2" in row(
        table, "crash_rate"
    )
    assert "`patience_generations` 5 (default none)" in row(table, "patience")


def test_each_rule_says_what_it_leads_to() -> None:
    table = rules_table(Thresholds())
    for name, end in (
        ("crash_rate", "| pause, can be overridden |"),
        ("budget", "| stop, no override |"),
        ("signal", "| no go |"),
        ("alive", "| finding |"),
    ):
        assert row(table, name).endswith(end)


def test_what_a_rule_sees_stands_beside_its_limit(story: "Story") -> None:
    story.score(1.0, 1.0, Status.OOM, Status.OOM)
    saw = seen(story.state)
    table = seen_table(story.state.plan.thresholds, saw)
    assert row(table, "crash_rate").endswith("| 0.5 / 0.1 | **yes** |")
    assert row(table, "sustained_nan").endswith("| 0 / 0.1 | no |")
    assert row(table, "patience").endswith("| - | no |")
    assert row(table, "storage").endswith("| - | - |")
    assert evidence_lines(saw)[0].startswith("- crash_rate: 2 of 4 evaluations")


def test_an_overridden_rule_is_shown_so(story: "Story") -> None:
    story.score(1.0, 1.0, Status.OOM, Status.OOM)
    story.say(Overridden(rule="crash_rate", generation=0, reason="known"))
    table = seen_table(story.state.plan.thresholds, seen(story.state))
    assert row(table, "crash_rate").endswith("| 0.5 / 0.1 | overridden |")


def test_a_rule_that_looks_at_several_batches_shows_the_one_that_it_fires_on(
    tell: "Callable[..., Story]",
) -> None:
    story = tell(generations=())
    story.ask()
    story.say(
        PanelAsked(panel="winner", arms=(Arm(name="average", point=(0.5, 0.5)),), seeds=((1,),))
    )
    for _ in range(story.state.plan.thresholds.attempts_per_session):
        story.evaluate(0, Status.LOST)
    saw = seen(story.state)["infrastructure"]
    assert saw.fires
    assert "candidate 0, seed 5 of generation 0 was lost" in saw.evidence


def test_the_rule_that_ended_a_search_is_still_seen(story: "Story") -> None:
    story.finish()
    fired = Fired(
        rule="flat", generation=1, decision="stop", observed=0.0, limit=0.01, evidence="flat it is"
    )
    story.say(fired)
    assert seen(story.state)["flat"].fires
    assert "- flat: flat it is" in evidence_lines(seen(story.state))


def test_what_a_go_needs_is_seen_too(tell: "Callable[..., Story]") -> None:
    saw = seen(tell(winner=8 * (0.995,)).state)
    assert (saw["signal"].fires, saw["persistence"].fires) == (True, False)
    assert saw["signal"].observed == pytest.approx(0.005)


def test_a_row_for_a_program_has_everything(story: "Story") -> None:
    story.score(1.0, 1.0, Status.OOM, Status.OOM)
    limits = Thresholds(crash_count_pause=4)
    (rule,) = (rule for rule in TABLE if rule.name == "crash_rate")
    row = as_dict(rule, limits, seen(story.state)["crash_rate"])
    assert row["limits"] == {"crash_rate_pause": 0.1, "crash_count_pause": 4}
    assert row["defaults"] == {"crash_rate_pause": 0.1, "crash_count_pause": 2}
    assert (row["seen"]["observed"], row["seen"]["fires"]) == (0.5, True)
    assert as_dict(rule, limits)["seen"] is None
