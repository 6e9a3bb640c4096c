"""What speaks against a recommendation is said with it: here a control that beats the winner."""

import re

from tests.acceptance.looking import page_of, served
from tests.acceptance.product import Product

RUN = "beaten_by_a_control"


def test_best_begins_with_the_control_that_beats_its_recommendation(looker: Product) -> None:
    headline, first, *_ = looker("best", RUN).out.splitlines()
    cautions = looker.json("best", RUN)["cautions"]
    assert headline.startswith("Confirmed")
    assert first.startswith("But")
    assert "synapses off" in first
    assert first.endswith(cautions[0])
    said = looker.json("report", RUN)["answer"]["but"]
    assert " ".join(cautions).lower() == said.lower()


def test_a_winner_that_a_control_beats_is_called_worse_and_not_searched_on(looker: Product) -> None:
    found = looker.json("report", RUN)
    assert all(one["winner_gain"]["upper"] < 0 for one in found["findings"]["controls"])
    text = looker("report", RUN).out
    assert "worse than synapses off" in text
    assert "not shown to be better" not in text
    assert not {"phase1", "phase2", "--train"} & set(found["answer"]["commands"][0].split())
    assert "synapses off" in found["answer"]["next"]


def test_a_page_shows_a_verdict_in_one_colour(looker: Product) -> None:
    runs, page = served(looker, RUN)
    (listed,) = re.findall(
        rf'<tr class="mood-(\w+)(?:(?!</tr>).)*<bdi>{RUN}</bdi>', runs, re.DOTALL
    )
    moods = re.findall(r'class="(?:live |answer )mood-(\w+)', page)
    assert [listed, *moods] == ["caution"] * 3


def test_the_rows_of_the_gains_plot_can_be_read(looker: Product) -> None:
    plot = page_of(looker, RUN).partition('id="plot-confirmations"')[2].partition("</figure>")[0]
    assert "synapses off at equal seconds" in plot
    assert "\N{HORIZONTAL ELLIPSIS}" not in plot
