"""What a person asks first of a run, answered in a sentence or two each."""

from budgets.report import BudgetReport
from budgets.state import RunState
from orchestrator.report.model import Answer


def answer(state: RunState, budget: BudgetReport) -> Answer:
    """The answers as far as the run knows them."""
    grade = None if state.decided is None else state.decided.grade
    mood = {"go_persists": "good", "go": "good", "no_go": "bad"}.get(grade or "")
    if mood is None:
        mood = "trouble" if budget.decision in ("pause", "stop") else "open"
    return Answer(
        found=budget.sentence,
        sure="" if state.decided is None else state.decided.evidence,
        cost=f"{state.accounts.device_ms / 3_600_000:.3g} device-hours",
        next="" if budget.findings is None else budget.findings.advice or "",
        mood=mood,
    )
