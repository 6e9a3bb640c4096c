"""What a rule says of a knob's range, in the knob's own unit."""

from typing import TYPE_CHECKING

import pytest

from budgets.rules.apart import baseline_point, value_at
from objectives.space import Knob, SearchSpace

if TYPE_CHECKING:
    from tests.budgets.conftest import MakePlan


@pytest.mark.parametrize("kind", ["linear", "log10", "sigmoid01", "tanh11"])
@pytest.mark.parametrize("unit", [0.0, 0.3, 1.0])
def test_a_value_in_a_rules_words_is_the_knobs_own(kind: str, unit: float) -> None:
    knob = Knob.model_validate(
        {"name": "k", "kind": kind, "low": -2.0, "high": 1.0, "baseline": 0.5}
    )
    assert value_at(knob.model_dump(), unit) == pytest.approx(knob.decode(unit))


def test_the_baseline_lies_where_the_space_has_it(make_plan: "MakePlan") -> None:
    kinds = ("linear", "log10", "sigmoid01", "tanh11")
    knobs = [{"name": k, "kind": k, "low": -2.0, "high": 1.0, "baseline": 0.3} for k in kinds]
    knobs.append({"name": "n", "kind": "int", "low": 8, "high": 32, "step": 8, "baseline": 16})
    space = SearchSpace.model_validate({"knobs": knobs})
    assert baseline_point(make_plan(space=space.model_dump())) == space.baseline


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_of_whole_numbers_lies_between_two(cut: int) -> None:
    knob = Knob(name="k", kind="int", low=8, high=32, step=8, baseline=16)
    between = value_at(knob.model_dump(), cut / 4)
    assert between == (knob.decode(cut / 4 - 0.01) + knob.decode(cut / 4)) / 2
