"""What a rule says of a knob's range, in the knob's own unit."""

import pytest

from budgets.rules.apart import value_at
from objectives.space import Knob


@pytest.mark.parametrize("kind", ["linear", "log10", "sigmoid01", "tanh11"])
@pytest.mark.parametrize("unit", [0.0, 0.3, 1.0])
def test_a_value_in_a_rules_words_is_the_knobs_own(kind: str, unit: float) -> None:
    knob = Knob.model_validate(
        {"name": "k", "kind": kind, "low": -2.0, "high": 1.0, "baseline": 0.5}
    )
    assert value_at(knob.model_dump(), unit) == pytest.approx(knob.decode(unit))


@pytest.mark.parametrize("cut", [1, 2, 3])
def test_a_cut_of_whole_numbers_lies_between_two(cut: int) -> None:
    knob = Knob(name="k", kind="int", low=8, high=32, step=8, baseline=16)
    between = value_at(knob.model_dump(), cut / 4)
    assert between == (knob.decode(cut / 4 - 0.01) + knob.decode(cut / 4)) / 2
