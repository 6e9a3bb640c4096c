"""Windows, sizes and seeds of a plan; and where two plans differ."""

from typing import Any

import pytest

from budgets.plan import Devices
from objectives import registry
from objectives.api import ObjectiveSpec
from orchestrator.config import Budget
from orchestrator.plan.comparisons import confirmation_seeds, evaluation_seeds
from orchestrator.plan.resolve import differing, parse_hours, search_plan, window_of
from tests.asking import config_for


@pytest.mark.parametrize(
    ("text", "hours"),
    [("90s", 0.025), ("45m", 0.75), ("2d", 48.0), ("1.5h", 1.5), ("0s", 0.0), (" 12h ", 12.0)],
)
def test_a_duration_has_a_number_and_a_unit(text: str, hours: float) -> None:
    assert parse_hours("--window", text) == pytest.approx(hours)


@pytest.mark.parametrize("text", ["", "12", "h", "-1h", "1e3s", "1h30m", "2030-13-01", "18:00"])
def test_what_is_no_window_is_refused_with_both_ways_to_say_it(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"--window: expected a duration such as 12h, or a moment such as 20"
    ):
        window_of(Budget(window=text))
    with pytest.raises(ValueError, match=r"safety_margin: expected a duration such as 45m"):
        parse_hours("budget.safety_margin", text)


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


# Seeds


@pytest.mark.parametrize("generations", [3, 10, 2000])
def test_fresh_seeds_stay_the_same_however_long_the_search_becomes(generations: int) -> None:
    plan = plan_of()
    resolved = plan.resolved.model_copy(update={"generations": generations})
    longer = plan.model_copy(update={"resolved": resolved})
    assert confirmation_seeds(longer) == confirmation_seeds(plan)
    searched = {s for g in range(generations) for s in evaluation_seeds(longer, g)}
    assert not searched & {*confirmation_seeds(longer).verdict}


# Where two plans differ


@pytest.mark.parametrize(
    ("one", "other", "said"),
    [
        ({"a": 1, "b": 2}, {"a": 1, "b": 3}, ["b: 2 -> 3"]),
        ({}, {"program_torch": "2.6"}, ["program_torch: None -> '2.6'"]),
        ({"argv": ["python", "a.py"]}, {"argv": ["python", "b.py"]}, ["argv.1: 'a.py' -> 'b.py'"]),
        ({"argv": ["a", "b"]}, {"argv": ["a"]}, ["argv: ['a', 'b'] -> ['a']"]),
    ],
)
def test_values_are_shown_where_they_differ(one: object, other: object, said: list[str]) -> None:
    assert list(differing("", one, other)) == said
