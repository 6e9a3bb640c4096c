"""A value that many ask for and one makes, so that readers cost no more than one of them."""

from collections.abc import Callable
from threading import Lock
from time import monotonic
from typing import Generic, TypeVar

T = TypeVar("T")


class Shared(Generic[T]):
    """What `make` gives, at most `seconds` old, or as old as it takes to make another.

    Whoever finds it older makes it anew; the others get the last one meanwhile. Only the first one
    is waited for.
    """

    def __init__(
        self, make: Callable[[], T], seconds: float, clock: Callable[[], float] = monotonic
    ) -> None:
        self._make, self._seconds, self._clock = make, seconds, clock
        self._lock = Lock()
        self._made: tuple[T, float] | None = None

    def get(self) -> T:
        """Raises what `make` raises, to the one who makes it."""
        made = self._made
        if made is not None and self._clock() - made[1] < self._seconds:
            return made[0]
        if not self._lock.acquire(blocking=made is None):
            assert made is not None, "the first one is waited for"
            return made[0]
        try:
            now, made = self._clock(), self._made
            if made is None or now - made[1] >= self._seconds:
                made = self._made = (self._make(), now)
            return made[0]
        finally:
            self._lock.release()
