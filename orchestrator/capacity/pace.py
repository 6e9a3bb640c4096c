"""When an evaluation may start although a device is free."""

from collections.abc import Sequence
from typing import Protocol

from budgets.state import RunState


class Pace(Protocol):
    """When an evaluation may start although a device is free. It changes nothing else of a run."""

    def admits(self, state: RunState) -> bool:
        """Whether one more may be reserved now. If not, it is asked again at every look."""

    def look(self, state: RunState) -> None:
        """What ended was settled: what was admitted and is not in flight is taken back.

        It takes a moment where nothing is in flight because nothing was admitted: such a look at
        the executor took none.
        """


class Freely:
    """The pace of a run with devices of its own: whatever is free is used."""

    def admits(self, state: RunState) -> bool:  # noqa: ARG002 - the Protocol's
        return True

    def look(self, state: RunState) -> None:
        """There is nothing to take back."""


class AtMost:
    """So many evaluations in flight, and no more. Raises ValueError below one."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"expected at least one evaluation at a time, got {limit}")
        self._limit = limit

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._limit

    def look(self, state: RunState) -> None:
        """There is nothing to take back."""


class Together:
    """What every one of several paces admits, asked in their order until one does not."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self._paces = tuple(paces)

    def admits(self, state: RunState) -> bool:
        return all(pace.admits(state) for pace in self._paces)

    def look(self, state: RunState) -> None:
        for pace in self._paces:
            pace.look(state)
