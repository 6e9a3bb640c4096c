"""Processes as tests look for them."""

from contextlib import suppress

import psutil


def is_running(pid: int) -> bool:
    """Whether it does anything yet: a zombie only waits for whoever asks how it ended."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False
