"""What a command that evaluates says: below a picture of the run on a terminal, else a line each.

The picture is drawn by a process of its own, `look/viewer.py`, which follows the ledger. While it
is there this process never writes to the terminal, so that one that is held up (Ctrl-S), slow or
closed holds up no evaluation; and whatever becomes of the viewer, the run goes on.
"""

import json
import os
import signal
import socket
import subprocess
import sys
from collections import deque
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime

from rich.console import Console, RenderableType

from budgets.events import Event
from budgets.plain import printable
from budgets.state import RunState
from orchestrator.cli.terminal import LaidOut, silence
from orchestrator.execution.insistence import INTERRUPTS
from orchestrator.look.lines import is_lasting, line_of
from orchestrator.look.run import Run as View
from orchestrator.look.viewer import ERASE_BELOW, PACKET_BYTES, can_paint
from orchestrator.running.run import Run
from orchestrator.running.signals import at_once

VIEWER = (sys.executable, "-P", "-m", "orchestrator.look.viewer")

MOST_SAID = PACKET_BYTES // 16
"""Characters of what a packet holds, however they are written."""

END_SECONDS = 30.0
"""How long the end waits for a terminal that is held up."""


class Viewer:
    """The process that draws. Nothing that it is told to print is lost: see `unprinted`."""

    def __init__(self, terminal: int) -> None:
        self.unprinted: dict[int, str] = {}  # by number, in their order
        self._packets: deque[dict[str, object]] = deque()
        self._count = 0
        self._socket, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.setblocking(False)
        # A Ctrl-C is for the whole group: these stay blocked in the viewer, which sees the drain.
        before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
        try:
            self._process = subprocess.Popen(
                VIEWER, stdin=theirs.fileno(), stdout=terminal, stderr=subprocess.DEVNULL
            )
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
            theirs.close()

    def is_there(self) -> bool:
        """Whether it goes on; what waits is told to it."""
        with suppress(BlockingIOError, ConnectionError):
            while printed := self._socket.recv(PACKET_BYTES):
                for number in json.loads(printed):
                    self.unprinted.pop(number, None)
        self._send()
        return self._process.poll() is None

    def say(self, text: str) -> None:
        """Print that above the picture, soon. Also from a signal's handler."""
        self._count += 1
        number = self._count
        self.unprinted[number] = text
        if len(text) <= MOST_SAID:  # else it is said at the end
            self._packets.append({"number": number, "say": text})
        self._send()

    def show(self, run: Run) -> None:
        """From now on the picture, and the lines of records, are that run's."""
        directory = str(run.directory.absolute())
        self._packets.append({"show": directory, "since": run.state.records})
        self._send()

    def _send(self) -> None:
        """What the socket takes; the rest when there is room."""
        while self._packets:
            packet = self._packets.popleft()
            try:
                self._socket.send(json.dumps(packet).encode())
            except BlockingIOError:
                self._packets.appendleft(packet)
                return
            except ConnectionError:  # it is gone
                return

    def end(self) -> None:
        """Take the picture away."""
        self._socket.setblocking(True)
        self._socket.settimeout(END_SECONDS)
        self._packets.append({"end": True})
        try:
            self._send()
            self._process.wait(END_SECONDS)
        except (OSError, subprocess.TimeoutExpired):
            self._process.kill()
        self._socket.setblocking(False)
        self._process.wait()
        self.is_there()
        self._socket.close()


@dataclass
class Output:
    """Says what happens in one run after another. A context manager."""

    console: Console
    _viewer: Viewer | None = None
    _run: Run | None = None  # that is shown
    _is_over: bool = False

    def __enter__(self) -> "Output":
        return self

    def __exit__(self, *_: object) -> None:
        self.rest()

    def rest(self) -> None:
        """Take the picture away, for good: what is said from now on is the command's own."""
        self._is_over = True
        if (viewer := self._viewer) is not None:
            viewer.end()
            self._without(viewer)

    def _without(self, viewer: Viewer) -> None:
        """Say what the viewer has not printed; it is gone."""
        self._viewer = None
        with suppress(OSError):
            os.write(self.console.file.fileno(), ERASE_BELOW.encode())
        for text in viewer.unprinted.values():
            self.say(text)

    def say(self, text: str) -> None:
        """A line."""
        if self._viewer is not None:
            self._viewer.say(text)
        else:
            self._print(printable(text))

    def announce(self, text: str) -> None:
        """The same from a signal's handler, whatever it interrupts."""
        if self._viewer is not None and self._viewer.is_there():
            self._viewer.say(text)
        else:
            at_once(text)

    def markdown(self, text: str) -> None:
        """A whole report, laid out, for which the picture goes."""
        self.rest()
        self._print(LaidOut(text))

    def _print(self, content: RenderableType) -> None:
        try:
            if isinstance(content, str):
                self.console.print(content, highlight=False, markup=False, soft_wrap=True)
            else:
                self.console.print(content, crop=False)
        except OSError:  # a terminal that went away
            silence(self.console)

    def observe(self, state: RunState, event: Event) -> None:
        """One record was written. The viewer tells those of the run that it shows."""
        brief = can_paint(self.console)
        if self._viewer is not None and self._run is not None and self._run.state is state:
            return
        if brief and self._viewer is not None and not is_lasting(event):
            return
        if line := line_of(View(state, datetime.now(UTC)), event, brief=brief):
            self.say(line)

    def look(self, run: Run) -> None:
        """The run waits: what has changed can be shown. To be called whenever it does."""
        if self._viewer is not None and not self._viewer.is_there():
            viewer, self._is_over = self._viewer, True
            self._without(viewer)
        if self._is_over or not can_paint(self.console):
            return
        if self._viewer is None:
            self._viewer = Viewer(self.console.file.fileno())
        if run is not self._run:
            self._run = run
            self._viewer.show(run)
