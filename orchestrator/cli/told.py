"""A run on a terminal: its first sections, then the verdict, what speaks against it, what next."""

from collections.abc import Callable

from budgets.plain import plain
from orchestrator.look.answer import answer
from orchestrator.look.blocks import answer_in_lines, markdown
from orchestrator.look.run import Run
from orchestrator.look.sections import summary


def tell(run: Run, as_markdown: Callable[[str], None], say: Callable[[str], None]) -> None:
    """Details first; what they come to last, where a terminal shows it."""
    as_markdown(f"# {plain(run.plan.run_id)}\n\n{markdown(summary(run))}")
    say(f"Ledger: {run.state.records} records, head {run.state.head}.")
    say("")
    for line in answer_in_lines(answer(run)):
        say(line)
