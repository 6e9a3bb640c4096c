"""The list of runs as a page: its sections, and when it is to be drawn anew."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from budgets.plain import printable
from budgets.report.pace_text import per_cent
from orchestrator.serve.catalogue import Listing
from orchestrator.serve.entry import Entry
from orchestrator.serve.view import digest


@dataclass(frozen=True)
class Section:
    """Runs under one title."""

    id: str
    title: str
    entries: tuple[Entry, ...]


def sections(listing: Listing) -> tuple[Section, ...]:
    """What goes on, then what people look for, then what was made on the way."""
    running: list[Entry] = []
    runs: list[Entry] = []
    calibrations: list[Entry] = []
    for entry in listing.entries:
        if entry.goes_on:
            running.append(entry)
        else:
            (calibrations if entry.phase == "calibration" else runs).append(entry)
    found = (
        Section("running", "Running", tuple(running)),
        Section("runs", "Runs", tuple(runs)),
        Section("calibrations", "Calibrations", tuple(calibrations)),
    )
    return tuple(section for section in found if section.entries)


def notes(listing: Listing) -> tuple[str, ...]:
    """What the list owes its reader beside the runs."""
    found = []
    if listing.unread:
        found.append(f"{listing.unread} more are being read.")
    if not listing.is_all:
        found.append("There is more below this directory than was looked through.")
    return tuple(found)


def version(entries: Sequence[Entry], said: Sequence[str]) -> str:
    """Another one when a run comes, goes or stands otherwise, or one that stands is told more."""
    parts = [
        f"{e.id} {e.standing} {e.where} {e.mood}"
        + ("" if e.goes_on else f" {e.heard} {e.sentence}")
        for e in entries
    ]
    return digest("\n".join([*parts, *said]).encode())


def title(listing: Listing, root: Path) -> str:
    running = f"{listing.running} running, " if listing.running else ""
    return f"{running}{printable(root.name)}"


def counts(listing: Listing) -> str:
    """`3 running, 41 in all.`"""
    whole = len(listing.entries)
    return f"{listing.running} running, {whole} in all." if listing.running else f"{whole} runs."


def left(entry: Entry) -> str:
    """Under a run's bar."""
    share = "" if entry.progress is None else per_cent(entry.progress)
    return ", ".join(filter(None, (share, entry.left)))
