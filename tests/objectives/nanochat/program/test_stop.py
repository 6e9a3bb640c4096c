import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from objectives.nanochat.program.stop import Stop, StoppedError

PROGRAM = """
import os, sys
from objectives.nanochat.program.stop import Stop
with Stop():
    for _ in range({signals}):
        os.kill(os.getpid(), {signum})
print("still here")
"""


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("signals", [1, 2])
def test_the_first_signal_is_noted_and_the_second_ends_the_process_at_once(
    signum: signal.Signals, signals: int
) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", PROGRAM.format(signals=signals, signum=int(signum))],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4])},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == (0 if signals == 1 else 128 + signum)
    assert ("still here" in ended.stdout) == (signals == 1)
    assert ended.stderr.count("Saving a checkpoint") == 1


def test_a_signal_is_noted_though_nobody_reads_what_is_said_of_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def nobody_reads(_descriptor: int, _text: bytes) -> int:
        raise BrokenPipeError

    stop = Stop()
    with monkeypatch.context() as alone:
        alone.setattr(os, "write", nobody_reads)
        stop.receive(signal.SIGINT)
    with pytest.raises(StoppedError):
        stop.check()


def test_signals_mean_afterwards_what_they_meant_before() -> None:
    before = [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]
    with Stop() as stop:
        assert signal.getsignal(signal.SIGTERM) == stop.receive
    assert before == [signal.getsignal(signum) for signum in (signal.SIGINT, signal.SIGTERM)]


def test_whoever_asks_after_a_signal_is_stopped_and_knows_the_exit_code() -> None:
    stop = Stop()
    stop.check()
    stop.receive(signal.SIGINT)
    with pytest.raises(StoppedError, match="SIGINT") as stopped:
        stop.check()
    assert stopped.value.exit_code == 130
