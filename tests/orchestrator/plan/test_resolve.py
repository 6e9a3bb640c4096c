"""Windows as people write them, and the sizes that they ask for."""

from typing import Any

import pytest
from pydantic import ValidationError

from budgets.plan import Devices
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.plan.resolve import parse_hours, parse_window, search_plan
from tests.asking import config_for


@pytest.mark.parametrize(
    ("text", "hours"),
    [("90s", 0.025), ("45m", 0.75), ("2d", 48.0), ("1.5h", 1.5), ("0s", 0.0), (" 12h ", 12.0)],
)
def test_a_duration_has_a_number_and_a_unit(text: str, hours: float) -> None:
    assert parse_hours("--window", text) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["", "12", "h", "12 h", "-1h", "1e3s", ".5h", "1h30m", "infh"])
def test_what_is_no_duration_is_refused_with_its_flag(text: str) -> None:
    with pytest.raises(ValueError, match=r"budget\.safety_margin: expected a duration such as 45m"):
        parse_hours("budget.safety_margin", text)


@pytest.mark.parametrize("text", ["soon", "", "2030-13-01", "18:00", "9999-12-32"])
def test_what_is_neither_is_refused_with_both_ways_to_say_it(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"--window: expected a duration such as 12h, or a moment such as 20"
    ):
        parse_window(text, "30m")


def test_a_window_within_its_own_margin_is_refused() -> None:
    with pytest.raises(
        ValidationError, match=r"longer --window, or a shorter budget\.safety_margin"
    ):
        parse_window("30m", "30m")
    assert parse_window("30m", "29m").hours == 0.5


# Sizes


DEVICES = Devices(count=4, kind="cpu", name="some processor", threads=1, memory_bytes=1 << 30)


def plan_of(**fields: Any) -> Any:
    objective = registry.load(ObjectiveSpec(name="sphere"))
    values = {"phase": "phase1", "tier": "target", "objective": objective, **fields}
    return search_plan(config_for(**values), DEVICES, None)


@pytest.mark.parametrize(
    ("fields", "generations", "evaluations"),
    [
        ({"generations": 5}, 5, 40),
        ({"generations": 50}, 15, 120),
        ({"generations": 5, "max_evals": 20}, 2, 20),
        ({"seeds_per_candidate": 2}, 7, 120),
    ],
)
def test_sizes_that_are_asked_for_are_caps_within_the_tiers_evaluations(
    fields: dict[str, int], generations: int, evaluations: int
) -> None:
    plan = plan_of(**fields)
    assert (plan.resolved.generations, plan.caps.evaluations) == (generations, evaluations)


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"seeds_per_candidate": 16}, "E of 120 does not pay for .* 8 candidates on 16 seeds"),
        ({"max_evals": 7}, "--max-evals 7 does not pay for one generation of 8"),
    ],
)
def test_sizes_that_no_generation_can_pay_for_are_refused(
    fields: dict[str, int], said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        plan_of(**fields)
