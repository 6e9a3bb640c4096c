"""The style sheet: it says how all that is drawn looks, and brings nothing from elsewhere."""

import re
from typing import get_args

import pytest

from orchestrator.charts.chart import Axis, Chart, Mark, Plot, Role
from orchestrator.charts.inks import contrast
from orchestrator.charts.svg import STYLE, svg

SCREEN = "@media screen and (prefers-color-scheme:dark){"


def test_every_role_has_a_colour_on_light_and_on_dark_paper() -> None:
    light, dark = STYLE.split(SCREEN)
    for role in get_args(Role):
        assert f".role-{role}{{--ink:#" in light
        assert f".role-{role}{{--ink:#" in dark


def test_what_is_printed_is_light() -> None:
    assert STYLE.count("prefers-color-scheme") == 1
    assert SCREEN in STYLE


def test_braces_match_and_nothing_comes_from_elsewhere() -> None:
    assert STYLE.count("{") == STYLE.count("}")
    assert not re.search(r"@import|url\(|expression|<|\\", STYLE)


def test_every_rule_is_for_plots_only() -> None:
    rules = re.sub(r"@media[^{]*\{", "", STYLE)
    for selectors in re.findall(r"([^{}]+)\{", rules):
        assert all(own.strip().startswith(".plot") for own in selectors.split(","))


def test_every_class_that_is_drawn_has_looks(every: Mark) -> None:
    axis = Axis("x")
    text = svg(Plot("p", "p", "", "", (Chart(axis, axis, (every,), title="t"),)))
    for name in set(" ".join(re.findall(r'class="([^"]+)"', text)).split()):
        assert re.search(rf"\.{re.escape(name)}[.{{, ]", STYLE), name


@pytest.mark.parametrize("role", get_args(Role))
def test_a_rule_of_a_role_wins_over_the_plots_own(role: Role) -> None:
    assert f".plot .role-{role}{{" in STYLE


@pytest.mark.parametrize("name", ["text", "faint"])
def test_text_can_be_read_on_light_and_on_dark_paper(name: str) -> None:
    papers, colours = (re.findall(rf"--{own}:(#\w+)", STYLE) for own in ("paper", name))
    assert len(papers) == len(colours) == 2
    for paper, colour in zip(papers, colours, strict=True):
        assert contrast(paper, colour) >= 4.5
