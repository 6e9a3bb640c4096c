"""What a person reads of runs side by side."""

import re
from collections.abc import Callable
from typing import Any

import pytest

from budgets.blocks import Table
from budgets.pace import Timing
from budgets.report.model import Balance
from budgets.statistics.comparison import Gain
from orchestrator.compare.contents import lead, sections
from orchestrator.compare.model import Compared, Duel, Fact, Scores, Side
from orchestrator.report.markdown import of_sections as markdown
from orchestrator.report.page import of_sections as page

MakeSide = Callable[..., Side]
MakeGain = Callable[..., Gain]
SideBySide = Callable[..., Compared]

HOSTILE = "<script>alert(1)</script> | **x** `y` \x1b[2J\u202e"


def tables(compared: Compared, section: str) -> list[Table]:
    own = next(own for own in sections(compared) if own.name == section)
    return [block for block in own.blocks if isinstance(block, Table)]


def test_it_begins_with_whether_scores_can_be_compared(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    runs = [make_side(name) for name in "abc"]
    for groups, heading in (
        (((0, 1, 2),), "These scores can be compared"),
        (((0, 1), (2,)), "Only some of these scores can be compared"),
        (((0,), (1,), (2,)), "These scores cannot be compared"),
    ):
        found = lead(side_by_side(*runs, groups=groups))
        assert found.heading == heading
        assert (found.mood == "trouble") == (len(groups) > 1)


def test_then_who_gained_anything_the_largest_first(
    make_side: MakeSide, make_gain: MakeGain, side_by_side: SideBySide
) -> None:
    own = side_by_side(
        make_side("a", gain=make_gain(0.02)),
        make_side("b", gain=make_gain(0.005)),
        make_side("c", gain=make_gain(0.05)),
    )
    assert lead(own).sentence == (
        "More than chance, each over its own baseline on fresh seeds: c 5% better (at least 4%) "
        "and a 2% better (at least 1%)."
    )


def test_or_that_nobody_did(
    make_side: MakeSide, make_gain: MakeGain, side_by_side: SideBySide
) -> None:
    none = side_by_side(make_side("a", gain=None), make_side("b", gain=None))
    assert "nothing was compared on them yet" in lead(none).sentence
    few = side_by_side(make_side("a", gain=make_gain(0.001)), make_side("b", gain=None))
    assert lead(few).sentence == "None of these runs shows a gain on fresh seeds."


def test_it_is_plain_that_scores_do_not_compare_and_why(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    own = side_by_side(make_side("a"), make_side("b", fingerprint="g"), groups=((0,), (1,)))
    own = own.model_copy(
        update={"scores": Scores(groups=((0,), (1,)), why_not=("the data: sha256",), mind=())}
    )
    text = markdown(lead(own), sections(own))
    assert "**No.** Scores are of one measure only where" in text
    assert "- What differs: the data: sha256." in text


def test_gains_have_their_intervals_and_seeds(compared: Compared) -> None:
    table, places = tables(compared, "runs")
    first, second = table.rows
    assert places.rows[0][:2] == ["confirmed", "8 ok"]
    assert first[0] == "confirmed"
    assert str(first[5]).endswith("%")
    assert " to " in str(first[6])
    assert second[5:8] == ["-", "-", "-"]


def test_every_currency_that_counts_is_a_column(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    def balance(currency: str, spent: float, cap: float | None) -> Balance:
        return Balance(currency=currency, spent=spent, reserved=0, free=None, cap=cap)

    timing = Timing(
        estimated_hours=1, actual_hours=2, startup_hours=0, estimated_device_hours=1,
        actual_device_hours=1, accuracy=50,
    )  # fmt: skip
    own = side_by_side(
        make_side("a", balances=(balance("evaluations", 8, 16), balance("cost", 0, None))),
        make_side("b", balances=(balance("device-hours", 1.5, None),), timing=timing),
    )
    (table,) = tables(own, "cost")
    assert table.columns[1:3] == [">evaluations", ">device-hours"]
    assert table.rows[0][1:] == ["8 of 16", "-", "-", "-", "-"]
    assert table.rows[1][1:] == ["-", "1 h 30 min", "1 h 00 min", "2 h 00 min", "50%"]


def test_what_differs_is_a_row_and_what_does_not_is_said_once(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    own = side_by_side(make_side("a"), make_side("b")).model_copy(
        update={
            "facts": (
                Fact(part="objective", name="noise", values=("0.1", None)),
                Fact(part="objective", name="dimension", values=("2", "2")),
                Fact(part="space", name="x0", values=("linear", "linear")),
            )
        }
    )
    (table,) = tables(own, "differences")
    assert table.rows == [["objective", "noise", "0.1", "-"]]
    text = markdown(lead(own), sections(own))
    assert "- **objective**: dimension 2" in text
    assert "- **knob's range**: range and baseline of x0" in text


def test_knobs_have_a_value_and_a_place_of_each_run(
    make_side: MakeSide, side_by_side: SideBySide
) -> None:
    none = (
        make_side("a").knobs[0].model_copy(update={"recommended": None, "recommended_unit": None})
    )
    own = side_by_side(make_side("a"), make_side("b", knobs=(none,)))
    (table,) = tables(own, "knobs")
    assert table.rows == [["x", "0.5 (25%)"]]
    assert "Nothing is recommended by b." in markdown(lead(own), sections(own))


def test_winners_that_met_say_which_way_it_went(
    make_side: MakeSide, make_gain: MakeGain, side_by_side: SideBySide
) -> None:
    duels = tuple(Duel(run=0, against=1, gain=make_gain(mean)) for mean in (0.05, -0.05, 0.001))
    own = side_by_side(make_side("a"), make_side("b")).model_copy(update={"duels": duels})
    (table,) = tables(own, "duels")
    assert [row[-1] for row in table.rows] == [
        "above chance",
        "worse, above chance",
        "may be chance",
    ]


def test_hostile_text_stays_text(make_side: MakeSide, side_by_side: SideBySide) -> None:
    knob = make_side("a").knobs[0].model_copy(update={"name": HOSTILE})
    run = make_side(HOSTILE, directory=HOSTILE, knobs=(knob,), statuses={HOSTILE: 1})
    own = side_by_side(run, make_side("b")).model_copy(
        update={"facts": (Fact(part="objective", name=HOSTILE, values=(HOSTILE, None)),)}
    )
    for text in (page(lead(own), sections(own)), markdown(lead(own), sections(own))):
        assert not re.search(r"(?<!\\)<script", text)
        assert "\x1b" not in text
        assert "\u202e" not in text


@pytest.mark.parametrize("count", [2, 20])
def test_a_page_of_any_number_of_runs_is_one_small_file(
    count: int, make_side: MakeSide, side_by_side: SideBySide
) -> None:
    text = page(*_all(side_by_side(*(make_side(f"run {n}") for n in range(count)))))
    assert "default-src" in text
    assert "<script" not in text
    assert len(text) < 300_000


def _all(own: Compared) -> tuple[Any, Any]:
    return lead(own), sections(own)


def test_a_terminal_gets_no_plots(compared: Compared) -> None:
    text = markdown(lead(compared), sections(compared, has_plots=False))
    assert "Filled:" not in text
    assert "Filled:" in markdown(lead(compared), sections(compared))
