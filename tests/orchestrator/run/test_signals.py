"""The first signal asks, the second insists, and so does waiting too long."""

import os
import signal
from collections.abc import Iterator

import pytest

from orchestrator.execution.signals import SignalStop


class Clock:
    seconds = 50.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The process's own are put back."""
    before = {s: signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM)}
    yield
    for signum, handler in before.items():
        signal.signal(signum, handler)


def signalled(stop: SignalStop, *signums: int) -> SignalStop:
    stop.install()
    for signum in signums:
        os.kill(os.getpid(), signum)
    return stop


def test_without_a_signal_nothing_ends_however_long_it_takes() -> None:
    clock = Clock()
    stop = signalled(SignalStop(drain_seconds=1.0, monotonic=clock))
    clock.seconds += 1e9
    assert (stop.requested, stop.now, stop.signum) == (False, False, 0)


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_lets_what_runs_finish(
    signum: signal.Signals, capfd: pytest.CaptureFixture[str]
) -> None:
    clock = Clock()
    stop = signalled(SignalStop(monotonic=clock), signum)
    clock.seconds += 1e9  # without a limit, for ever
    assert (stop.requested, stop.now, stop.signum) == (True, False, signum)
    assert capfd.readouterr().err.count("interrupt again to kill it") == 1


def test_what_a_signal_says_is_said_by_whoever_has_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    said: list[str] = []
    signalled(SignalStop(announce=said.append), signal.SIGINT, signal.SIGINT)
    assert said == ["Finishing what is running; interrupt again to kill it."]
    assert capfd.readouterr().err == ""


def test_the_second_kills_it_and_is_the_one_that_counts() -> None:
    stop = signalled(SignalStop(monotonic=Clock()), signal.SIGINT, signal.SIGTERM)
    assert (stop.now, stop.signum) == (True, signal.SIGTERM)
    assert signalled(stop, signal.SIGINT).now


@pytest.mark.parametrize(("waited", "now"), [(0.0, False), (20.0, False), (20.001, True)])
def test_waiting_longer_than_the_limit_kills_it(waited: float, now: bool) -> None:
    clock = Clock()
    stop = signalled(SignalStop(drain_seconds=20.0, monotonic=clock), signal.SIGTERM)
    clock.seconds += waited
    assert stop.now is now


def test_the_limit_counts_from_the_first_signal() -> None:
    clock = Clock()
    stop = SignalStop(drain_seconds=20.0, monotonic=clock)
    clock.seconds += 1000  # of running
    signalled(stop, signal.SIGTERM)
    clock.seconds += 15
    assert not stop.now
    clock.seconds += 6
    assert stop.now


def test_a_limit_of_nothing_kills_as_soon_as_any_time_has_passed() -> None:
    clock = Clock()
    stop = signalled(SignalStop(drain_seconds=0.0, monotonic=clock), signal.SIGTERM)
    clock.seconds += 0.001
    assert stop.now
