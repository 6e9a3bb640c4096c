"""Ranges of axes, and their ticks."""

import math
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from orchestrator.charts.chart import Axis
from orchestrator.charts.scale import Range, is_drawable, range_of, ticks

ANY = st.floats(allow_nan=True, allow_infinity=True) | st.none()


def names(low: float, high: float, most: int = 6, **axis: object) -> list[str]:
    own = Axis("x", **axis)  # type: ignore[arg-type]
    return [tick.label for tick in ticks(own, Range(low, high, own.scale == "log"), most)]


def test_ticks_are_at_ones_twos_and_fives() -> None:
    assert names(0, 10) == ["0", "2", "4", "6", "8", "10"]
    assert names(0, 26) == ["0", "5", "10", "15", "20", "25"]
    assert names(-0.3, 0.3) == ["−0.2", "0.0", "0.2"]  # noqa: RUF001


def test_labels_keep_the_digits_that_differ() -> None:
    assert names(3.1206, 3.1208, 3) == ["3.1206", "3.1207", "3.1208"]
    assert names(3, 5, 3) == ["3", "4", "5"]


def test_thousands_are_set_apart() -> None:
    assert names(0, 2160, 3) == ["0", "1,000", "2,000"]


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (0, 3e-12, ["0", "1×10⁻¹²", "2×10⁻¹²", "3×10⁻¹²"]),  # noqa: RUF001
        (0, 3e300, ["0", "1×10³⁰⁰", "2×10³⁰⁰", "3×10³⁰⁰"]),  # noqa: RUF001
        (1.2e9, 1.4e9, ["1.2×10⁹", "1.3×10⁹", "1.4×10⁹"]),  # noqa: RUF001
    ],
)
def test_numbers_out_of_reach_are_powers_of_ten(
    low: float, high: float, expected: list[str]
) -> None:
    assert names(low, high, 4) == expected


def test_large_numbers_that_hardly_differ_are_written_out() -> None:
    assert names(1e9, 1e9 + 2, 3) == ["1,000,000,000", "1,000,000,001", "1,000,000,002"]


def test_whole_numbers_have_no_ticks_between_them() -> None:
    assert names(-0.5, 0.5, is_whole=True) == ["0"]
    assert names(0, 3, 9, is_whole=True) == ["0", "1", "2", "3"]


def test_nothing_is_never_below_nothing() -> None:
    assert "−0" not in names(-1e-9, 3)  # noqa: RUF001
    assert not any(name.startswith("−0.0") and float(name[1:]) == 0 for name in names(-0.1, 0.1))  # noqa: RUF001


@pytest.mark.parametrize(
    ("low", "high", "expected"),
    [
        (1e-3, 10, ["0.001", "0.01", "0.1", "1", "10"]),
        (1e-6, 1e-2, ["10⁻⁶", "10⁻⁵", "10⁻⁴", "10⁻³", "10⁻²"]),
        (0.5, 8, ["0.5", "1", "2", "5"]),
        (1e-5, 3e-4, ["10⁻⁵", "2×10⁻⁵", "5×10⁻⁵", "10⁻⁴", "2×10⁻⁴"]),  # noqa: RUF001
        (0.021, 0.049, ["0.025", "0.030", "0.035", "0.040", "0.045"]),
    ],
)
def test_logarithmic_ticks(low: float, high: float, expected: list[str]) -> None:
    assert names(low, high, scale="log") == expected


def test_many_decades_are_thinned_evenly() -> None:
    found = [tick.value for tick in ticks(Axis("x", "log"), Range(1e-30, 1e30, is_log=True), 5)]
    orders = [round(math.log10(value)) for value in found]
    assert 3 <= len(orders) <= 6
    assert len({second - first for first, second in pairwise(orders)}) == 1


def test_ticks_that_an_axis_names_itself_are_those_within_reach() -> None:
    own = Axis("x", ticks=((1, "one"), (20, "far")))
    assert [tick.label for tick in ticks(own, Range(0, 10), 5)] == ["one"]


@given(st.floats(-1e299, 1e299), st.floats(1e-9, 1e9), st.integers(3, 12), st.booleans())
def test_ticks_are_within_the_range_few_and_told_apart(
    low: float, width: float, most: int, is_whole: bool
) -> None:
    reach = Range(low, low + max(width, abs(low) * 1e-9, 1.0 if is_whole else 0.0))
    found = ticks(Axis("x", is_whole=is_whole), reach, most)
    assert 1 <= len(found) <= most
    assert all(reach.holds(tick.value) for tick in found)
    assert len({tick.label for tick in found}) == len(found)


@given(st.floats(-290, 290), st.floats(0.01, 500), st.integers(3, 12))
def test_logarithmic_ticks_are_within_the_range_and_told_apart(
    order: float, decades: float, most: int
) -> None:
    reach = Range(10**order, 10 ** min(order + decades, 300.0), is_log=True)
    found = ticks(Axis("x", "log"), reach, most)
    assert 1 <= len(found) <= most + 1
    assert all(reach.holds(tick.value) for tick in found)
    assert len({tick.label for tick in found}) == len(found)


@given(st.lists(ANY), st.sampled_from(["linear", "log"]), ANY, ANY, st.booleans())
@example([], "log", 1e300, None, False)
@example([], "log", None, 7e-301, False)
def test_every_range_is_finite_and_has_a_width(
    values: list[float | None], scale: str, low: float | None, high: float | None, zero: bool
) -> None:
    axis = Axis("x", scale, low, high, has_zero=zero)  # type: ignore[arg-type]
    found = range_of(axis, values)
    assert math.isfinite(found.low)
    assert math.isfinite(found.high)
    assert found.low < found.high
    assert found.low > 0 or not found.is_log
    assert math.isfinite(found.share(found.high))
    assert ticks(axis, found, 5)


def test_a_range_leaves_room_around_the_marks() -> None:
    found = range_of(Axis("x"), [1.0, 2.0])
    assert found.low == pytest.approx(0.96)
    assert found.high == pytest.approx(2.04)


def test_given_limits_have_no_room_around_them() -> None:
    assert range_of(Axis("x", low=0, high=1), [0.2, 5.0]) == Range(0, 1)


def test_what_begins_at_nothing_begins_at_the_edge() -> None:
    assert range_of(Axis("x"), [0.0, 10.0]).low == 0
    assert range_of(Axis("x", has_zero=True), [5.0, 10.0]).low == 0
    assert range_of(Axis("x", has_zero=True), [-5.0, -10.0]).high == 0


@pytest.mark.parametrize("values", [[], [None], [math.nan, math.inf, -math.inf]])
def test_without_numbers_a_range_is_from_nothing_to_one(values: list[float | None]) -> None:
    found = range_of(Axis("x"), values)
    assert found.low <= 0
    assert found.high >= 1


def test_one_value_is_in_the_middle() -> None:
    assert range_of(Axis("x"), [3.12, 3.12]).share(3.12) == pytest.approx(0.5)
    assert range_of(Axis("x", "log"), [1e-4]).share(1e-4) == pytest.approx(0.5)
    assert range_of(Axis("x", is_whole=True), [7.0]) == Range(6.5, 7.5)


def test_what_has_no_logarithm_is_passed_over() -> None:
    found = range_of(Axis("x", "log"), [-1.0, 0.0, 1.0, 100.0])
    assert 0.5 < found.low <= 1
    assert found.share(0) == -math.inf
    assert not is_drawable(0.0, is_log=True)


def test_categories_have_a_place_each() -> None:
    found = range_of(Axis("x", categories=["a", "b", "c"]), [99.0])
    assert [found.share(place) for place in (-0.5, 1, 2.5)] == [0, 0.5, 1]


def test_a_limit_beyond_all_values_still_has_a_range() -> None:
    assert range_of(Axis("x", low=5), [1.0, 2.0]).low == 5
    assert range_of(Axis("x", high=-5), [1.0, 2.0]).high == -5
