"""The pace of every run of a session, from what a person said about it."""

from collections.abc import Callable

from budgets.ledger import read
from orchestrator.capacity import Controlled, HostSlots, Pace, Pacing, Together
from orchestrator.execution.api import Slots
from orchestrator.running.run import Run

MEASURES = ("calibration",)
"""Phases whose evaluations are timed: back-pressure would change what they measure."""


class Paces:
    """Makes each run's pace. What all of them share is held until `close`."""

    def __init__(self, pacing: Pacing, say: Callable[[str], None]) -> None:
        self._pacing = pacing
        self._say = say
        self._slots: HostSlots | None = None

    def of(self, run: Run, slots: Slots, own: Pace | None = None) -> Pace:
        """The pace of an open run on these devices: its `own`, beside what was said."""
        paces = [] if own is None else [own]
        if self._pacing.backpressure.enabled and run.state.plan.phase not in MEASURES:
            paces.append(self._controlled(run, slots))
        self.share()
        if self._slots is not None:
            paces.append(self._slots)  # asked last: it takes a slot
        return Together(paces)

    def share(self) -> None:
        """Share slots, if that was asked for. Raises ValueError where none can be."""
        limit = self._pacing.max_concurrent
        if self._slots is None and limit is not None:
            self._slots = HostSlots(limit, self._say, self._pacing.slots_dir)

    def _controlled(self, run: Run, slots: Slots) -> Pace:
        terms = self._pacing.backpressure
        controlled = Controlled(terms, slots.count, run.directory, self._say)
        controlled.replay(read(run.ledger.path).records)
        run.watch(controlled.follow)
        return controlled

    def close(self) -> None:
        """Give back what is held. Nothing may be in flight any more."""
        if self._slots is not None:
            self._slots.close()
            self._slots = None
