"""How a campaign stands, also while others carry it out: from its ledger, or all of its runs."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from budgets.blocks import markdown
from budgets.campaign.effects import CampaignReport, campaign_report
from budgets.campaign.matrix import Matrix, matrix_of
from budgets.campaign.matrix_text import WIDTH, matrix_lines
from budgets.campaign.text import campaign_blocks, campaign_sentence
from budgets.ledger.chain import LEDGER
from budgets.plain import plain
from budgets.report.markdown import spent
from budgets.report.model import BudgetReport, budget_report
from budgets.terms import Thresholds
from budgets.words import duration
from orchestrator.campaign.runs import in_flight, matrix_of_runs
from orchestrator.records.heard import Heard, hear
from orchestrator.records.manifest import Manifest, campaign_of_runs
from orchestrator.records.recorded import find_run, first_plan, is_there
from orchestrator.records.standing import Standing, standing_of


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
        return "\n".join([*lines, *markdown(campaign_blocks(self.report)), ""])


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
    report, standing = budget_report(heard.state), standing_of(heard.state, now)
    assert report.campaign is not None, "it is a campaign's ledger"
    return Board(
        directory=directory,
        matrix=in_flight(matrix_of(heard.state), heard, standing, now),
        report=report.campaign,
        whose=standing.whose,
        sentence=report.sentence,
        objective=report.objective,
        budget=tuple(_budget(report, standing)),
    )


def _budget(report: BudgetReport, standing: Standing) -> Iterator[str]:
    yield f"Spent: {spent(report.balances)}."
    if report.decision == "continue" and report.remaining_hours:
        left = duration(3600 * report.remaining_hours)
        yield f"About {left} of evaluations are left."
    if standing.way_on:
        yield standing.way_on


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
