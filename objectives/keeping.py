"""Whether what was prepared may be kept in the user's cache, for the next one who needs it."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

_KEEPS: ContextVar[bool] = ContextVar("keeps", default=True)


def keeps() -> bool:
    """Whether it may be, here and now; what is there already may always be read."""
    return _KEEPS.get()


@contextmanager
def keeping(*, allowed: bool) -> Iterator[None]:
    """Within the block it may be, or may not: a command that only looks leaves nothing behind."""
    before = _KEEPS.set(allowed)
    try:
        yield
    finally:
        _KEEPS.reset(before)
