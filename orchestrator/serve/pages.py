"""Templates filled in, all of it escaped, and the policy under which a browser shows them."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from budgets.report.markdown import amount
from budgets.report.pace_text import clock
from budgets.words import duration, number
from orchestrator.report import page
from orchestrator.report.collect import report as collected
from orchestrator.report.rendering import environment, hash_of
from orchestrator.report.rendering import style as report_style
from orchestrator.serve import index, watching
from orchestrator.serve.catalogue import Listing
from orchestrator.serve.entry import Entry
from orchestrator.serve.view import View
from orchestrator.watch.rows import name_of
from orchestrator.watch.snapshot import Snapshot

WAITING = b'<p class="soft">The report is being made and comes by itself.</p>'
"""What is in <main> of a run whose report is not made yet."""


@cache
def policy() -> str:
    """Our script, our style, and this server: nothing else is loaded, run, sent to or framed."""
    return (
        f"default-src 'none'; script-src 'self'; style-src {hash_of(style())}; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


@cache
def style() -> str:
    """The report's style sheet and our own."""
    return f"{report_style()}{_file('style.css')}"


@cache
def script() -> bytes:
    """`/follow.js`."""
    return _file("follow.js").encode()


def listing_view(listing: Listing, root: Path) -> View:
    """The state of the list: only runs that go on change without <main> being drawn anew."""
    parts = {"head": _filled("index.html", **_head(listing, root))}
    for section in index.sections(listing):
        if section.id == "running":
            parts[section.id] = _filled("section.html", section=section)
    version = index.version(listing.entries, index.notes(listing))
    return View(index.title(listing, root), version, parts)


def listing_page(listing: Listing, view: View, root: Path) -> bytes:
    """The list of runs as a document."""
    return _document("index.html", view, listing_content(listing), **_head(listing, root))


def listing_content(listing: Listing) -> bytes:
    """What is in its <main>."""
    sections, notes = index.sections(listing), index.notes(listing)
    return _filled("runs.html", sections=sections, notes=notes).encode()


def _head(listing: Listing, root: Path) -> dict[str, Any]:
    return {"root": str(root), "counts": index.counts(listing), "address": ""}


def run_view(entry: Entry, snapshot: Snapshot | None, version: str) -> View:
    """The state of a run's page. Without a snapshot its ledger cannot be read: `entry` says why."""
    return View(
        watching.title(entry, snapshot),
        version,
        {"head": _filled("run.html", entry=entry, run=snapshot)},
        is_over=snapshot is not None and snapshot.is_over,
    )


def run_page(entry: Entry, snapshot: Snapshot | None, view: View, content: bytes) -> bytes:
    """A run as a document: its head, and the report, which is HTML already."""
    address = f"/{entry.id}"
    return _document("run.html", view, content, entry=entry, run=snapshot, address=address)


def unreadable(entry: Entry) -> bytes:
    """What is in <main> of a run whose ledger cannot be read, or is empty."""
    return _filled("unreadable.html", entry=entry).encode()


def report(directory: Path) -> str:
    """What is in <main> of a run: its report as it stands. Raises as `recorded_state`."""
    return page.content(collected(directory, datetime.now(UTC)))


def _document(head: str, view: View, content: bytes, **values: Any) -> bytes:
    sheet, main = Markup(style()), Markup(content.decode())  # noqa: S704 - our own, and templates'
    known = {"head": head, "view": view, "style": sheet, "main": main}
    return _filled("frame.html", now=datetime.now(UTC), **known, **values).encode()


def _filled(name: str, **values: Any) -> str:
    return _templates().get_template(name).render(**values)


@cache
def _templates() -> Environment:
    return environment(
        "orchestrator.serve",
        amount=amount,
        duration=duration,
        left=index.left,
        moment=clock,  # on this machine's clock
        name_of=name_of,
        number=number,
        watching=watching,
    )


def _file(name: str) -> str:
    return (files("orchestrator.serve") / "templates" / name).read_text()
