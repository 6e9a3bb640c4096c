"""A knob's range as an axis."""

from typing import Any

import pytest

from objectives.space import Knob
from orchestrator.report.model import KnobView
from orchestrator.report.plots.scales import in_words, ticks_of


def view(knob: Knob) -> KnobView:
    own = {"low": knob.decode(0.0), "high": knob.decode(1.0), "baseline": knob.baseline}
    return KnobView(
        name=knob.name,
        kind=knob.kind,
        **own,
        step=knob.step,
        recommended=None,
        baseline_unit=knob.encode(knob.baseline),
        recommended_unit=None,
    )


CASES: dict[str, dict[str, Any]] = {
    "linear": {"kind": "linear", "low": -1.0, "high": 1.0, "baseline": 0.0},
    "far from 0": {"kind": "linear", "low": 1e6, "high": 1.001e6, "baseline": 1e6},
    "tiny": {"kind": "linear", "low": 0.0, "high": 3e-9, "baseline": 1e-9},
    "decades": {"kind": "log10", "low": -9.0, "high": 3.0, "baseline": 1.0},
    "half a decade": {"kind": "log10", "low": -2.2, "high": -1.7, "baseline": 0.01},
    "a hair": {"kind": "log10", "low": 0.01, "high": 0.02, "baseline": 1.03},
    "a share": {"kind": "sigmoid01", "low": 0.8, "high": 6.9, "baseline": 0.95},
    "a sign": {"kind": "tanh11", "low": -2.0, "high": 2.0, "baseline": 0.0},
    "two numbers": {"kind": "int", "low": 1, "high": 2, "baseline": 1},
    "steps": {"kind": "int", "low": 64, "high": 1024, "step": 64, "baseline": 512},
    "many numbers": {"kind": "int", "low": 1, "high": 1000, "baseline": 10},
}


@pytest.mark.parametrize("case", CASES)
def test_ticks_are_few_values_of_the_knob_at_their_places(case: str) -> None:
    knob = Knob(name="k", **CASES[case])
    ticks = ticks_of(view(knob))
    assert 2 <= len(ticks) <= 6
    assert [at for at, _ in ticks] == sorted(at for at, _ in ticks)
    assert len({name for _, name in ticks}) == len(ticks)
    for at, name in ticks:
        value = float(name.replace("\N{MINUS SIGN}", "-"))
        assert knob.encode(value) == pytest.approx(at, abs=2e-3)


def test_an_int_knobs_ticks_are_numbers_that_it_takes() -> None:
    knob = Knob(name="k", kind="int", low=64, high=1024, step=64, baseline=512)
    assert all(float(name) % 64 == 0 for _, name in ticks_of(view(knob)))


def test_a_range_hardly_wider_than_rounding_has_ticks_too() -> None:
    low, high = 17.663922891619002, 18.00500352961114
    knob = Knob(name="k", kind="sigmoid01", low=low, high=high, baseline=0.9999999848460338)
    assert ticks_of(view(knob))


@pytest.mark.parametrize(
    ("value", "said"),
    [(0.0, "0"), (0.02, "0.02"), (3e-4, "3e-4"), (512.0, "512"), (1.2344e-7, "1.234e-7")],
)
def test_values_are_as_short_as_they_are_exact(value: float, said: str) -> None:
    assert in_words(value) == said
