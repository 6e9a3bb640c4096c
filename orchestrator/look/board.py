"""How a campaign stands, also while others carry it out: from its ledger, or all of its runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from budgets.blocks import Heading, Table
from budgets.campaign.effects import CampaignReport, campaign_report
from budgets.campaign.matrix import Cell, Matrix, matrix_of
from budgets.campaign.matrix_text import WIDTH, matrix_lines
from budgets.campaign.text import campaign_blocks, campaign_sentence
from budgets.ledger.chain import LEDGER
from budgets.ledger.storage import document, write_aside
from budgets.plain import plain
from budgets.terms import Thresholds
from budgets.words import duration, number
from orchestrator.campaign.runs import in_flight, matrix_of_runs
from orchestrator.look import text
from orchestrator.look.blocks import Figure, Section, markdown
from orchestrator.look.run import Run
from orchestrator.records.heard import Heard, hear
from orchestrator.records.manifest import (
    Manifest,
    campaign_of_runs,
    read_manifest,
    with_statuses,
    write_manifest,
)
from orchestrator.records.recorded import find_run, first_plan, is_there


@dataclass(frozen=True)
class Board:
    """A campaign as it stands."""

    directory: Path
    matrix: Matrix
    report: CampaignReport
    whose: str  # who carries it out
    sentence: str
    objective: str
    budget: tuple[str, ...] = ()  # what it has spent and what is to come, where one ledger knows

    @property
    def is_of_runs(self) -> bool:
        """Whether its cells are runs of their own, with ledgers of their own."""
        return not self.budget

    def lines(self, width: int = WIDTH) -> list[str]:
        """For a terminal of that width."""
        return [
            f"{self.directory}: {self.whose}",
            "",
            *matrix_lines(self.matrix, width),
            *self.budget,
            *([self.sentence] if self.report.is_over else []),  # else the matrix has counted
        ]

    def as_dict(self) -> dict[str, Any]:
        return {
            "directory": str(self.directory),
            "whose": self.whose,
            "sentence": self.sentence,
            "statuses": self.matrix.counts,
            "matrix": self.matrix.model_dump(mode="json"),
            "campaign": self.report.model_dump(mode="json"),
        }

    def markdown(self) -> str:
        """The result as a report of its own, of a campaign whose cells are runs."""
        lines = [f"# {plain(self.report.name)}: campaign", "", f"**{plain(self.sentence)}**", ""]
        return "\n".join([*lines, markdown(self._sections())])

    def page(self) -> str:
        """The same as a page."""
        from orchestrator.look import draw
        from orchestrator.look.page import Header, plain_page
        from orchestrator.look.plots import campaign

        about = f"a campaign of {len(self.matrix.cells)} runs on {self.objective}"
        is_found = bool(self.report.found)
        heading = "Effects found" if is_found else "No effect found"
        sections = self._sections(draw.figure("effects", campaign(self.report)))
        return plain_page(
            Header(self.report.name, about),
            heading if self.report.is_over else "In progress",
            self.sentence,
            sections,
            "good" if is_found else "open",
        )

    def _sections(self, *figures: Figure) -> tuple[Section, ...]:
        terms = self.matrix.terms
        rows = [
            [plain(condition.name), *(_cell(cell) for cell in cells)]
            for condition, cells in zip(terms.conditions, self.matrix.rows, strict=True)
        ]
        found = [block for block in campaign_blocks(self.report) if not isinstance(block, Heading)]
        columns = ["condition", *(f">seed {seed}" for seed in terms.seeds)]
        caption = "Each condition on each seed: how its run stands, and what stands for it"
        return (
            Section("effects", "Effects", [*figures, *found]),
            Section("runs", "Runs", [Table(caption, columns, rows)]),
        )


def _cell(cell: Cell) -> str:
    return cell.status if cell.score is None else f"{cell.status} {number(cell.score)}"


def find_board(run: str | None, root: Path, now: datetime) -> Board | None:
    """The campaign of that name or in that directory; None where it names a run of another kind.

    Raises ValueError where there is nothing, or what there is cannot be read.
    """
    campaign = None if run is None else campaign_of_runs(run, root)
    if campaign is not None:
        return board_of_runs(*campaign, now)
    directory = find_run(run, root)
    plan = first_plan(directory / LEDGER) if is_there(directory / LEDGER) else None
    if plan is None or plan.campaign is None:
        return None
    heard = hear(directory)
    return None if heard is None else board_of_ledger(directory, heard, now)


def board_of_ledger(directory: Path, heard: Heard, now: datetime) -> Board:
    """A campaign of trainings."""
    run = Run(heard.state, now, directory)
    assert run.campaign is not None, "it is a campaign's ledger"
    return Board(
        directory=directory,
        matrix=in_flight(matrix_of(heard.state), heard, run.standing, now),
        report=run.campaign,
        whose=run.standing.whose,
        sentence=text.sentence(run),
        objective=run.objective,
        budget=tuple(_budget(run)),
    )


def _budget(run: Run) -> Iterator[str]:
    yield f"Spent: {text.spent(run)}."
    if run.decision == "continue" and run.ledger_pace.remaining_hours:
        yield f"About {duration(3600 * run.ledger_pace.remaining_hours)} of evaluations are left."
    if run.standing.way_on:
        yield run.standing.way_on


def board_of_runs(directory: Path, manifest: Manifest, now: datetime) -> Board:
    """A campaign whose cells are runs of their own."""
    matrix, measure = matrix_of_runs(directory, manifest, now)
    report = campaign_report(
        matrix, Thresholds().alive_level, is_over=not matrix.unsettled, measure=measure
    )
    running = matrix.counts.get("running", 0)
    return Board(
        directory=directory,
        matrix=matrix,
        report=report,
        whose=f"{running} of {len(matrix.cells)} runs running" if matrix.unsettled else "finished",
        sentence=campaign_sentence(report, "runs"),
        objective=manifest.objective,
    )


def collect_runs(directory: Path, now: datetime) -> Board:
    """Write what is said of a campaign whose cells are runs, as they stand. Raises ValueError."""
    manifest = read_manifest(directory)
    if manifest is None:
        raise ValueError(f"{directory} holds no campaign: it has no manifest.json")
    board = board_of_runs(directory, manifest, now)
    write_manifest(directory, with_statuses(manifest, board.matrix))
    effects = {"sentence": board.sentence, "campaign": board.report.model_dump()}
    write_aside(directory / "effects.json", document(effects))
    return board
