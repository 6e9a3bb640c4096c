"""Knobs and the unit cube: a point and its values say the same."""

import math
from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from objectives.space import DeclaredKnob, Kind, Knob, SearchSpace

units = st.floats(0.0, 1.0)

X_LIMITS: dict[Kind, float] = {"linear": 1e6, "log10": 50.0, "sigmoid01": 12.0, "tanh11": 6.0}
BASELINES: dict[Kind, float] = {"linear": 0.0, "log10": 1.0, "sigmoid01": 0.5, "tanh11": 0.0}


def knob(
    kind: Kind = "linear", low: float = -1.0, high: float = 1.0, baseline: float = 0.0
) -> Knob:
    return Knob(name="k", kind=kind, low=low, high=high, baseline=baseline)


@st.composite
def knobs_of(draw: st.DrawFn, kind: Kind) -> Knob:
    """Knobs whose bounds lie around x = 0, where each kind's baseline sits."""
    limit = X_LIMITS[kind]
    low = draw(st.floats(-limit, -limit * 1e-3))
    high = draw(st.floats(limit * 1e-3, limit))
    return knob(kind, low, high, BASELINES[kind])


@st.composite
def int_knobs(draw: st.DrawFn) -> Knob:
    low = draw(st.integers(-1000, 1000))
    high = draw(st.integers(low + 1, low + 1000))
    return knob("int", low, high, draw(st.integers(low, high)))


@pytest.mark.parametrize("kind", X_LIMITS)
@given(data=st.data(), unit=units)
def test_encode_undoes_decode(kind: Kind, data: st.DataObject, unit: float) -> None:
    k = data.draw(knobs_of(kind))
    assert k.encode(k.decode(unit)) == pytest.approx(unit, abs=1e-6)


@pytest.mark.parametrize("kind", X_LIMITS)
@given(data=st.data(), unit=units)
def test_decode_stays_between_its_ends_and_never_falls(
    kind: Kind, data: st.DataObject, unit: float
) -> None:
    k = data.draw(knobs_of(kind))
    assert k.decode(0.0) <= k.decode(unit) <= k.decode(1.0)


@given(k=int_knobs(), data=st.data())
def test_decode_undoes_encode_of_every_whole_number(k: Knob, data: st.DataObject) -> None:
    value = data.draw(st.integers(int(k.low), int(k.high)))
    assert k.decode(k.encode(value)) == value


def test_an_int_knob_gives_every_number_an_equal_share() -> None:
    k = knob("int", 2, 6, 4)
    shares = Counter(k.decode((i + 0.5) / 1000) for i in range(1000))
    assert shares == {2: 200, 3: 200, 4: 200, 5: 200, 6: 200}


@pytest.mark.parametrize("point", [(0.5, 1.01), (math.nan, 0.5)])
def test_decode_refuses_what_is_no_point_of_the_cube(point: tuple[float, ...]) -> None:
    space = SearchSpace.declared({"a": declared(), "b": declared()})
    with pytest.raises(ValueError, match="coordinate"):
        space.decode(point)


def declared(**fields: Any) -> DeclaredKnob:
    return DeclaredKnob.model_validate({"min": 0.1, "max": 1.0, "baseline": 0.5, **fields})


@pytest.mark.parametrize("kind", ["linear", "log10", "sigmoid01"])
def test_declared_bounds_are_in_the_knobs_own_unit(kind: str) -> None:
    space = SearchSpace.declared({"b": declared(kind=kind, max=0.9), "a": declared()})
    assert [k.name for k in space.knobs] == ["b", "a"]
    found = [space.decode(point)["b"] for point in ((0.0, 0.0), (1.0, 1.0), space.baseline)]
    assert found == pytest.approx([0.1, 0.9, 0.5])


def test_a_whole_number_has_its_step() -> None:
    knobs = {"n": declared(kind="int", min=8, max=32, step=8, baseline=16)}
    space = SearchSpace.declared(knobs)
    assert [space.decode((u,))["n"] for u in (0.0, 0.3, 0.6, 1.0)] == [8, 16, 24, 32]


@pytest.mark.parametrize(
    ("name", "fields", "word"),
    [
        ("lr", {"kind": "log10", "min": 0.0}, "0 to 1 is not a range of a log10 knob"),
        ("lr", {"max": math.inf}, "finite"),
        ("lr", {"min": 1.0, "max": 0.1}, "1 to 0.1 is not a range of a linear knob"),
        ("lr", {"min": "0.1"}, "min"),
        ("lr", {"basline": 1}, "basline"),
        ("lr", {"min": 1.0}, "1 to 1 is not a range"),
        ("lr", {"baseline": 2.0}, "knob lr: baseline 2.0 lies outside its bounds, 0.1 to 1"),
        ("lr", {"kind": "log10", "baseline": -1.0}, "baseline -1.0 lies outside its bounds, 0.1"),
        ("lr", {"kind": "sigmoid01", "max": 0.9, "baseline": 1.0}, "baseline 1.0 lies outside"),
        ("n", {"kind": "int"}, "0.1 must be a whole number"),
        ("lr", {"step": 2}, "knob lr"),
        ("--lr", {}, "name: expected text of the form"),
    ],
)
def test_what_no_declared_knob_can_be_is_refused(
    name: str, fields: dict[str, Any], word: str
) -> None:
    with pytest.raises(ValueError, match=word):
        SearchSpace.declared({name: declared(**fields)})


def test_values_are_given_with_the_digits_that_were_asked_for_and_within_the_range() -> None:
    lr = declared(kind="log10", min=0.1234567890123456, max=3, baseline=0.3)
    space = SearchSpace.declared({"lr": lr, "n": declared(kind="int", min=1, max=9, baseline=3)})
    assert space.rounded({"n": 7.0, "lr": 0.1 + 0.2}) == {"lr": 0.3, "n": 7}
    assert space.rounded(space.decode(space.baseline)) == {"lr": 0.3, "n": 3}
    assert space.rounded(space.decode((0.0, 0.0)))["lr"] >= 0.1234567890123456
