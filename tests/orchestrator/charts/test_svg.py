"""A plot as SVG."""

from xml.etree.ElementTree import fromstring

from orchestrator.charts.chart import Axis, Chart, Line, Plot, Points
from orchestrator.charts.svg import svg


def test_a_plot_is_well_formed_whatever_its_text_says() -> None:
    hostile = "</svg><script>alert(1)</script>\x00\u202e\ud800 & \"'"
    marks = (Line([0, 1], [1, 2], "best", hostile), Points([0], [1], "failed", tips=[hostile]))
    chart = Chart(Axis(hostile), Axis(hostile), marks, title=hostile)
    text = svg(Plot(hostile, hostile, hostile, hostile, (chart,)))
    root = fromstring(text)  # noqa: S314 - our own
    assert not [element for element in root.iter() if element.tag.endswith("script")]
    assert "<script" not in text
