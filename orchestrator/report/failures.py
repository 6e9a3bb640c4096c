"""Why attempts failed, each kind with the last lines of a log."""

import os
from pathlib import Path

from budgets.causes import Cause
from budgets.events import Settled
from budgets.plain import printable
from budgets.report.failures import by_cause
from budgets.state import RunState
from objectives.secrets import redacted, without_values
from orchestrator.records.attempts import attempt_place
from orchestrator.report.files import read_end
from orchestrator.report.model import FailureGroup

LOGS = ("stderr.txt", "stdout.txt")
MOST_PLACES = 5
"""Directories that a group names; a log is looked for in these."""

MOST_SHOWN = 3
"""Lines of it on a terminal: what was raised, and where."""

MOST_LINES, MOST_CHARACTERS, MOST_BYTES = 12, 240, 64 << 10
LONGEST_READ = 2000
"""Characters of a line that are looked at."""


def failures(directory: Path, state: RunState) -> tuple[FailureGroup, ...]:
    """Attempts that failed alike, the most frequent kind first."""
    ends = state.ends()
    return tuple(_group(directory, cause, own) for cause, own in by_cause(ends))


def look_into(directory: Path, state: RunState, *, is_held_up: bool) -> tuple[str, ...]:
    """Where the output of one that failed lies, and how it ends; nothing where none has.

    Of what holds a run up before others; what was lost or tried again counts only there.
    """
    failed = [end for _, own in by_cause(state.ends()) for end in own if end.final or is_held_up]
    if not failed:
        return ()
    failed.sort(key=lambda end: (end == state.setup_failed, end.final, end.generation))
    places = [f"eval/{attempt_place(end)}" for end in reversed(failed[-MOST_PLACES:])]
    logs = (_log(directory, place) for place in places)
    lines, where = next((found for found in logs if found[0]), ((), places[0]))
    said = [f"  {line}" for line in lines if any(map(str.isalnum, line))]  # no ~~~^^^
    return (f"Look into it: {directory / where}", *said[-MOST_SHOWN:])


def _group(directory: Path, cause: Cause, own: list[Settled]) -> FailureGroup:
    places = {f"eval/{attempt_place(end)}": end for end in own[:MOST_PLACES]}
    logs = ((end, *_log(directory, place)) for place, end in places.items())
    example, log, log_from = next((found for found in logs if found[1]), (own[0], (), ""))
    return FailureGroup(
        whose=cause.whose,
        what=cause.what,
        attempts=len(own),
        final=sum(end.final for end in own),
        places=tuple(places),
        example=example.cause,
        log=log,
        log_from=log_from,
    )


def _log(directory: Path, place: str) -> tuple[tuple[str, ...], str]:
    """The last lines of the first log with anything in it, and which that is."""
    for name in LOGS:
        try:
            data = read_end(directory, f"{place}/{name}", MOST_BYTES)
        except OSError:
            continue
        if lines := last_lines(data):
            return lines, f"{place}/{name}"
    return (), ""


def last_lines(data: bytes) -> tuple[str, ...]:
    """The last lines of a log as they may be shown: without secrets, none too long."""
    text = without_values(data.decode(errors="replace"), os.environ)
    lines = [line.rstrip() for line in text.replace("\r", "\n").split("\n")]
    said = [line for line in lines if line][-MOST_LINES:]
    return tuple(_shown(line) for line in said)


def _shown(line: str) -> str:
    """As much of it as there is room for. A word that is cut may be half a secret: it is left out.

    To look for secrets takes as long as the square of a hostile line.
    """
    if len(line) > LONGEST_READ:
        line = line[:LONGEST_READ].rpartition(" ")[0]
    line = printable(redacted(line, os.environ).expandtabs(4))
    return line if len(line) <= MOST_CHARACTERS else f"{line[: MOST_CHARACTERS - 3]}..."
