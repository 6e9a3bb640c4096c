"""Who is compared with which control."""

from budgets.effects import controls_of
from budgets.plan import Condition


def condition(name: str, **levels: str) -> Condition:
    control = name.endswith("_base")
    return Condition(name=name, settings={}, knobs={}, levels=levels, control=control)


def names(conditions: list[Condition]) -> dict[str, list[str]]:
    return {
        own.name: [conditions[c].name for c in controls_of(number, conditions)]
        for number, own in enumerate(conditions)
    }


def test_a_control_without_levels_is_everybodys() -> None:
    own = [condition("x"), condition("y", A="a"), condition("default_base")]
    assert names(own) == {"x": ["default_base"], "y": ["default_base"], "default_base": []}


def test_a_control_of_a_level_is_that_levels_alone() -> None:
    own = [
        condition("1B_rank4", model="1B", rank="4"),
        condition("3B_rank4", model="3B", rank="4"),
        condition("1B_base", model="1B"),
        condition("3B_base", model="3B"),
    ]
    assert names(own) == {
        "1B_rank4": ["1B_base"],
        "3B_rank4": ["3B_base"],
        "1B_base": [],
        "3B_base": [],
    }


def test_a_control_that_is_a_cell_of_its_own_is_everybodys() -> None:
    own = [condition("a0_base", A="a0"), condition("a1", A="a1")]
    assert names(own) == {"a0_base": [], "a1": ["a0_base"]}


def test_controls_are_compared_with_those_before_them() -> None:
    own = [condition("default_base"), condition("x"), condition("off_base")]
    assert names(own)["off_base"] == ["default_base"]
    assert names(own)["default_base"] == []


def test_a_condition_at_exactly_the_controls_levels_is_compared_with_it() -> None:
    own = [condition("1B", model="1B"), condition("1B_base", model="1B")]
    assert names(own)["1B"] == ["1B_base"]
