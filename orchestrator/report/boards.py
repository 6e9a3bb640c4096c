"""A campaign whose cells are runs of their own, as a page and as Markdown."""

from collections.abc import Iterator, Sequence

from budgets.blocks import Table
from budgets.campaign.matrix import Cell
from budgets.campaign.text import campaign_blocks
from budgets.plain import plain
from budgets.words import number
from orchestrator.look.board import Board
from orchestrator.report.bars import bars_of
from orchestrator.report.campaign_picture import unit_of
from orchestrator.report.contents.blocks import Block, Figure, Lead, Section, without_headings
from orchestrator.report.markdown import of_sections as as_markdown
from orchestrator.report.page import of_sections as as_page
from orchestrator.report.plots.campaigns import conditions_of, effects_of


def page(board: Board) -> str:
    """The whole document."""
    return as_page(_lead(board), sections(board))


def markdown(board: Board) -> str:
    """The same as Markdown."""
    return as_markdown(_lead(board), sections(board))


def _lead(board: Board) -> Lead:
    report = board.report
    is_found = bool(report.found) or any(
        one.difference.is_found for row in report.rows for one in row.comparisons
    )
    heading = "Effects found" if is_found else "No effect found"
    return Lead(
        name=report.name,
        about=f"a campaign of {len(board.matrix.cells)} runs on {board.objective}",
        heading=heading if report.is_over else "In progress",
        sentence=board.sentence,
        mood="good" if is_found else "open",
    )


def sections(board: Board) -> tuple[Section, ...]:
    """What it found, and every run of it."""
    return (
        Section(
            "effects",
            "Effects",
            [*_figures(board), *without_headings(campaign_blocks(board.report))],
        ),
        Section("runs", "Runs", [_runs(board)]),
    )


def _figures(board: Board) -> Iterator[Block]:
    unit = unit_of(board.objective, board.report.measure)
    yield Figure(conditions_of(board.report, unit))
    if bars_of(board.report):
        yield Figure(effects_of(board.report, unit))


def _runs(board: Board) -> Table:
    terms = board.matrix.terms
    rows = zip(terms.conditions, board.matrix.rows, strict=True)
    return Table(
        "Each condition on each seed: how its run stands, and what stands for it",
        ["condition", *(f">seed {seed}" for seed in terms.seeds)],
        [[plain(condition.name), *_cells(cells)] for condition, cells in rows],
    )


def _cells(cells: Sequence[Cell]) -> Iterator[str]:
    for cell in cells:
        yield cell.status if cell.score is None else f"{cell.status} {number(cell.score)}"
