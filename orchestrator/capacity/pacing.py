"""The pace of every run of a session, from what a person said about it."""

from collections.abc import Callable

from orchestrator.capacity.pace import Pace, Together
from orchestrator.capacity.terms import Pacing
from orchestrator.execution.evaluate import Slots
from orchestrator.run import Run


class Paces:
    """Makes each run's pace. What all of them share is held until `close`."""

    def __init__(self, pacing: Pacing, say: Callable[[str], None]) -> None:
        self._pacing = pacing
        self._say = say

    def of(self, run: Run, slots: Slots, own: Pace | None = None) -> Pace:
        """The run's pace, on so many devices: its `own` beside what the session says."""
        return Together([pace for pace in (own,) if pace is not None])

    def close(self) -> None:
        """Give back what is held."""
