"""When an evaluation may start although a device is free."""

from collections.abc import Sequence

from budgets.state import RunState


class Pace:
    """When an evaluation may start although a device is free: always, of a run by itself.

    It changes nothing else of a run.
    """

    def admits(self, state: RunState) -> bool:  # noqa: ARG002 - others ask it
        """Whether one more may be reserved now. If not, it is asked again at every look."""
        return True

    def look(self, state: RunState) -> None:
        """What ended was settled: what was admitted and is not in flight is taken back.

        It takes a moment where nothing is in flight because nothing was admitted: such a look at
        the executor took none.
        """


class AtMost(Pace):
    """So many evaluations in flight, and no more. Raises ValueError below one."""

    def __init__(self, limit: int) -> None:
        if limit < 1:
            raise ValueError(f"expected at least one evaluation at a time, got {limit}")
        self._limit = limit

    def admits(self, state: RunState) -> bool:
        return len(state.accounts.holds) < self._limit


class Together(Pace):
    """What every one of several paces admits, asked in their order until one does not."""

    def __init__(self, paces: Sequence[Pace]) -> None:
        self._paces = tuple(paces)

    def admits(self, state: RunState) -> bool:
        return all(pace.admits(state) for pace in self._paces)

    def look(self, state: RunState) -> None:
        for pace in self._paces:
            pace.look(state)
