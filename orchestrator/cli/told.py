"""A run's budget report on a terminal, with where to look after a failure."""

from collections.abc import Callable

from orchestrator.records.recorded import Result
from orchestrator.report.failures import look_into
from orchestrator.running import artifacts


def tell(result: Result, markdown: Callable[[str], None], say: Callable[[str], None]) -> None:
    """The report. What a failure left comes before all tables where it holds the run up."""
    text, state = artifacts.markdown(result.state, result.ruling), result.state
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
