"""Whether a ledger's generations were as long as what was known when they were asked allows."""

from collections.abc import Sequence

from budgets.course import next_step
from budgets.events import GenerationAsked, PanelAsked
from budgets.fold import apply, begin
from budgets.ledger.chain import Record
from budgets.proxy.certificate import fidelity_of_next, length_of_next
from budgets.state import RunState


def first_divergence(records: Sequence[Record]) -> str | None:
    """Where a generation was evaluated otherwise, or compared out of turn; None where none was."""
    state = begin(records[0])
    for record in records[1:]:
        if (why := _why_not(state, record)) is not None:
            return f"record {record.seq} at byte {record.offset}: {why}"
        apply(state, record)
    return None


def _why_not(state: RunState, record: Record) -> str | None:
    event = record.event
    if isinstance(event, GenerationAsked):
        settings, length = length_of_next(state)
        if (event.settings, event.length) != (settings, length):
            return (
                f"generation {event.generation} was evaluated with {event.settings or 'no'} "
                f"settings changed and length {event.length:g}, expected {settings or 'no'} and "
                f"{length:g}: {fidelity_of_next(state).why}"
            )
    if isinstance(event, PanelAsked) and event.panel == "proxy" and next_step(state) != "proxy":
        return f"generation {event.number} was evaluated short as well, which was not its turn"
    return None
