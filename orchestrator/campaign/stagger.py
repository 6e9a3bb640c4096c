"""Starts apart from each other, so that the first ones do not all ask for the same at once."""

from collections.abc import Callable
from math import floor

from budgets.state import RunState
from orchestrator.capacity import Pace


class Staggered(Pace):
    """The pace of a campaign: one more evaluation in flight every so many seconds.

    From the moment when it is first asked; `now` is a clock that never runs backwards, in seconds.
    """

    def __init__(self, seconds: float, now: Callable[[], float]) -> None:
        self._seconds = seconds
        self._now = now
        self._began: float | None = None

    def admits(self, state: RunState) -> bool:
        """Whether one more may be reserved now."""
        at = self._now()
        if self._began is None:
            self._began = at
        if not self._seconds:
            return True
        return len(state.accounts.holds) < 1 + floor((at - self._began) / self._seconds)
