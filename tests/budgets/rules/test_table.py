"""The table: complete, and what the rules themselves read by."""

from typing import get_args

import pytest

from budgets.rules.table import FINDINGS, GO, HOLDING_UP, TABLE, Rule
from budgets.rules.triggers import RULES
from budgets.terms import Thresholds
from budgets.verdict import conditions


def test_every_threshold_belongs_to_a_rule() -> None:
    named = {name for rule in TABLE for name in rule.fields}
    assert named == set(Thresholds.model_fields)


def test_every_rule_is_named_once_and_says_what_it_looks_at() -> None:
    names = [rule.name for rule in TABLE]
    assert len(set(names)) == len(names)
    assert all(rule.about for rule in TABLE)


def test_what_a_person_can_override_holds_a_run_up() -> None:
    assert tuple(rule.name for rule in HOLDING_UP) == RULES
    assert {rule.name for rule in TABLE if rule.overridable} == {
        "go",
        "unproven_knobs",
        "crash_rate",
        "sustained_nan",
        "runaway_time",
        "patience",
    }
    assert {rule.decision for rule in HOLDING_UP} == {"pause", "stop"}


def test_the_conditions_of_a_go_are_those_that_the_decision_judges() -> None:
    judged = {*get_args(conditions.Rule), "flat", "seed_luck"}
    assert {rule.name for rule in GO} == judged


def test_a_rule_shows_the_limits_of_the_plan() -> None:
    rule = Rule("slow", "time", "pause", ("time_drift_pause", "patience_generations"))
    limits = rule.limits(Thresholds(time_drift_pause=3.0))
    assert limits == {"time_drift_pause": 3.0, "patience_generations": None}


@pytest.mark.parametrize("rule", [*GO, *FINDINGS], ids=lambda rule: rule.name)
def test_only_what_holds_a_run_up_has_readings_of_it(rule: Rule) -> None:
    with pytest.raises(AssertionError, match="holds no run up"):
        rule.reads(0, 1.0, 1.0, "why", fires=True)
