"""Follows one ledger and tells one tracker of it, record by record."""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import NamedTuple

from budgets.events import Settled
from budgets.ledger.chain import Record
from budgets.state import RunState
from orchestrator.records.standing import goes_on
from orchestrator.records.tail import Tail
from orchestrator.trackers.figures import Figures, Reading
from orchestrator.trackers.place import Place, Told
from orchestrator.trackers.pressure import SIGNALS, Signals
from orchestrator.trackers.sink import Beginning, Sink
from orchestrator.trackers.terms import config, summary

POLL_SECONDS = 0.5
BATCH = 200
"""Figures after which what was told is remembered: after a kill no more are told again."""


class _Said(NamedTuple):
    """What one record says."""

    record: int
    figures: Figures


class _Unsigned(NamedTuple):
    """An attempt whose signals were not written yet when its record was read."""

    number: int
    said: _Said
    event: Settled


@dataclass
class Follower:
    """Tells `place`'s tracker of the run that it is in. `make` imports the tracker's library."""

    place: Place
    make: Callable[[], Sink]
    environment: Mapping[str, str] = field(default_factory=lambda: os.environ)
    told: Told | None = None  # None: no record was there yet
    _sink: Sink | None = None
    _first: int = 0  # step from which on the sink wants figures
    _waiting: list[_Said] = field(default_factory=list)
    _reading: Reading = field(default_factory=Reading)
    _settled: int = 0
    _unsigned: _Unsigned | None = None
    _more: Callable[[float], bool] = lambda _: True

    def __post_init__(self) -> None:
        self._tail = Tail(self.place.run)
        self._signals = Signals(self.place.run / SIGNALS)

    def follow(self, more: Callable[[float], bool], *, watch: bool = False) -> None:
        """Tell all there is, and what comes until the run is over.

        `more` waits so many seconds and says whether to go on; to `watch` is to end, too, when
        nobody carries the run out. Raises as `Tail.news` does, and what the library raises.
        """
        self._more, seconds = more, 0.0
        while True:
            is_last = not more(seconds) or (watch and self._is_silent())
            self._look()
            state = self._tail.state
            if is_last or (state is not None and state.concluded is not None):
                return self._end()
            seconds = POLL_SECONDS

    def _is_silent(self) -> bool:
        state = self._tail.state
        return state is not None and not goes_on(state, datetime.now(UTC))

    def _look(self) -> None:
        """Take in what is new, and tell it."""
        self._take_late_signals()
        for record in self._tail.news():
            assert self._tail.state is not None
            if record.seq == 0 and self.told is not None:
                raise ValueError(f"another ledger has taken the place of {self.place.run}'s")
            self._take(self._tail.state, record)
        if (state := self._tail.state) is None:
            return
        if self.told is None:
            self.told = self._recalled(state)
        if not self._knows_all(state):
            self._tell(state)

    def _recalled(self, state: RunState) -> Told:
        told = self.place.recall(state.genesis)
        is_longer = told.records > state.records  # a ledger that was rolled back
        return Told(ledger=state.genesis) if is_longer else told

    def _knows_all(self, state: RunState) -> bool:
        """Whether even the summary was told as of the last record."""
        assert self.told is not None
        return self.told.is_ended and self.told.records == state.records

    def _take(self, state: RunState, record: Record) -> None:
        figures = self._reading.figures(state, record)
        said = None if figures is None else _Said(record.seq, figures)
        if isinstance(record.event, Settled):
            signals = self._signals.of(self._settled, record.event)
            if said is not None and signals:
                said = said._replace(figures=_with(said.figures, signals))
            elif said is not None:
                self._unsigned = _Unsigned(self._settled, said, record.event)
            self._settled += 1
        if said is not None:
            self._waiting.append(said)

    def _take_late_signals(self) -> None:
        """Those of the last attempt: its line follows its record."""
        late, self._unsigned = self._unsigned, None
        if late is not None and (signals := self._signals.of(late.number, late.event)):
            figures = late.said.figures
            self._waiting.append(
                _Said(late.said.record, Figures(figures.step, figures.at, signals))
            )

    def _tell(self, state: RunState) -> None:
        """Tell what waits, and remember it."""
        sink = self._begun(state)
        wanted = [said for said in self._waiting if said.figures.step >= self._first]
        self._waiting = []
        for begin in range(0, len(wanted), BATCH):
            some = wanted[begin : begin + BATCH]
            sink.log([said.figures for said in some])
            self._more(0.0)  # it is not the library that takes long
            last = some[-1]
            self._remember(state.genesis, last.record + 1, last.figures.step)

    def _begun(self, state: RunState) -> Sink:
        if self._sink is None:
            assert self.told is not None
            sink = self.make()
            self._first = sink.begin(self._beginning(state, self.told.step))
            self._sink = sink
        return self._sink

    def _beginning(self, state: RunState, told: int) -> Beginning:
        plan = state.planned
        return Beginning(
            run_id=plan.run_id,
            phase=plan.phase,
            tier=plan.tier or "",
            objective=str(plan.objective["name"]),
            key=state.genesis,
            config=config(plan, self.environment),
            directory=self.place.files.absolute(),
            told=told,
        )

    def _remember(self, ledger: str, records: int, step: int, *, is_ended: bool = False) -> None:
        self.told = Told(ledger=ledger, records=records, step=step, is_ended=is_ended)
        self.place.remember(self.told)

    def _end(self) -> None:
        """Tell the summary, unless it was told and nothing is new."""
        state = self._tail.state
        if state is None or self._knows_all(state):
            return
        self._take_late_signals()
        self._tell(state)
        sink, is_over = self._begun(state), state.concluded is not None
        sink.end(summary(state, self.environment), is_over=is_over)
        assert self.told is not None
        self._remember(state.genesis, state.records, self.told.step, is_ended=True)


def _with(figures: Figures, more: Mapping[str, float]) -> Figures:
    return Figures(figures.step, figures.at, {**figures.values, **more})
