"""A run's budget report on a terminal: details first, what they come to last."""

from collections.abc import Callable, Iterator

from budgets.report.markdown import to_markdown
from budgets.report.model import BudgetReport, budget_report
from budgets.words import sentence_case
from orchestrator.records.recorded import Result
from orchestrator.report.answer import answer
from orchestrator.report.failures import look_into
from orchestrator.running import artifacts


def tell(result: Result, markdown: Callable[[str], None], say: Callable[[str], None]) -> None:
    """The report. What a failure left comes before all tables where it holds the run up.

    Of a search that is not going on the verdict, what speaks against it and the next step come
    last, where a terminal shows them.
    """
    state, report = result.state, budget_report(result.state, result.ruling)
    is_last = state.plan.search is not None and result.ruling.decision != "continue"
    if is_last and report.findings is not None:  # said in the last lines, with its command
        findings = report.findings.model_copy(update={"advice": None})
        report = report.model_copy(update={"findings": findings})
    text = to_markdown(report, artifacts.recommended_knobs(state))
    is_any_healthy = any(end.score is not None for end in state.ends())
    is_held_up = result.ruling.decision == "pause" or not is_any_healthy
    look = look_into(result.directory, state, is_held_up=is_held_up)
    if look and is_held_up:
        title, sentence, text = text.split("\n\n", 2)
        markdown(f"{title}\n\n{sentence}")
        for line in ("", *look, ""):
            say(line)
        look = ()
    markdown(text)
    for line in look:
        say(line)
    if is_last:
        for line in ("", *conclusion(result, report)):
            say(line)


def conclusion(result: Result, report: BudgetReport) -> Iterator[str]:
    """The verdict or how it stands, what speaks against that, and the next step: a line each."""
    own = answer(result.state, report, result.directory)
    yield f"{own.title}: {own.sentence}"
    if own.but:
        yield f"But: {sentence_case(own.but)}"
    yield f"Next: {own.next}"
    yield from (f"  {line}" for line in own.commands[:1])
    if own.commands[1:]:
        yield own.otherwise or "Or:"
        yield from (f"  {line}" for line in own.commands[1:])
