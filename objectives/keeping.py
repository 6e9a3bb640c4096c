"""The user's cache, and whether what was prepared may be kept there for the next one."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

_KEEPS: ContextVar[bool] = ContextVar("keeps", default=True)


def cache_directory() -> Path:
    """The user's cache directory for this project; it need not exist."""
    try:
        root = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    except RuntimeError:  # a user without a home
        root = os.devnull  # nothing can be written below it
    return Path(root) / "cmaes-orchestrator"


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
