"""Templates filled in, all of it escaped, and the policy under which a browser shows them."""

import base64
import hashlib
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from budgets.pace_text import clock
from orchestrator.serve import index
from orchestrator.serve.catalogue import Listing
from orchestrator.serve.view import View

TEMPLATES = Path(__file__).parent / "templates"


def policy() -> str:
    """Our script, our style, and this server: nothing else is loaded, run, sent to or framed."""
    hashed = base64.b64encode(hashlib.sha256(_file("style.css")).digest()).decode()
    return (
        f"default-src 'none'; script-src 'self'; style-src 'sha256-{hashed}'; connect-src 'self'; "
        "img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'"
    )


def script() -> bytes:
    """`/follow.js`."""
    return _file("follow.js")


def listing_page(listing: Listing, view: View, root: Path) -> bytes:
    """The list of runs as a document."""
    return _filled(
        "index.html", view=view, root=str(root), state="/state", content="/content", **_of(listing)
    )


def listing_content(listing: Listing) -> bytes:
    """What is in its <main>."""
    return _filled("runs.html", **_of(listing))


def _of(listing: Listing) -> dict[str, Any]:
    return {
        "sections": index.sections(listing),
        "notes": index.notes(listing),
        "left": index.left,
        "moment": moment,
    }


def moment(at: datetime) -> str:
    """On this machine's clock; with the date, if that is not today's."""
    return clock(at)


def _filled(name: str, **values: Any) -> bytes:
    style = Markup(_file("style.css").decode())  # noqa: S704 - our own file
    return _templates().get_template(name).render(style=style, **values).encode()


@cache
def _templates() -> Environment:
    return Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


@cache
def _file(name: str) -> bytes:
    return (TEMPLATES / name).read_bytes()
