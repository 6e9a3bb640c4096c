"""A function's sign of life: it says nothing for minutes, but its process computes."""

import math
import os
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress

import psutil

LOOK_SECONDS = 2.0

LEAST_SHARE = 0.01
"""Of a CPU: what waits for ever uses less."""

Heartbeat = Callable[[Mapping[str, float]], None]


@contextmanager
def beating(heartbeat: Heartbeat, every_seconds: float | None = None) -> Iterator[None]:
    """Within the block a heartbeat, whenever this process or one that it started has computed."""
    over = threading.Event()
    seconds = LOOK_SECONDS if every_seconds is None else every_seconds
    thread = threading.Thread(target=_beat, args=(heartbeat, seconds, over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _beat(heartbeat: Heartbeat, every_seconds: float, over: threading.Event) -> None:
    """What others have used is asked only while this process rests: to look at all takes time."""
    own, others = _own_cpu_seconds(), math.inf
    least = LEAST_SHARE * every_seconds
    while not over.wait(every_seconds):
        own_before, own = own, _own_cpu_seconds()
        is_alive = own - own_before >= least
        if not is_alive:
            others_before, others = others, _cpu_seconds_of_others()
            is_alive = others - others_before >= least
        if is_alive:
            heartbeat({})


def _own_cpu_seconds() -> float:
    """Without what this thread takes to look."""
    return time.process_time() - time.thread_time()


def _cpu_seconds_of_others() -> float:
    """Of what this process started, as far as it lives or was waited for."""
    mine = os.times()
    total = mine.children_user + mine.children_system
    with suppress(psutil.Error):
        for process in psutil.Process().children(recursive=True):
            with suppress(psutil.Error):
                total += sum(process.cpu_times()[:4])
    return total
