"""When things happened, on a run's own clock: its sessions laid end to end, without the breaks."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import accumulate
from typing import NamedTuple

from budgets.events import (
    AttemptKey,
    GenerationAsked,
    GenerationTold,
    Opened,
    PanelAsked,
    Reserved,
    Settled,
)
from budgets.fold import fold
from budgets.ledger.chain import Record
from budgets.state import RunState


class Moment(NamedTuple):
    """When a record was made."""

    session: int
    ms: int  # since that session opened


@dataclass
class Noted:
    """The moments of a ledger's records, which a state does not keep."""

    first_at: str = ""  # by the wall's clock, as is the next
    last_at: str = ""
    opened_at: list[str] = field(default_factory=list)
    asked: dict[tuple[str | None, int], Moment] = field(default_factory=dict)
    told: dict[int, Moment] = field(default_factory=dict)
    reserved: dict[AttemptKey, Moment] = field(default_factory=dict)
    settled: dict[AttemptKey, Moment] = field(default_factory=dict)

    def note(self, record: Record) -> None:
        event = record.event
        self.first_at, self.last_at = self.first_at or record.at, record.at
        if isinstance(event, Opened):
            self.opened_at.append(record.at)
        moment = Moment(max(0, len(self.opened_at) - 1), record.elapsed_ms)
        if isinstance(event, Reserved):
            self.reserved[event.attempt_key] = moment
        elif isinstance(event, Settled):
            self.settled[event.attempt_key] = moment
        elif isinstance(event, GenerationAsked):
            self.asked[None, event.generation] = moment
        elif isinstance(event, PanelAsked):
            self.asked[event.panel, event.number] = moment
        elif isinstance(event, GenerationTold):
            self.told[event.generation] = moment


def folded(records: Iterable[Record]) -> tuple[RunState, Noted]:
    """The state after all records, and when each was made. Raises as `fold` does."""
    noted = Noted()

    def noting() -> Iterator[Record]:
        for record in records:
            noted.note(record)
            yield record

    return fold(noting()), noted


@dataclass(frozen=True)
class RunClock:
    """From a session's own clock to the run's. Whole milliseconds."""

    edges_ms: tuple[int, ...]  # where each session begins, and where the last one ends

    @property
    def end_ms(self) -> int:
        return self.edges_ms[-1]

    def at(self, moment: Moment) -> int:
        """A record that was written without a session belongs to the end of the last one."""
        session = min(moment.session, max(0, len(self.edges_ms) - 2))
        return min(self.edges_ms[session] + moment.ms, self.ended(session))

    def ended(self, session: int) -> int:
        """When that session was last heard of; with what was found of its attempts later."""
        return self.edges_ms[min(session + 1, len(self.edges_ms) - 1)]


def clock_of(state: RunState) -> RunClock:
    """The clock of the run's own sessions, not of what led to it."""
    return RunClock((0, *accumulate(state.own_sessions_ms)))
