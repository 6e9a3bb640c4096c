"""Followers of a run, one a tracker, as the command that carries it out sees them.

Nothing here waits for one while a run goes on, and nothing that becomes of one reaches the run: it
is said, once, and that is all.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from pydantic import ValidationError

from budgets.events import Event
from budgets.plain import one_line
from budgets.state import Observer, RunState
from orchestrator.trackers.names import tell_later
from orchestrator.trackers.place import Answer, Place

PATIENCE_SECONDS = 15.0
"""After a command's work: whoever has not told everything by then is ended."""

LINGER = 1.5
"""Times as long, a follower goes on by itself when nobody is left to end it."""

LOCK_SECONDS = 30.0
"""For the follower of a process that was killed to end."""

_POLL_SECONDS = 0.05


class Following:
    """One follower: started, and asked now and then what has become of it.

    Raises OSError, ValueError where it cannot be started.
    """

    def __init__(self, place: Place, *options: str) -> None:
        self.place = place
        self.answer: Answer | None = None  # once it has ended
        place.make()
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        log = os.open(place.log, flags, 0o600)
        try:
            self._process = subprocess.Popen(
                [*_COMMAND, place.name, str(place.run.absolute()), *options],
                stdin=subprocess.PIPE,  # its tie to this process
                stdout=subprocess.PIPE,
                stderr=log,
                start_new_session=True,
            )
        finally:
            os.close(log)

    def has_ended(self) -> bool:
        """Whether `answer` is there; never waits."""
        if self.answer is None and self._process.poll() is not None:
            self.answer = self._answered()
        return self.answer is not None

    def release(self) -> None:
        """Let it tell what is there, and end."""
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()

    def kill(self, why: str) -> None:
        """End it, and what it has started in its session; nothing if it has ended by itself."""
        if self.has_ended():
            return
        self.release()
        with suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._answered()
        self.answer = Answer(error=why)

    def _answered(self) -> Answer:
        assert self._process.stdout is not None
        self.release()
        with self._process.stdout as pipe:
            os.set_blocking(pipe.fileno(), False)  # whoever inherited the other end
            said = pipe.read() or b""
        code = self._process.returncode
        try:
            return Answer.model_validate_json(said)
        except ValidationError:
            return Answer(error=f"{_ended(code)}; see {self.place.log}")


_COMMAND = (sys.executable, "-P", "-m", "orchestrator.trackers.process")


def _ended(code: int) -> str:
    """How a process did that said nothing."""
    if code == -signal.SIGALRM:  # its own
        return "it hung, and was ended"
    with suppress(ValueError):
        return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}"


class Followers:
    """Those of one command, over all of its runs."""

    def __init__(
        self,
        names: Sequence[str],
        say: Callable[[str], None],
        patience_seconds: float = PATIENCE_SECONDS,
    ) -> None:
        self._names, self._say, self._patience = names, say, patience_seconds
        self._there: list[Following] = []

    def begin(self, run: Path) -> None:
        """Begin to tell each tracker of that run."""
        for name in self._names:
            place = Place(run, name)
            options = (f"--linger={LINGER * self._patience:g}", f"--lock={LOCK_SECONDS:g}")
            try:
                self._there.append(Following(place, *options))
            except (OSError, ValueError) as error:
                self._failed(place, one_line(str(error)))

    def looking(self, observe: Observer) -> Observer:
        """An observer that also looks after them."""

        def told(state: RunState, event: Event) -> None:
            observe(state, event)
            if self._there:
                self.look()

        return told

    def look(self) -> None:
        """Say which have failed since. Takes microseconds."""
        for one in [one for one in self._there if one.has_ended()]:
            self._there.remove(one)
            if one.answer is not None and one.answer.error is not None:
                self._failed(one.place, one.answer.error)

    def release(self) -> None:
        """Nothing more will be written: let them tell what is there, and end."""
        for one in self._there:
            one.release()

    def close(self, is_hurried: Callable[[], bool]) -> None:
        """Wait for them, for a bounded time, then end them.

        Somebody in a hurry waits for a quarter of it; who grows impatient meanwhile, no longer.
        """
        self.release()
        was_hurried, began = is_hurried(), time.monotonic()
        seconds = self._patience / 4 if was_hurried else self._patience
        self.look()
        while self._there and time.monotonic() - began < seconds and is_hurried() == was_hurried:
            time.sleep(_POLL_SECONDS)
            self.look()
        waited = time.monotonic() - began
        for one in self._there:
            one.kill(f"it had not logged everything {waited:.0f} s after the run, and was ended")
        self.look()

    def _failed(self, place: Place, why: str) -> None:
        self._say(
            f"Tracker {place.name} failed: {why}. The run is not touched; later: "
            f"{tell_later(place.run, place.name)}"
        )
