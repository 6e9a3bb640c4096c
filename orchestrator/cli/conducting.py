"""A session in which a command carries out runs, what shows it, and how the command ends."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from budgets.formatting import command
from objectives.secrets import redacted
from orchestrator.cli.errors import EXIT_BY_DECISION, EXIT_SIGNAL, EXIT_STORAGE
from orchestrator.cli.output import Output
from orchestrator.cli.terminal import console, print_json, print_markdown
from orchestrator.config import Config
from orchestrator.look.document import document
from orchestrator.look.reports import ReportFiles
from orchestrator.look.run import Run
from orchestrator.look.terminal import tell
from orchestrator.look.track import Trackers, refuse_missing
from orchestrator.plan.resolve import engine_of, pacing_of
from orchestrator.records.recorded import Result
from orchestrator.running.run import Run as RunInHand
from orchestrator.running.session import Session, system_clock
from orchestrator.running.signals import SignalStop
from orchestrator.running.walk import Stop


@contextmanager
def conducting(config: Config, *, as_json: bool) -> Iterator[tuple[Session, Output]]:
    """A session, and what shows it. Raises ValueError where a tracker's library is missing."""
    trackers_wanted = tuple(config.track.to)
    refuse_missing(trackers_wanted)
    with Output(console(stderr=as_json)) as live:
        stop = SignalStop(config.backend.drain_seconds, announce=live.announce)
        with Trackers(trackers_wanted, live.say, lambda: stop.now) as trackers:

            def look(run: RunInHand) -> None:
                live.look(run)
                trackers.look()

            with Session(
                Path(config.runs_dir),
                engine_of(config),
                live.observe,
                live.say,
                look=look,
                stop=stop,
                allow_network_fs=config.backend.allow_network_fs,
                pacing=pacing_of(config),
                track=trackers.begin,
                reports=ReportFiles(),
                command=_command(),
            ) as session:
                yield session, live


def _command() -> tuple[str, ...]:
    """The words that began this process, as they may be written down."""
    return tuple(redacted(word, os.environ) for word in sys.argv[1:])


def finish(result: Result, stop: Stop, live: Output, as_json: bool) -> None:
    """Show where the run stands and leave with the exit code that says so."""
    live.rest()
    run = Run(result.state, system_clock().now(), result.directory, result.ruling)
    if as_json:
        print_json(document(run))
    else:
        tell(run, print_markdown, live.say)
        live.say(f"Files: {result.directory}")
        live.say(f"See it: {command('report', str(result.directory), '--html')}")
    if stop.requested and result.ruling.decision == "continue":
        live.say("Interrupted; nothing paid is lost. Repeat the command to go on.")
        raise typer.Exit(EXIT_SIGNAL + stop.signum)
    if any(trigger.rule == "storage" for trigger in result.ruling.triggers):
        raise typer.Exit(EXIT_STORAGE)
    decided, decision = result.state.decided, result.ruling.decision
    is_no_go = decision == "done" and decided is not None and decided.grade == "no_go"
    raise typer.Exit(EXIT_BY_DECISION["stop" if is_no_go else decision])
