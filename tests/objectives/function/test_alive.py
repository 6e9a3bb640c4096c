"""A silent function is alive as long as something computes."""

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping

import pytest

from objectives.function.alive import beating

EVERY = 0.05


class Heard:
    """A heartbeat that can be waited for."""

    def __init__(self) -> None:
        self.event = threading.Event()
        self.beats: list[Mapping[str, float]] = []

    def __call__(self, metrics: Mapping[str, float]) -> None:
        self.beats.append(metrics)
        self.event.set()


def busy_until(over: Callable[[], bool], seconds: float = 20.0) -> bool:
    end = time.monotonic() + seconds
    while not over() and time.monotonic() < end:
        sum(range(1000))
    return over()


def test_a_process_that_computes_is_heard_of() -> None:
    heard = Heard()
    with beating(heard, EVERY):
        assert busy_until(heard.event.is_set)
    assert heard.beats[0] == {}


def test_a_process_whose_child_computes_is_heard_of() -> None:
    heard = Heard()
    child = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    try:
        with beating(heard, EVERY):
            assert heard.event.wait(20.0)
    finally:
        child.kill()
        child.wait()


def test_a_process_that_waits_for_ever_is_not_heard_of(monkeypatch: pytest.MonkeyPatch) -> None:
    heard, looked = Heard(), threading.Semaphore(0)

    def nothing() -> float:
        looked.release()
        return 1.0

    monkeypatch.setattr("objectives.function.alive._own_cpu_seconds", nothing)
    monkeypatch.setattr("objectives.function.alive._cpu_seconds_of_others", nothing)
    with beating(heard, EVERY):
        for _ in range(6):
            assert looked.acquire(timeout=20.0)
    assert heard.beats == []


def test_it_ends_with_the_block_whatever_happens() -> None:
    before = threading.active_count()
    with pytest.raises(KeyError), beating(Heard(), EVERY):
        raise KeyError
    assert threading.active_count() == before
