"""A snapshot as a picture of text that fits into a terminal, however small."""

from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from textwrap import wrap
from typing import Any

from rich.console import Console, ConsoleOptions
from rich.segment import Segment

from budgets.plain import printable
from budgets.report.markdown import spent
from orchestrator.watch import parts
from orchestrator.watch.glyphs import FAINT, ODD, Glyphs, Line, fitted, glyphs_for, shown, wrapped
from orchestrator.watch.later import later
from orchestrator.watch.readers import Showing
from orchestrator.watch.rows import device_lines
from orchestrator.watch.snapshot import Snapshot

LABEL, NARROW = 13, 60
"""Columns of what a line is about; below so many columns of the terminal it is left out."""

ENDLESS = 1000
"""Lines, where nobody counts them."""

SHARES = (
    ("run", 1),
    ("now", 1),
    ("time", 1),
    ("evaluations", 1),
    ("score", 1),
    ("so", 3),
    ("run", 2),
    ("time", 2),
    ("devices", 3),
    ("rules", 2),
    ("fresh seeds", 2),
    ("budget", 1),
    ("score", 4),
    ("means", 1),
    ("last", 1),
    ("budget", 5),
    ("devices", 8),
    ("means", 2),
    ("fresh seeds", 8),
    ("last", 5),
    ("devices", ENDLESS),
    ("rules", ENDLESS),
)
"""Who gets how many lines, the one in greatest need first."""


class View:
    """A snapshot in at most `height` lines, or in all that it takes.

    A rich renderable, as wide as what it is printed on.
    """

    def __init__(self, found: Snapshot, height: int = ENDLESS) -> None:
        self._found = found
        self._height = height

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> Iterator[Segment]:
        width, encoding = options.max_width, options.encoding
        glyphs = glyphs_for(encoding)
        for line in self._lines(width, glyphs):
            clean = tuple((shown(text, encoding).replace("\n", " "), style) for text, style in line)
            yield from (Segment(*piece) for piece in fitted(clean, width, glyphs.cut))
            yield Segment.line()

    def _lines(self, width: int, glyphs: Glyphs) -> Iterator[Line]:
        """In reading order; each may still be too long."""
        label = LABEL if width >= NARROW else 0
        inner, found = width - label, self._found
        wanted = _parts(found, inner, glyphs)
        sizes = {name: len(own) for name, own in wanted.items()}
        sizes["devices"] = len(found.devices)
        rows = _shares(sizes, self._height)
        wanted["devices"] = device_lines(found.devices, rows["devices"], inner, glyphs)
        if wanted["budget"] and rows["budget"] < sizes["budget"]:
            wanted["budget"] = [((spent(found.balances), None),)]
        for name, whole in wanted.items():
            for number, line in enumerate(whole[: rows[name]]):
                said = f"{name if number == 0 else '':{label}s}" if label else ""
                yield ((said, FAINT), *line)


def run_in(directory: Path, now: Callable[[], datetime]) -> Showing[Snapshot]:
    """The run there, as of `now` however long ago its last record is."""

    def picture(found: Snapshot, lines: int | None) -> View:
        return View(found) if lines is None else View(later(found, now()), lines)

    def news(before: Snapshot | None, found: Snapshot) -> Iterator[str]:
        if before is None or before.holder != found.holder:
            yield f"{directory}: {found.whose}"
            yield found.said

    return Showing(
        picture,
        news,
        key=lambda found: (found.records, found.holder),
        document=lambda found: _document(directory, found),
    )


def _document(directory: Path, found: Snapshot) -> dict[str, Any]:
    """With keys that mean the same in every document about a run."""
    said = found.model_dump(mode="json")
    slots, planned = said.pop("devices"), said.pop("generations")
    return {"directory": str(directory), **said, "generations_planned": planned, "slots": slots}


def _parts(found: Snapshot, width: int, glyphs: Glyphs) -> dict[str, list[Line]]:
    """All there is to say, in reading order; of devices nothing, there may be hundreds."""
    return {
        "run": wrapped(parts.who(found), width),
        "now": [parts.where(found, width, glyphs)],
        "time": wrapped(parts.when(found), width),
        "so": list(_so(found, width)),
        "evaluations": [parts.evaluations(found)],
        "score": [
            whole
            for line in (*parts.mean(found, glyphs), *parts.best(found.scores))
            for whole in wrapped(line, width)
        ],
        "means": parts.means(found.scores, width, glyphs),
        "fresh seeds": parts.arms(found.arms),
        "budget": parts.budget(found.balances, width, glyphs),
        "devices": [],
        "rules": list(parts.notes(found)),
        "last": parts.recent(found.recent),
    }


def _so(found: Snapshot, width: int) -> Iterator[Line]:
    """What a person is to know or do where nothing goes on."""
    if found.decision != "continue":
        yield from (((line, None),) for line in wrap(printable(found.sentence), max(10, width)))
    elif found.way_on:
        yield ((found.way_on, ODD),)


def _shares(wanted: dict[str, int], height: int) -> Counter[str]:
    """How many lines each part gets."""
    rows: Counter[str] = Counter()
    for name, most in SHARES:
        more = min(wanted[name], most) - rows[name]
        rows[name] += max(0, min(more, height - rows.total()))
    return rows
