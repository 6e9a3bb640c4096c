"""The picture of a campaign. What it looks like, people have looked at; here is what can break."""

import sys
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from budgets.campaign.effects import CampaignReport, campaign_report
from budgets.campaign.matrix import Cell, Matrix
from budgets.terms import CampaignTerms, Condition, Factor
from orchestrator.charts.figure import figure_of
from orchestrator.charts.forms import FORMS, MISSING, Form
from orchestrator.report import campaign_picture as picture
from orchestrator.report.plots.campaigns import both_of

PNG = b"\x89PNG\r\n\x1a\n"


def report_of(
    names: Sequence[str],
    seeds: int = 3,
    levels: Sequence[str] = (),
    *,
    control: bool = True,
    scored: bool = True,
) -> CampaignReport:
    """Conditions, of one factor if there are levels, the last one a control."""
    conditions = tuple(
        Condition(
            name=name,
            settings={},
            knobs={},
            control=control and number == len(names) - 1,
            levels={"width": levels[number]} if number < len(levels) else {},
        )
        for number, name in enumerate(names)
    )

    def cell(number: int, seed: int) -> Cell:
        if not scored:
            return Cell(status="pending")
        return Cell(status="ok", score=1.0 + 0.01 * number + 0.003 * ((seed * 7 + number) % 5))

    terms = CampaignTerms(
        name="drawn",
        conditions=conditions,
        seeds=tuple(range(1, seeds + 1)),
        factors=(Factor(name="width", levels=tuple(levels)),) if levels else (),
    )
    rows = tuple(tuple(cell(n, s) for s in terms.seeds) for n in range(len(names)))
    return campaign_report(Matrix(terms=terms, rows=rows), 0.05, is_over=scored)


def numbered(count: int, begin: str = "condition") -> list[str]:
    return [f"{begin}{number}" for number in range(count)]


LONG = "a-condition-with-a-name-of-a-hundred-letters-" + "x" * 50

CASES = {
    "two": report_of(numbered(2)),
    "forty": report_of(numbered(40)),
    "long names": report_of(numbered(12, LONG)),
    "one seed": report_of(numbered(5), seeds=1),
    "no score yet": report_of(numbered(5), scored=False),
    "no control": report_of(numbered(3), control=False),
    "a factor": report_of(numbered(4), levels=("32", "64", "96")),
    "what looks like mathematics": report_of(["$x^2$", "a_b", "50%"]),
}


@pytest.mark.needs("matplotlib")
def test_a_picture_is_written_as_its_name_says(tmp_path: Path) -> None:
    picture.draw(CASES["two"], tmp_path / "effects.png", "score")
    assert (tmp_path / "effects.png").read_bytes().startswith(PNG)


def drawn(report: CampaignReport) -> Any:
    """The figure, laid out as it is saved."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    figure = figure_of(both_of(report, "held-out bits per byte"))
    FigureCanvasAgg(figure).draw()
    return figure


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("case", CASES)
def test_no_name_covers_another_or_leaves_the_picture(case: str) -> None:
    figure = drawn(CASES[case])
    whole = figure.bbox
    for axis in figure.axes:
        boxes = [label.get_window_extent() for label in axis.get_yticklabels()]
        for box, following in pairwise(boxes):
            assert box.y0 >= following.y1
        texts = [axis.xaxis.label, axis.title, *axis.get_yticklabels()]
        texts += [text for legend in figure.legends for text in legend.get_texts()]
        for box in (text.get_window_extent() for text in texts if text.get_text()):
            assert whole.x0 - 1 <= box.x0
            assert box.x1 <= whole.x1 + 1
            assert whole.y0 - 1 <= box.y0
            assert box.y1 <= whole.y1 + 1


@pytest.mark.needs("matplotlib")
def test_long_names_are_told_apart_by_their_ends() -> None:
    names = drawn(CASES["long names"]).axes[0].get_yticklabels()
    assert len({label.get_text() for label in names}) == 12


@pytest.mark.needs("matplotlib")
def test_an_svg_names_conditions_effects_and_units() -> None:
    text = picture.picture(CASES["a factor"], "held-out bits per byte", "svg").decode()
    for said in ("condition0", "width: 64 against 32", "held-out bits per byte", "lower is better"):
        assert said in text


@pytest.mark.needs("matplotlib")
@pytest.mark.parametrize("form", FORMS)
def test_the_same_campaign_is_the_same_picture(form: Form) -> None:
    first, second = (picture.picture(CASES["two"], "score", form) for _ in range(2))
    assert first == second


def test_another_ending_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"ends with \.png, \.pdf, \.svg, got .*effects\.jpg"):
        picture.draw(CASES["two"], tmp_path / "effects.jpg", "score")


def test_more_conditions_than_a_viewer_opens_are_said_to_be_more() -> None:
    plot = both_of(report_of(numbered(150)), "score")
    assert "150 conditions (120 shown)" in plot.title
    assert len(plot.charts[0].y.categories) == 120


def test_without_matplotlib_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(ImportError):
        picture.picture(CASES["two"], "score")
    assert "pip install" in MISSING
