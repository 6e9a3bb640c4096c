"""What a command that evaluates says: above a picture of the run on a terminal, else in lines.

The picture is drawn by a process of its own, `look/viewer.py`. While that is there this one writes
to a pipe only, and never waits: a terminal that is held up (Ctrl-S) holds up no evaluation.
"""

import os
import signal
import sys
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from subprocess import DEVNULL, Popen, TimeoutExpired

from rich.console import Console

from budgets.events import Event
from budgets.formatting import printable
from budgets.state import RunState
from orchestrator.cli.terminal import silence
from orchestrator.execution.insistence import INTERRUPTS
from orchestrator.look.run import Run as View
from orchestrator.look.terminal import line_of
from orchestrator.look.viewer import PIPE_BYTES, SHOW, can_paint
from orchestrator.running.run import Run
from orchestrator.running.signals import at_once

VIEWER = (sys.executable, "-P", "-m", "orchestrator.look.viewer")


@dataclass
class Output(AbstractContextManager["Output"]):
    """Says what happens in one run after another."""

    console: Console
    _viewer: "Popen[bytes] | None" = None
    _pipe: tuple[int, int] = (-1, -1)  # both ends are kept: what the viewer left is read here
    _unsent: list[str] = field(default_factory=list)
    _shown: Run | None = None
    _is_over: bool = False

    def __exit__(self, *_: object) -> None:
        self.rest()

    def rest(self, seconds: float = 30.0) -> None:
        """Take the picture away within so long, for good, and say what the viewer has not."""
        self._is_over, viewer, self._viewer = True, self._viewer, None
        if viewer is None:
            return
        os.close(self._pipe[1])
        with suppress(TimeoutExpired):
            viewer.wait(seconds)
        viewer.kill()
        if viewer.wait() != 0:
            self.console.file.write("\x1b[0m")  # it may have been painting
        left = os.fsdecode(os.read(self._pipe[0], PIPE_BYTES)).splitlines()
        os.close(self._pipe[0])
        for line in [*left, *self._unsent]:
            if not line.startswith(SHOW):
                self.say(line)

    def say(self, text: str) -> None:
        """A line."""
        line = printable(text)
        try:
            if self._viewer is None:
                self.console.print(line, highlight=False, markup=False, soft_wrap=True)
            else:
                os.write(self._pipe[1], os.fsencode(f"{line}\n"))
        except BlockingIOError:  # it is full
            self._unsent.append(line)
        except OSError:  # a terminal that went away
            silence(self.console)

    def announce(self, text: str) -> None:
        """The same from a signal's handler, whatever it interrupts."""
        at_once(text) if self._viewer is None else self.say(text)

    def observe(self, state: RunState, event: Event) -> None:
        """One record was written."""
        view, brief = View(state, datetime.now(UTC)), self._viewer is not None
        if line := line_of(view, event, brief=brief):
            self.say(line)

    def look(self, run: Run) -> None:
        """The run waits: what has changed can be shown. To be called whenever it does."""
        if self._viewer is not None and self._viewer.poll() is not None:
            self.rest()
        if self._viewer is None and not self._is_over and can_paint(self.console):
            self._pipe = os.pipe()
            os.set_blocking(self._pipe[1], False)
            # Ctrl-C is for the whole group: it stays blocked in the viewer, which sees the drain.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
            file = self.console.file
            self._viewer = Popen(VIEWER, stdin=self._pipe[0], stdout=file, stderr=DEVNULL)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if self._viewer is not None and run is not self._shown:
            self._shown = run
            with suppress(BlockingIOError):
                os.write(self._pipe[1], os.fsencode(f"{SHOW}{run.directory.absolute()}\n"))
