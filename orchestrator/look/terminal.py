"""A run on a terminal: rows of `status`, a line for each record, and the live picture.

As a program of its own, which `cli/run.py` starts, this module keeps the picture below what a
command prints. It only reads the ledger: nothing that happens to it, or to the terminal, delays
an evaluation.
"""

import os
import select
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, Any

from budgets import events
from budgets.formatting import duration, listed, number, plain, printable
from budgets.ledger import LEDGER
from budgets.schedule import pace
from budgets.verdict import title
from objectives.process import die_with_parent
from orchestrator.look import text
from orchestrator.look.answer import answer
from orchestrator.look.page import markdown
from orchestrator.look.run import Run, Slot, comparison_name
from orchestrator.look.sections import about, page_of
from orchestrator.records.runs import Tail

MOST_SLOTS = 8  # lines about slots

LOOK_SECONDS, LOOK_SHARE, LOOK_MOST = 1.0, 0.005, 5.0  # between looks; of a core; at most
TOGETHER_SECONDS = 0.1  # lines within so long are printed at once
SHOW = "\0"  # begins a line that names the run to show; every other line is printed
PIPE_BYTES = 1 << 16


# How a run stands


def status_lines(run: Run) -> Iterator[str]:
    """Yield how the run stands: the answers of its report, and what its slots do."""
    yield f"{run.plan.run_id}, {about(run)}: {run.standing.whose}"
    yield from answer(run).lines()
    if run.standing.kind == "running":
        yield from (f"  {line}" for line in slot_lines(run.slots))
    yield f"Files: {run.directory}"


def told(run: Run) -> tuple[list[str], str]:
    """Return the answers of a run's report, and before them, in Markdown, its details."""
    page = page_of(run, with_plots=False)
    details = markdown(one for one in page.sections if one.title != "Provenance")
    return ["", *page.answer.lines()], f"# {plain(page.name)}\n\n{details}"


def slot_lines(slots: tuple[Slot, ...], most: int = MOST_SLOTS) -> list[str]:
    """Return a line for each of so many slots, overdue ones first and idle ones last."""
    shown = sorted(slots, key=lambda one: (not one.is_overdue, one.doing == "idle"))[:most]
    left = len(slots) - len(shown)
    return [*map(_slot, shown), *[f"and {left} more"] * bool(left)]


def _slot(slot: Slot) -> str:
    """Return the slot and its device, how long it has been busy, with what, and how far it is."""
    took = "" if slot.seconds is None else duration(slot.seconds)
    if took and slot.expected_seconds is not None:
        took += f" of ~{duration(slot.expected_seconds)}"
    notes = {
        slot.doing: slot.doing != "running",
        f"overdue, killed after {duration(slot.limit_seconds or 0)}": slot.is_overdue,
        f"attempt {slot.attempt}": slot.attempt > 1,
        f"step {number(slot.step, 9)}": slot.step is not None,
        f"{slot.progress or 0:.0%}": slot.progress is not None,
        f"loss {number(slot.loss, 4)}": slot.loss is not None,
    }
    said = ", ".join(note for note, is_so in notes.items() if is_so)
    own = f"{f'slot {slot.slot} {slot.device}':14}  {took:24}  {slot.what:30}  {said}"
    return printable(own).rstrip()


# A line for each record


def line_of(run: Run, event: events.Event) -> str | None:  # noqa: PLR0911 - a case a record
    """Return what a record says; None where another line says it."""
    match event:
        case events.Settled():
            return _evaluation(run, event)
        case events.GenerationTold():
            own = next(one for one in run.generations if one.number == event.generation)
            baseline = "" if run.baseline is None else f", baseline {number(run.baseline.mean)}"
            said = f"Generation {own.number} ({own.number + 1} of {run.plan.resolved.generations})"
            said += f": best {number(own.best)}, mean {number(own.mean)}{baseline}, {own.failed} "
            said += f"failed, step size {event.sigma:.3g}."
            return f"{said}\n  Spent: {'; '.join(text.balances(run))}.\n  {text.pace_line(run)}"
        case events.Asked() if event.comparison is not None:
            names = listed((one.name for one in event.configurations), 6)
            name, count = comparison_name(event.comparison), sum(map(len, event.seeds))
            return f"Comparison ({name}): {names} ({count} evaluations)."
        case events.Opened():
            done, planned = run.state.accounts.evaluations, run.plan.resolved.evaluations
            verb = "Starting" if len(run.state.opened) == 1 else "Resuming"
            return f"{verb} {run.plan.phase} {run.plan.run_id}: {done} of {planned} settled."
        case events.Fired():
            return f"Rule {event.rule}: {text.rule(run.state, event)}."
        case events.Decided():
            return f"{title(event.grade, event.no_go)}: {text.decision(run.state, event)}."
        case events.Overridden():
            return f"Rule {event.rule} is overridden: {event.reason}"
    return None


def _evaluation(run: Run, event: events.Settled) -> str:
    plan, accounts, remaining = run.plan, run.state.accounts, pace(run.state).remaining_hours
    done, planned = accounts.evaluations, plan.resolved.evaluations
    if event.comparison is not None:
        done, planned = accounts.comparisons, plan.comparison_evaluations
    seed = "" if run.is_search and event.comparison is None else f", seed {event.seed}"
    score = "" if event.score is None else f" {number(event.score)}"
    parts = (
        f"[{done:{len(str(planned))}d}/{planned}]",
        f"{run.which(event)}{seed}",
        f"{event.status}{score}",
        f"in {duration(event.seconds)}",
        event.cause and f"({event.cause})",
        "to be retried" if event.retry else "",
        "" if remaining is None else f"{duration(3600 * remaining)} left",
    )
    return "  ".join(filter(None, parts))


# Following a run


def looks(directory: Path, *, with_lines: bool = True) -> Iterator[tuple[list[str], Run]]:
    """Yield the new lines since the look before, and the run; the first look has no lines.

    Raises as `Tail.news` does, and ValueError without a whole record.
    """
    tail = Tail(directory)
    while True:
        now, is_news, lines = datetime.now(UTC), True, list[str]()
        for record in tail.news():
            is_news = is_news and record.seq > 0  # else the ledger is read from its beginning
            if with_lines and is_news and tail.state:
                line = line_of(Run(tail.state, now, directory), record.event)
                lines += [line] if line else []
        if tail.state is None or tail.is_gone:
            raise ValueError(f"{directory / LEDGER} holds no whole record")
        yield lines, Run(tail.state, now, directory)


def pause(began: float) -> float:
    """Return the seconds until the next look, given the CPU time when the last one began."""
    seconds = (time.process_time() - began) / LOOK_SHARE
    return min(LOOK_MOST, max(LOOK_SECONDS, seconds))


# The picture


def picture(seen: Run) -> Any:
    """Return how a run stands, and the empty line on which the cursor rests, for rich."""
    from rich.console import Group
    from rich.text import Text

    lines = (printable(line).replace("\n", " ") for line in status_lines(seen))
    return Group(Text("\n".join(lines)), "")


def can_paint(stream: IO[str]) -> bool:
    """Whether it is a terminal to paint on, and this is not a background job."""
    with suppress(OSError, ValueError):  # it is not our terminal, or none
        is_in_front = os.tcgetpgrp(stream.fileno()) == os.getpgrp()
        return is_in_front and os.environ.get("TERM", "dumb") not in ("dumb", "unknown")
    return False


class Screen:
    """A terminal with a picture at its bottom, and lines that scroll by above it.

    The cursor rests on an empty line below the picture, where the shell continues after a kill. A
    context manager; the last picture stays, unless it is `transient`.
    """

    def __init__(self, *, transient: bool = False) -> None:
        from rich.console import Console
        from rich.live import Live

        self._console = Console(emoji=False, highlight=False)
        # Never hidden, so that a kill leaves it visible.
        self._console.show_cursor = lambda show=True: False  # type: ignore[method-assign]  # noqa: ARG005
        self._live = Live(
            console=self._console,
            auto_refresh=False,
            redirect_stdout=False,
            redirect_stderr=False,
            transient=transient,
            vertical_overflow="crop",
        )
        self._unsaid = list[str]()

    def __enter__(self) -> "Screen":
        self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._print()
        self._live.stop()

    def show(self, said: list[str], seen: Run) -> None:
        """Print lines, and the picture below them; a background job keeps the lines for later.

        An interrupt waits until it is painted: rich would write a half-written picture again.
        """
        self._unsaid += said
        if not can_paint(self._console.file):
            return
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
        self._live.update(picture(seen), refresh=True)
        self._print()
        signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def _print(self) -> None:
        said, self._unsaid = self._unsaid, []
        if said:
            from rich.text import Text

            self._console.print(Text("\n".join(map(printable, said))), soft_wrap=True)


def main() -> None:
    """Show what a parent process sends through a pipe, until it closes the pipe or ends."""
    pipe, rest = sys.stdin.fileno(), b""
    die_with_parent(os.getppid())
    seconds: float | None = None  # the first line names a run
    with Screen(transient=True) as screen:
        while True:
            data, said = None, list[str]()
            if select.select([pipe], [], [], seconds)[0]:
                time.sleep(TOGETHER_SECONDS)
                data = os.read(pipe, PIPE_BYTES)
            if data == b"":
                return
            began = time.process_time()
            *lines, rest = (rest + (data or b"")).split(b"\n")
            for line in map(os.fsdecode, lines):
                if line.startswith(SHOW):
                    # its lines come through the pipe
                    looked = looks(Path(line.removeprefix(SHOW)), with_lines=False)
                else:
                    said.append(line)
            _, run = next(looked)
            screen.show(said, run)
            seconds = pause(began)


if __name__ == "__main__":
    main()
