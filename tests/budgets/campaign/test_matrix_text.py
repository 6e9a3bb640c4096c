"""A matrix on a terminal of 110 columns."""

from typing import TYPE_CHECKING

import pytest

from budgets.campaign.matrix import Cell, Matrix
from budgets.campaign.matrix_text import WIDTH, matrix_lines
from budgets.events import Status

if TYPE_CHECKING:
    from tests.budgets.campaign.conftest import Campaigns


def sized(
    campaigns: "Campaigns", conditions: int, seeds: int, name: str = "width64_depth"
) -> Matrix:
    rows = {f"{name}{n}": (3.1385,) * seeds for n in range(conditions)}
    return campaigns.of(rows)


def test_forty_conditions_on_eight_seeds_fit(campaigns: "Campaigns") -> None:
    lines = matrix_lines(sized(campaigns, 40, 8))
    assert max(map(len, lines)) <= WIDTH
    assert len([line for line in lines if line.startswith("width64")]) == 40
    assert lines[1].split() == ["width64_depth0", *8 * ["3.1385"], "3.1385"]


@pytest.mark.parametrize("seeds", [1, 8, 12, 30, 200])
@pytest.mark.parametrize("name", ["c", "n" * 97])
def test_no_line_is_longer_than_the_terminal(campaigns: "Campaigns", seeds: int, name: str) -> None:
    matrix = sized(campaigns, 3, seeds, name)
    assert max(map(len, matrix_lines(matrix))) <= WIDTH


def test_every_kind_of_cell_is_told_apart(campaigns: "Campaigns") -> None:
    matrix = campaigns.of({"x": (3.25, Status.OOM, None)})
    cells = (
        *matrix.rows[0],
        Cell(status="running", seconds=200.0),
        Cell(status="running", settled=7, planned=16),
        Cell(status="ok", settled=16, planned=16),
    )
    seeds = tuple(range(1, 7))
    terms = matrix.terms.model_copy(update={"seeds": seeds})
    lines = matrix_lines(Matrix(terms=terms, rows=(cells,)))
    assert lines[1].split() == ["x", "3.25", "oom", ".", ">", "3m20", ">", "7/16", "ok", "3.25"]
    assert "3 of 6 settled: 2 ok, 1 oom, 2 running, 1 pending." in lines
    assert "  x, seed 2: oom: it was oom" in lines


def test_with_many_seeds_a_cell_is_one_character(campaigns: "Campaigns") -> None:
    rows = {"x": (*(1.5,) * 28, Status.NAN, None), "y": (None,) * 30}
    lines = matrix_lines(campaigns.of(rows))
    assert lines[0].split() == ["x", "+" * 28 + "N.", "1.5"]
    assert "A character for each of 30 seeds: + ok, N nan, . pending." in lines


def test_long_seeds_are_numbered_and_said_below(campaigns: "Campaigns") -> None:
    matrix = campaigns.of({"x": (1.5, 2.5)})
    terms = matrix.terms.model_copy(update={"seeds": (200399054, 4294967295)})
    lines = matrix_lines(matrix.model_copy(update={"terms": terms}))
    assert lines[0].split() == ["#1", "#2", "mean"]
    assert "Seeds: #1 200399054, #2 4294967295." in lines


def test_many_notes_are_counted(campaigns: "Campaigns") -> None:
    lines = matrix_lines(campaigns.of({"x": (Status.OOM,) * 11}))
    assert len([line for line in lines if "it was oom" in line]) == 8
    assert lines[-1] == "  and 3 more; --json has them all."


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (-1.0, "0s"),
        (59.4, "59s"),
        (59.6, "1m00"),
        (200.0, "3m20"),
        (3599.4, "59m59"),
        (7525.0, "2h05"),
    ],
)
def test_a_time_is_as_short_as_its_cell(campaigns: "Campaigns", seconds: float, said: str) -> None:
    matrix = campaigns.of({"x": (None,)})
    cell = Cell(status="running", seconds=seconds)
    lines = matrix_lines(matrix.model_copy(update={"rows": ((cell,),)}))
    assert lines[1].split() == ["x", ">", said, "-"]


def test_a_run_of_its_own_that_waits_says_how_far_it_came(campaigns: "Campaigns") -> None:
    matrix = campaigns.of({"x": (None, None)})
    row = (Cell(status="pending", settled=3, planned=16), Cell(status="pending", planned=16))
    lines = matrix_lines(matrix.model_copy(update={"rows": (row,)}))
    assert lines[1].split() == ["x", ".", "3/16", ".", "-"]


def test_a_condition_of_several_lines_is_named_on_the_first(campaigns: "Campaigns") -> None:
    lines = matrix_lines(campaigns.of({"x": (1.5,) * 200}))
    assert lines[0].split() == ["x", "+" * 97, "1.5"]
    assert [line.split() for line in lines[1:3]] == [["+" * 97], ["+" * 6]]


def test_eight_notes_are_all_of_them(campaigns: "Campaigns") -> None:
    lines = matrix_lines(campaigns.of({"x": (Status.OOM,) * 8}))
    assert lines[-1] == "  x, seed 8: oom: it was oom"


@pytest.mark.parametrize(("seed", "head"), [(99_999, "s99999"), (100_000, "#1")])
def test_a_seed_of_five_digits_is_its_own_head(
    campaigns: "Campaigns", seed: int, head: str
) -> None:
    matrix = campaigns.of({"x": (1.5,)})
    terms = matrix.terms.model_copy(update={"seeds": (seed,)})
    lines = matrix_lines(matrix.model_copy(update={"terms": terms}))
    assert lines[0].split() == [head, "mean"]
    assert any(line.startswith("Seeds: ") for line in lines) == (head == "#1")
