"""Watching a run by its ledger, without disturbing whoever carries it out.

As a program of its own, which `cli/output.py` starts, it keeps the picture below what a command
says. It is no part of the run: whatever becomes of it or of the terminal, evaluations go on.
"""

import errno
import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from rich.console import Console, Group
from rich.live import Live
from rich.text import Text

from budgets.events import (
    ComparisonAsked,
    Decided,
    Event,
    Fired,
    GenerationTold,
    Opened,
    Overridden,
    Settled,
    Withdrawn,
)
from budgets.formatting import duration, number, precise_duration, printable
from budgets.ledger import LEDGER
from budgets.verdict import title
from objectives.programs.kernel import libc
from orchestrator.look import text
from orchestrator.look.board import Board
from orchestrator.look.run import Run, comparison_name
from orchestrator.look.terminal import Picture, harmless
from orchestrator.records.tail import Tail

LOOK_SECONDS, LOOK_SHARE = 1.0, 0.005
"""How often there is a look at the ledger, unless that takes a larger share of a core than this."""

TOGETHER_SECONDS, ABOVE = 0.1, 3
"""What is said within so long is printed at once; how many lines of it are seen at the least."""

SHOW = "\0"
"""Begins a line that names the run to show; every other line is to be printed."""

PIPE_BYTES = 1 << 16
PR_SET_PDEATHSIG = 1

Seen = Run | Board


def can_paint(console: Console) -> bool:
    """Whether there is a terminal that can be painted on, and this is no job in the background."""
    try:
        terminal = console.file.fileno()
        is_able = os.isatty(terminal) and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
        return is_able and os.tcgetpgrp(terminal) == os.getpgrp()
    except (OSError, ValueError) as error:  # a terminal that is nobody's has no background
        return isinstance(error, OSError) and error.errno == errno.ENOTTY


def looks(directory: Path, *, brief: bool = False) -> Iterator[tuple[list[str], Run]]:
    """What is new since the look before, as lines, and how the run stands; the first has no news.

    `brief` leaves out what a picture shows. Raises as `Tail.news` does; ValueError where there is
    no whole record, or none any more.
    """
    tail = Tail(directory)
    while True:
        now, is_news, lines = datetime.now(UTC), True, list[str]()
        for record in tail.news():
            is_news = is_news and record.seq > 0  # else the ledger is read from its beginning
            if is_news and tail.state:
                line = line_of(Run(tail.state, now, directory), record.event, brief=brief)
                lines += [line] if line else []
        if tail.state is None or tail.is_gone:
            raise ValueError(f"{directory / LEDGER} holds no whole record")
        yield lines, Run(tail.state, now, directory)


def pause(began: float) -> float:
    """Seconds until the next look; `began` is the process's CPU time when the last one began."""
    return max(LOOK_SECONDS, (time.process_time() - began) / LOOK_SHARE)


def line_of(  # noqa: PLR0911 - a kind of record each
    run: Run, event: Event, *, brief: bool = False
) -> str | None:
    """What a record says, the run being as of it; None of one that says nothing new.

    In `brief` without what a picture shows: healthy evaluations, what is spent, the pace.
    """
    match event:
        case Settled():
            return None if brief and event.score is not None else _evaluation(run, event)
        case GenerationTold():
            pace = text.pace_line(run.pace, run.now)
            also = "" if brief else f"\n  Spent: {text.spent(run)}.\n  {pace}"
            return f"{_generation(run, event)}{also}"
        case ComparisonAsked():
            names = [arm.name for arm in event.configurations]
            said = ", ".join(names) if len(names) < 7 else f"{len(names)} configurations"
            count = sum(map(len, event.seeds))
            return (
                f"Comparison ({comparison_name(event.comparison)}): {said} ({count} evaluations)."
            )
        case Opened():
            done, planned = run.state.accounts.evaluations, run.plan.resolved.evaluations
            verb = "Starting" if len(run.state.opened) == 1 else "Resuming"
            return f"{verb} {run.plan.phase} {run.plan.run_id}: {done} of {planned} settled."
        case Fired():
            return f"Rule {event.rule}: {event.evidence}."
        case Decided():
            return f"{title(event.grade, event.no_go)}: {event.evidence}."
        case Overridden():
            return f"Rule {event.rule} is overridden: {event.reason}"
        case Withdrawn():
            return f"Device {event.device} gets no more work: {event.why}."
        case _:  # said by the commands that write it, or by the next record
            return None


def _evaluation(run: Run, event: Settled) -> str:
    plan, accounts, pace = run.plan, run.state.accounts, run.pace
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.comparison is not None:
        done, planned = accounts.comparisons, plan.comparison_evaluations
    seed = "" if run.is_search and event.comparison is None else f", seed {event.seed}"
    parts = [
        f"[{done:{len(str(planned))}d}/{planned}]",
        f"{'baseline' if plan.phase == 'calibration' else run.which(event)}{seed}",
        event.status if event.score is None else f"{event.status} {event.score:.5g}",
        f"in {precise_duration(event.seconds)}",
    ]
    if event.recovered and event.final:
        parts.append("recovered")
    if event.cause:
        parts.append(f"({event.cause})")
    if event.retry:
        parts.append("to be retried elsewhere")
    if pace.remaining_hours is not None:
        off = text.on_track(pace).removeprefix("on track")
        parts.append(f"{duration(3600 * pace.remaining_hours)} left{', ' * bool(off)}{off}")
    return "  ".join(parts)


def _generation(run: Run, event: GenerationTold) -> str:
    generation = run.state.generations[event.generation]
    scores, baseline = run.healthy(generation), run.baseline
    against = "" if baseline is None else f", baseline {baseline.mean:.5g}"
    count = f"{event.generation + 1} of {run.plan.resolved.generations}"
    best, mean = (min(scores), sum(scores) / len(scores)) if scores else (None, None)
    return (
        f"Generation {event.generation} ({count}): best {number(best)}, mean "
        f"{number(mean)}{against}, {len(generation.failed)} failed, step size {event.sigma:.3g}."
    )


class Canvas(Console):
    """A terminal whose cursor is never hidden: nobody has to bring it back after a kill."""

    def show_cursor(self, show: bool = True) -> bool:  # noqa: ARG002
        return False


class Screen:
    """A terminal with a picture at its bottom, and lines that scroll by above it.

    The cursor rests on an empty line below the picture: there goes on whoever comes after a kill.
    A context manager; the last picture stays, unless it is `transient`.
    """

    def __init__(self, *, transient: bool = False) -> None:
        self._console = Canvas(emoji=False, highlight=False)
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=transient,
        )
        self._width, self._unsaid = 0, list[str]()

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._print()
        self._live.stop()

    def show(self, said: list[str], seen: Seen) -> None:
        """Print these lines, and the picture below them; later, where it is in the background.

        An interrupt waits until it is painted: what rich has half written it would write again.
        """
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        try:
            self._paint(said, seen)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _paint(self, said: list[str], seen: Seen) -> None:
        self._unsaid += said
        if not can_paint(self._console):
            return
        if self._console.width < self._width:  # the terminal has folded lines: nobody knows which
            self._console.clear()
        self._width, height = self._console.size
        if isinstance(seen, Run):
            self._live.update(Group(Picture(seen, max(1, height - ABOVE)), ""))
        else:
            self._live.update(Group(*map(harmless, seen.lines(self._width)), ""))
        self._print() if self._unsaid else self._live.refresh()

    def _print(self) -> None:
        said, self._unsaid = self._unsaid, []
        if said:
            self._console.print(Text("\n".join(map(printable, said))), soft_wrap=True)


def main() -> None:
    """Show what a parent process says through a pipe, until it closes that or is gone."""
    parent, pipe, rest = os.getppid(), sys.stdin.fileno(), b""
    if sys.platform == "linux":  # the shell that comes next is not painted over
        libc().prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    seconds: float | None = None  # the first line names a run
    with Screen(transient=True) as screen:
        while True:
            data, said = None, list[str]()
            if select.select([pipe], [], [], seconds)[0]:
                time.sleep(TOGETHER_SECONDS)
                data = os.read(pipe, PIPE_BYTES)
            if os.getppid() != parent:
                os._exit(0)
            if data == b"":
                return
            began = time.process_time()
            *lines, rest = (rest + (data or b"")).split(b"\n")
            for line in map(os.fsdecode, lines):
                if line.startswith(SHOW):
                    looked = looks(Path(line.removeprefix(SHOW)), brief=True)
                else:
                    said.append(line)
            _, run = next(looked)  # what is news the parent says
            screen.show(said, run)
            seconds = pause(began)


if __name__ == "__main__":
    main()
