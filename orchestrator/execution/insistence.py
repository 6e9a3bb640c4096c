"""A second signal ends what cannot look at flags: an evaluation in this process, Ray's start."""

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

INTERRUPTS = (signal.SIGINT, signal.SIGTERM)


class Insisted(BaseException):
    """A person has interrupted for the second time. Holds the signal's number."""


@contextmanager
def insisted_on(heard: list[int]) -> Iterator[None]:
    """Within the block a second SIGINT or SIGTERM raises Insisted in the main thread.

    Whoever handles them hears every one as before. `heard` is kept from block to block.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {signum: signal.getsignal(signum) for signum in INTERRUPTS}

    def receive(signum: int, frame: FrameType | None) -> None:
        heard.append(signum)
        handler = before[signal.Signals(signum)]
        if callable(handler):
            handler(signum, frame)
        if len(heard) > 1:
            raise Insisted(signum)

    try:
        for signum in INTERRUPTS:
            signal.signal(signum, receive)
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)
