"""The process that tells one tracker of one run: `python -m orchestrator.trackers.process`.

A tracker's library may hang, leak, crash, ask for a password or print: here it does so alone. The
process has a session of its own (no terminal to ask), nothing on stdin, and a log for what is
printed. stdin is its tie to the command that started it: when that is closed, or its holder is
dead, what the ledger has is told yet, and within `--linger` seconds the process is gone, whatever
it is in the middle of. How it went is one line of JSON on stdout.
"""

import argparse
import faulthandler
import os
import select
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import orjson

from budgets.plain import one_line
from objectives import secrets
from orchestrator.execution import processes
from orchestrator.trackers.follow import Follower
from orchestrator.trackers.names import TRACKERS
from orchestrator.trackers.place import Answer, Place
from orchestrator.trackers.sink import Sink

NICENESS = 10
STALL_SECONDS = 300.0  # that one call of the library may take
FAREWELL_SECONDS = 5.0  # for what a library does when its process ends
LOG_BYTES = 1 << 20  # of the log: then it begins anew


class Tie:
    """To the command that started this process: a pipe that it holds open while it lives.

    A thread watches it, so that no library can keep this process: it re-arms an alarm that ends it.
    """

    def __init__(self, pipe: int, linger_seconds: float, report: int) -> None:
        self._pipe, self._linger, self._report = pipe, linger_seconds, report
        self._is_cut = threading.Event()
        self._seen = time.monotonic()  # when the follower last came by
        self._timer = threading.Lock()
        self._is_left = False
        self._end_after(3 * self._linger)  # a library may let no thread of ours run
        threading.Thread(target=self._watch, daemon=True).start()

    def more(self, seconds: float) -> bool:
        """Wait so long; whether the command is still there."""
        self._seen = time.monotonic()
        return not self._is_cut.wait(seconds)

    @property
    def is_cut(self) -> bool:
        return self._is_cut.is_set()

    def leave(self) -> None:
        """The work is done: only a library's farewell may take some time yet."""
        with self._timer:
            self._is_left = True
            signal.setitimer(signal.ITIMER_REAL, FAREWELL_SECONDS)

    def _watch(self) -> None:
        while not select.select([self._pipe], [], [], min(1.0, self._linger / 3))[0]:
            self._end_after(3 * self._linger)
            _trim()
            if time.monotonic() - self._seen > STALL_SECONDS:
                answer(self._report, Answer(error=f"it took longer than {STALL_SECONDS:g} s"))
                os._exit(1)
        self._end_after(self._linger)
        _weigh_session(0)  # there is no run to step back for, and little time
        self._is_cut.set()
        while True:  # a library may print on to its end
            _trim()
            time.sleep(min(1.0, self._linger / 3))

    def _end_after(self, seconds: float) -> None:
        """The kernel ends this process then, whatever it does: nobody handles its alarm."""
        with self._timer:
            if not self._is_left:
                signal.setitimer(signal.ITIMER_REAL, seconds)


def _trim() -> None:
    """Begin the log anew where it is too long."""
    if os.fstat(2).st_size > LOG_BYTES:
        os.ftruncate(2, 0)


def main() -> int:
    """Exit code 0 when all was told, else 1."""
    parser = argparse.ArgumentParser(prog="python -m orchestrator.trackers.process")
    parser.add_argument("tracker", choices=TRACKERS)
    parser.add_argument("run", type=Path)
    parser.add_argument("--linger", type=float, default=15.0, help="seconds, above 0")
    parser.add_argument("--lock", type=float, default=0.0, help="seconds to wait for the place")
    parser.add_argument("--watch", action="store_true", help="end when nobody has the run")
    parser.add_argument("--anew", action="store_true", help="tell all of it again")
    options = parser.parse_args()
    report = os.dup(1)
    tie = Tie(_alone(), options.linger, report)
    place = Place(options.run, options.tracker)
    try:
        found = _told(place, tie, options)
    except BaseException as error:  # whatever somebody else's library raises, SystemExit too
        traceback.print_exc()
        found = Answer(error=_in_words(error))
    tie.leave()
    answer(report, found)
    return 0 if found.error is None else 1


def _told(place: Place, tie: Tie, options: argparse.Namespace) -> Answer:
    place.make()
    lock = place.lock(options.lock, lambda: tie.is_cut)
    try:
        if options.anew:
            place.forget()
        follower = Follower(place, maker(place.name))
        follower.follow(tie.more, watch=options.watch)
        return Answer(records=0 if follower.told is None else follower.told.records)
    finally:
        os.close(lock)


def maker(name: str) -> Callable[[], Sink]:
    """What makes that tracker's sink. Its library is imported only when it is called."""

    def make() -> Sink:
        match name:
            case "tensorboard":
                from orchestrator.trackers.tensorboard import TensorBoard

                return TensorBoard()
            case "wandb":
                from orchestrator.trackers.wandb import WeightsAndBiases

                return WeightsAndBiases()
            case _:
                from orchestrator.trackers.mlflow import MlFlow

                return MlFlow()

    return make


def answer(report: int, found: Answer) -> None:
    with suppress(OSError):  # nobody is left to hear it
        os.write(report, orjson.dumps(found.model_dump()) + b"\n")


def _alone() -> int:
    """Leave the terminal's files behind, and step back for the run; the tie's descriptor."""
    tie, null = os.dup(0), os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    os.close(null)
    os.dup2(2, 1)  # whatever a library prints
    os.umask(0o077)
    os.nice(NICENESS)
    _weigh_session(NICENESS)
    processes.volunteer_for_the_oom_killer()
    faulthandler.enable()
    os.environ["CUDA_VISIBLE_DEVICES"] = ""  # no library looks at the run's GPUs
    return tie


def _weigh_session(niceness: int) -> None:
    """Where Linux shares the CPU out by sessions first: how little this one gets of it."""
    with suppress(OSError):
        Path("/proc/self/autogroup").write_text(str(niceness))


def _in_words(error: BaseException) -> str:
    said = one_line(f"{type(error).__name__}: {error}" if str(error) else type(error).__name__)
    return secrets.redacted(said, os.environ)


if __name__ == "__main__":
    sys.exit(main())
