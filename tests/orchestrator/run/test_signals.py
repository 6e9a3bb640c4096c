"""The first and the second signal, and the limit of a drain."""

import signal
import time

import pytest

from orchestrator.execution import Insisted
from orchestrator.execution.api import insisted_on
from orchestrator.run.loop import Stop


@pytest.mark.parametrize(
    ("drain_seconds", "signals", "waits", "stops"),
    [
        (None, 0, 1e9, (False, False)),
        (None, 1, 1e9, (True, False)),
        (None, 2, 0.0, (True, True)),
        (30.0, 1, 29.0, (True, False)),
        (30.0, 1, 31.0, (True, True)),
        (0.0, 1, 0.1, (True, True)),
    ],
)
def test_the_first_signal_drains_and_the_second_or_the_limit_kills(
    drain_seconds: float | None,
    signals: int,
    waits: float,
    stops: tuple[bool, bool],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now, said = [5.0], list[str]()
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    stop = Stop(drain_seconds, said.append)
    for signum in (signal.SIGINT, signal.SIGTERM)[:signals]:
        stop._receive(signum, None)
    now[0] += waits
    assert (stop.requested, stop.now) == stops
    assert len(said) == min(signals, 1)
    assert stop.signum == (0, signal.SIGINT, signal.SIGTERM)[signals]


def test_a_second_signal_ends_what_looks_at_no_flag_even_where_its_exception_is_dropped() -> None:
    before = signal.getsignal(signal.SIGTERM)
    heard: list[int] = []
    signal.signal(signal.SIGTERM, lambda *_: None)
    try:
        with insisted_on(heard):
            signal.raise_signal(signal.SIGTERM)
        with pytest.raises(Insisted), insisted_on(heard):
            heard.append(signal.SIGINT)  # as in a hook of fork, which drops what is raised
        with pytest.raises(Insisted), insisted_on(heard):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
