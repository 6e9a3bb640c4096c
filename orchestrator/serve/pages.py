"""Templates filled in, all of it escaped, and the policy under which a browser shows them."""

from datetime import UTC, datetime
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from jinja2 import Environment
from markupsafe import Markup

from budgets.report.pace_text import clock
from orchestrator.report import page
from orchestrator.report.collect import report as collected
from orchestrator.report.rendering import environment, hash_of
from orchestrator.report.rendering import style as report_style
from orchestrator.serve import index, watching
from orchestrator.serve.catalogue import Listing
from orchestrator.serve.entry import Entry
from orchestrator.serve.view import View


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


def listing_page(listing: Listing, view: View, root: Path) -> bytes:
    """The list of runs as a document."""
    where = {"root": str(root), "state": "/state", "content": "/content"}
    return _document("index.html", view, **where, **_of(listing))


def listing_content(listing: Listing) -> bytes:
    """What is in its <main>."""
    return _filled("runs.html", **_of(listing))


def run_page(entry: Entry, view: View, content: bytes) -> bytes:
    """A run as a document: its head, and the report, which is HTML already."""
    return _document(
        "run.html",
        view,
        entry=entry,
        report=Markup(content.decode()),  # noqa: S704 - made by templates too
        terms=watching.TERMS,
        state=f"/{entry.id}/state",
        content=f"/{entry.id}/content",
    )


def unreadable(entry: Entry) -> bytes:
    """What is in <main> of a run whose ledger cannot be read, or is empty."""
    return _filled("unreadable.html", entry=entry)


def report(directory: Path) -> str:
    """What is in <main> of a run: its report as it stands. Raises as `recorded_state`."""
    return page.content(collected(directory))


def _of(listing: Listing) -> dict[str, Any]:
    return {"sections": index.sections(listing), "notes": index.notes(listing), "left": index.left}


def _document(name: str, view: View, **values: Any) -> bytes:
    sheet = Markup(style())  # noqa: S704 - our own files
    return _filled(name, view=view, style=sheet, now=datetime.now(UTC), **values)


def _filled(name: str, **values: Any) -> bytes:
    return _templates().get_template(name).render(**values).encode()


@cache
def _templates() -> Environment:
    return environment("orchestrator.serve", moment=clock)  # on this machine's clock


def _file(name: str) -> str:
    return (files("orchestrator.serve") / "templates" / name).read_text()
