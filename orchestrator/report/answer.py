"""A run's state as the four answers that a person wants first."""

from datetime import datetime
from pathlib import Path

from budgets.report.model import BudgetReport
from budgets.state import RunState
from orchestrator.report.answers import campaigns, finished, others, standing
from orchestrator.report.answers.asked import Asked
from orchestrator.report.answers.verdict import decided
from orchestrator.report.model import Answer


def answer(
    state: RunState,
    report: BudgetReport,
    directory: Path,
    last: datetime | None = None,
    *,
    is_interrupted: bool = False,
) -> Answer:
    """Did it find something, how sure is that, what did it cost, what to do next.

    `report` is the state's, `directory` the run's: commands name it. As of the last record, which
    is from `last`: no process and no clock is asked. Whoever has asked them says that it
    `is_interrupted`.
    """
    asked = Asked(state, report, directory, last)
    if state.decided is not None and report.findings is not None:
        return decided(asked, report.findings)
    if not state.opened:
        return standing.planned(asked)
    if report.decision == "continue":
        return standing.interrupted(asked) if is_interrupted else standing.running(asked)
    if report.decision in ("pause", "stop"):
        return standing.held_up(asked)
    return _over(asked)


def _over(asked: Asked) -> Answer:
    if asked.report.campaign is not None:
        return campaigns.compared(asked, asked.report.campaign)
    if asked.state.plan.phase == "calibration":
        return others.calibrated(asked)
    if asked.state.plan.phase == "check":
        return others.checked(asked)
    return finished.over(asked)
