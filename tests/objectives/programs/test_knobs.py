"""Knobs as people declare them."""

import math
from typing import Any

import pytest
from objectives.programs.knobs import DeclaredKnob, as_given, as_text, space_of
from pydantic import ValidationError


def knob(**fields: Any) -> DeclaredKnob:
    return DeclaredKnob.model_validate({"min": 0.1, "max": 1.0, "baseline": 0.5, **fields})


@pytest.mark.parametrize("kind", ["linear", "log10", "sigmoid01"])
def test_bounds_are_in_the_knobs_own_unit(kind: str) -> None:
    space = space_of({"lr": knob(kind=kind, max=0.9)})
    assert space.decode((0.0,))["lr"] == pytest.approx(0.1)
    assert space.decode((1.0,))["lr"] == pytest.approx(0.9)
    assert space.decode(space.baseline)["lr"] == pytest.approx(0.5)


def test_knobs_keep_their_order() -> None:
    assert [k.name for k in space_of({"b": knob(), "a": knob()}).knobs] == ["b", "a"]


def test_a_whole_number_has_its_step() -> None:
    space = space_of({"n": knob(kind="int", min=8, max=32, step=8, baseline=16)})
    assert [space.decode((u,))["n"] for u in (0.0, 0.3, 0.6, 1.0)] == [8, 16, 24, 32]


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"kind": "log10", "min": 0.0}, "min 0 of a log10 knob must be above 0"),
        ({"kind": "sigmoid01"}, "max 1 of a sigmoid01 knob must be between 0 and 1"),
        ({"kind": "log10", "baseline": -1.0}, "baseline -1 of a log10 knob must be above 0"),
        ({"max": math.inf}, "finite"),
        ({"min": 1.0, "max": 0.1}, "min 1 must be below max 0.1"),
        ({"step": 0}, "greater than or equal to 1"),
        ({"min": "0.1"}, "min\n.*valid number"),
        ({"low": 1}, "unknown key 'low'"),
        ({"basline": 1}, "unknown key 'basline'.* Did you mean 'baseline'"),
    ],
)
def test_what_no_knob_can_be_is_refused(fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValidationError, match=expected):
        knob(**fields)


@pytest.mark.parametrize(
    ("name", "fields", "expected"),
    [
        ("lr", {"baseline": 2.0}, r"^knobs.lr: baseline 2.0 lies outside its bounds, 0.1 to 1$"),
        ("n", {"kind": "int"}, "knobs.n: an int knob needs whole bounds"),
        ("lr", {"step": 2}, "knobs.lr: only an int knob has a step"),
        ("l r", {}, "expected names of 1 to 64 letters, .*, got 'l r'"),
        ("--lr", {}, "without dashes in front, got '--lr'"),
    ],
)
def test_the_knob_that_cannot_be_is_named(name: str, fields: dict[str, Any], expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        space_of({name: knob(**fields)})


def test_no_knobs_are_refused_with_an_example() -> None:
    with pytest.raises(ValueError, match=r"expected at least one to search, such as lr = \{"):
        space_of({})


def test_values_are_given_as_whole_numbers_and_with_the_digits_that_were_asked_for() -> None:
    space = space_of({"lr": knob(), "n": knob(kind="int", min=1, max=9, baseline=3)})
    given = {"lr": 0.1 + 0.2, "n": 7.0}
    assert as_given(space, given) == {"lr": 0.3, "n": 7}
    assert as_text(space, given) == {"lr": "0.3", "n": "7"}


def test_the_baseline_is_given_as_it_was_declared() -> None:
    space = space_of({"lr": knob(kind="log10", min=0.03, max=3, baseline=0.3)})
    assert as_text(space, space.decode(space.baseline)) == {"lr": "0.3"}


@pytest.mark.parametrize("given", [{}, {"lr": 1.0, "other": 1.0}])
def test_values_of_other_knobs_are_refused(given: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=r"expected its knobs: missing \[.*\], unknown \[.*\]"):
        as_given(space_of({"lr": knob()}), given)
