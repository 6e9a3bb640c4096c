"""`phase1`, `phase2`, `run`, and a session in which any command carries out runs.

On a terminal a process of its own, `look/terminal.py`, draws a picture of the run. This process
then writes to a pipe only and never waits, so that a stopped terminal (Ctrl-S) stops no evaluation.
"""

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from subprocess import DEVNULL, Popen, TimeoutExpired
from typing import IO

import typer

from budgets.events import Event
from budgets.formatting import command, printable
from budgets.plan import Calibration, Devices
from budgets.state import RunState
from objectives.secrets import redacted
from orchestrator.api import session_of
from orchestrator.cli.options import Typed
from orchestrator.cli.output import (
    EXIT_BY_DECISION,
    EXIT_SIGNAL,
    EXIT_STORAGE,
    print_json,
    print_markdown,
    silence,
)
from orchestrator.config import Config
from orchestrator.execution.api import INTERRUPTS
from orchestrator.execution.devices import resized
from orchestrator.look.json_documents import document
from orchestrator.look.run import Run
from orchestrator.look.terminal import SHOW, can_paint, line_of, told
from orchestrator.matrix.campaign import Staggered, campaign_from, campaign_matrix
from orchestrator.matrix.carry_out import carry_out, carry_out_search
from orchestrator.plan.resolve import Overrides, slots_of
from orchestrator.records.runs import Result
from orchestrator.run.loop import Run as RunInHand
from orchestrator.run.loop import Stop, at_once
from orchestrator.run.session import Session

VIEWER_SECONDS = 30.0  # for its last lines
VIEWER = (sys.executable, "-P", "-m", "orchestrator.look.terminal")


def search(typed: Typed) -> None:
    """Carry out a search, or what FILE describes; the same command resumes it."""
    config, overrides = typed.request, typed.overrides
    slots = slots_of(config)
    if config.campaign is None and config.search.tier is None:
        raise ValueError(
            "--tier: say how much to spend: min, target or max, or search.tier in a file. "
            "The command plan shows what each costs"
        )
    with conducting(typed, config) as (session, live):
        begin = carry_out_search if config.campaign is None else _carry_out_campaign
        live.finish(begin(session, config, slots, overrides), session)


def _carry_out_campaign(
    session: Session, config: Config, slots: Devices, overrides: Overrides
) -> Result:
    campaign, assumed = campaign_from(config), config.evaluation.assume_eval_seconds
    slots = resized(slots, campaign.workers(slots.count))
    known = None if assumed is None else Calibration(assumed_seconds=assumed)
    seconds = campaign.stagger_seconds
    pace = Staggered(seconds, session.clock.monotonic) if seconds else None
    return carry_out(campaign_matrix(config, campaign), session, slots, pace, known, overrides)


# The session


@dataclass
class Output:
    """Prints what happens in one run after another."""

    stream: IO[str]
    as_json: bool = False
    _viewer: "Popen[bytes] | None" = None
    _pipe: int = -1  # to the viewer
    _unsent: list[str] = field(default_factory=list)
    _shown: RunInHand | None = None
    _is_over: bool = False

    def rest(self) -> None:
        """End the viewer for good, and print what it did not take."""
        self._is_over, viewer, self._viewer = True, self._viewer, None
        if viewer is None:
            return
        os.close(self._pipe)
        with suppress(TimeoutExpired):
            viewer.wait(VIEWER_SECONDS)
        viewer.kill()
        viewer.wait()
        for line in self._unsent:
            self.say(line)

    def say(self, text: str) -> None:
        """Print a line."""
        line = printable(text)
        if self._viewer is not None:
            try:
                os.write(self._pipe, os.fsencode(f"{line}\n"))
            except OSError:  # it is full, or the viewer has ended
                self._unsent.append(line)
            return
        try:
            print(line, file=self.stream, flush=True)
        except OSError:  # a terminal that went away
            silence(self.stream)

    def announce(self, text: str) -> None:
        """Print a line from a signal's handler."""
        at_once(text) if self._viewer is None else self.say(text)

    def observe(self, state: RunState, event: Event) -> None:
        """Print the line of a new record, if it has one."""
        view = Run(state, datetime.now(UTC))
        if line := line_of(view, event):
            self.say(line)

    def look(self, run: RunInHand) -> None:
        """Show the run as it stands. To be called whenever the run waits."""
        if self._viewer is not None and self._viewer.poll() is not None:
            self.rest()
        if self._viewer is None and not self._is_over and can_paint(self.stream):
            # Ctrl-C is for the whole group: it stays blocked in the viewer, which sees the drain.
            before = signal.pthread_sigmask(signal.SIG_BLOCK, INTERRUPTS)
            theirs, self._pipe = os.pipe()
            self._viewer = Popen(VIEWER, stdin=theirs, stdout=self.stream, stderr=DEVNULL)
            os.close(theirs)
            os.set_blocking(self._pipe, False)
            signal.pthread_sigmask(signal.SIG_SETMASK, before)
        if self._viewer is not None and run is not self._shown:
            self._shown = run
            with suppress(OSError):
                os.write(self._pipe, os.fsencode(f"{SHOW}{run.directory.absolute()}\n"))

    def finish(self, result: Result, session: Session) -> None:
        """Print how the run stands, and exit with the code that says so."""
        self.rest()
        run = Run(result.state, datetime.now(UTC), result.directory, result.ruling)
        stop = session.stop
        if self.as_json:
            print_json(document(run))
        else:
            lines, page = told(run)
            print_markdown(page)
            files, see = result.directory, command("report", str(result.directory), "--html")
            for line in (*lines, f"Files: {files}", f"See it: {see}"):
                self.say(line)
        decided, decision = result.state.decided, result.ruling.decision
        if stop.requested and decision == "continue":
            self.say("Interrupted; nothing paid is lost. Repeat the command to go on.")
            raise typer.Exit(EXIT_SIGNAL + stop.signum)
        if any(trigger.rule == "storage" for trigger in result.ruling.triggers):
            raise typer.Exit(EXIT_STORAGE)
        if decision == "done" and decided is not None and decided.grade == "no_go":
            decision = "stop"
        raise typer.Exit(EXIT_BY_DECISION[decision])


@contextmanager
def conducting(typed: Typed, config: Config) -> Iterator[tuple[Session, Output]]:
    """Yield a session and its output."""
    live = Output(sys.stderr if typed.as_json else sys.stdout, typed.as_json)
    stop = Stop(config.backend.drain_seconds, live.announce)
    session = session_of(config, live.observe, live.say, stop)
    session.look = live.look
    session.command = tuple(redacted(word, os.environ) for word in sys.argv[1:])
    try:
        with stop, session:
            yield session, live
    finally:
        live.rest()
