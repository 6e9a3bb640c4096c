"""Colours that stand out from their paper, and from each other by more than their hue."""

from itertools import combinations
from typing import Literal, get_args

import pytest

from orchestrator.charts.chart import Role
from orchestrator.charts.inks import (
    DARK_PAPER,
    HEAT_STEPS,
    INKS,
    LIGHT_PAPER,
    contrast,
    heat,
    text_on,
)

LINES: list[tuple[Role, ...]] = [
    ("baseline", "best", "mean", "winner", "luck", "limit"),
    ("series1", "series2", "series3", "series4", "series5", "series6"),
]
"""Roles of lines that meet in a plot."""

POINTS: list[tuple[Role, ...]] = [
    ("candidate", "failed", "lost", "winner", "baseline"),
    ("series1", "series2", "series3", "series4", "series5"),
]

AREAS: list[tuple[Role, ...]] = [
    ("useful", "reserved", "wasted", "idle"),
    ("ok", "failed", "lost", "reserved"),
    ("series1", "series2", "series3", "series4", "series5", "series6"),
]


def test_the_contrast_of_black_and_white_is_the_largest() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_every_role_has_an_ink() -> None:
    assert set(INKS) == set(get_args(Role))


@pytest.mark.parametrize("role", get_args(Role))
def test_every_ink_stands_out_from_its_paper(role: Role) -> None:
    assert contrast(INKS[role].light, LIGHT_PAPER) >= 3
    assert contrast(INKS[role].dark, DARK_PAPER) >= 3


def differ_in_lightness(one: Role, other: Role, least: float) -> bool:
    own, others = INKS[one], INKS[other]
    return min(contrast(own.light, others.light), contrast(own.dark, others.dark)) >= least


@pytest.mark.parametrize("group", LINES)
def test_lines_that_meet_differ_by_their_dash(group: tuple[Role, ...]) -> None:
    for one, other in combinations(group, 2):
        assert INKS[one].dash != INKS[other].dash, (one, other)


@pytest.mark.parametrize("group", POINTS)
def test_points_that_meet_differ_by_their_shape(group: tuple[Role, ...]) -> None:
    for one, other in combinations(group, 2):
        assert INKS[one].shape != INKS[other].shape, (one, other)


@pytest.mark.parametrize("group", AREAS)
def test_areas_that_meet_differ_by_their_texture_or_lightness(group: tuple[Role, ...]) -> None:
    for one, other in combinations(group, 2):
        differ = INKS[one].texture != INKS[other].texture
        assert differ or differ_in_lightness(one, other, 1.4), (one, other)


@pytest.mark.parametrize("paper", ["light", "dark"])
def test_the_numbers_of_heat_cells_can_be_read(paper: Literal["light", "dark"]) -> None:
    for step in range(-HEAT_STEPS, HEAT_STEPS + 1):
        colour = heat(step, paper)
        assert contrast(text_on(colour), colour) >= 4.5, step


@pytest.mark.parametrize("paper", ["light", "dark"])
def test_heat_goes_two_ways_from_its_middle(paper: Literal["light", "dark"]) -> None:
    middle = heat(0, paper)
    for sign in (-1, 1):
        distances = [contrast(heat(sign * step, paper), middle) for step in range(HEAT_STEPS + 1)]
        assert distances == sorted(distances)
        assert distances[-1] >= 3
    assert heat(HEAT_STEPS, paper) != heat(-HEAT_STEPS, paper)
