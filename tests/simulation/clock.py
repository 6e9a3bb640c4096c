"""Time that passes when it is told to: one clock that never runs back, one that people set."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from budgets.ledger.writer import Clock

BEGAN = datetime(2030, 1, 1, tzinfo=UTC)


@dataclass
class SimulatedClock:
    """Seconds since the story began, and by how many the clock on the wall is off."""

    seconds: float = 0.0
    wall_offset_seconds: float = 0.0
    was_set_back: bool = False

    def advance_to(self, seconds: float) -> None:
        """Let time pass until then; a moment that is over changes nothing."""
        self.seconds = max(self.seconds, seconds)

    def set_wall(self, by_seconds: float) -> None:
        """Somebody sets the clock on the wall."""
        self.wall_offset_seconds += by_seconds
        self.was_set_back |= by_seconds < 0

    @property
    def clock(self) -> Clock:
        """As the product sees it."""
        return Clock(monotonic=lambda: self.seconds, now=self._now)

    def _now(self) -> datetime:
        return BEGAN + timedelta(seconds=self.seconds + self.wall_offset_seconds)
