"""Back-pressure of a run: the controller, fed by its records, as the run's pace.

All it decides is when evaluations start. It knows nothing but the ledger and its terms: a run that
is taken up goes on with what it had learned, and `backpressure.jsonl` can be written again.
"""

import os
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path

import orjson

from budgets.events import Event, Settled
from budgets.fold import apply, begin
from budgets.ledger.chain import Record
from budgets.ledger.storage import DISK, write_aside
from budgets.state import RunState
from budgets.words import figure
from orchestrator.capacity.control import Pressure, begun
from orchestrator.capacity.gauge import Gauge, row
from orchestrator.capacity.pace import Pace
from orchestrator.capacity.terms import Backpressure

SIGNALS = "backpressure.jsonl"


class Controlled(Pace):
    """A pace that admits as many evaluations as the controller allows at the moment.

    `replay` the records there are, then `follow` every one that is written.
    """

    def __init__(
        self, terms: Backpressure, devices: int, directory: Path, say: Callable[[str], None]
    ) -> None:
        self._control = begun(terms, devices)
        self._gauge = Gauge()
        self._path = directory / SIGNALS
        self._say = say

    @property
    def pressure(self) -> Pressure:
        return self._control.pressure

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self.pressure.allowed

    def replay(self, records: Iterable[Record]) -> None:
        """Take in a ledger from its first record on, and write its signals again."""
        lines, state = list[bytes](), None
        for record in records:
            if state is None:
                state = begin(record)
                continue
            apply(state, record)
            lines += self._taken_in(state, record.event)
        write_aside(self._path, b"".join(lines))
        self._say(f"Back-pressure: {self.pressure.allowed} at once to begin with.")

    def follow(self, state: RunState, event: Event) -> None:
        """Take in a record that was just written; its signals go to the file, a change is said."""
        lines = self._taken_in(state, event)
        if not lines:
            return
        with suppress(OSError):  # a full disk stops the run by itself, and the next session mends
            handle = DISK.open(self._path)
            try:
                DISK.write(handle, b"".join(lines))
            finally:
                os.close(handle)
        if self.pressure.action != "hold":
            self._say(in_words(self.pressure))

    def _taken_in(self, state: RunState, event: Event) -> list[bytes]:
        seen = self._gauge.follow(state, event)
        if seen is not None:
            self._control = self._control.advanced(seen)
        if not isinstance(event, Settled):
            return []
        said = {**self._signals(is_new=seen is not None), "bp_allowed": self.pressure.allowed}
        return [orjson.dumps(row(event, seen, said), option=orjson.OPT_APPEND_NEWLINE)]

    def _signals(self, *, is_new: bool) -> dict[str, str | float | None]:
        """Those of now; where nothing was decided, that is a hold."""
        signals = self.pressure.signals()
        return signals if is_new else {**signals, "bp_action": "hold"}


def in_words(pressure: Pressure) -> str:
    """A change, for people."""
    why: str = pressure.regime or "nothing is known yet"
    if pressure.action == "throttle" and pressure.regime != "retrograde":
        why = f"{why}: are fewer as quick?"
    peak = "" if pressure.p_star is None else f"; optimum {pressure.p_star:.3g}"
    rate = "" if pressure.throughput is None else f"; {figure(pressure.throughput)} an hour before"
    return f"Back-pressure: {pressure.action} to {pressure.allowed} at once ({why}{peak}{rate})."
