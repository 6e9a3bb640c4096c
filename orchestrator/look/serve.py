"""Runs as pages in a browser on this machine: a list of them, and each as it goes on.

Requests are answered one after the other on one thread, and nothing is written. An address names a
run by a hash of its directory, which is looked up among those that are there: no path is ever made
of what a request says.
"""

import hashlib
import os
import secrets
import signal
import socket
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from types import FrameType
from typing import NamedTuple

import uvicorn
from markupsafe import Markup
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response
from starlette.routing import Route

from budgets.blocks import Table, Text
from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LEDGER, LedgerCorruptError
from budgets.plain import one_line, plain
from budgets.words import precise_duration
from orchestrator.look import page, text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Answer, Block
from orchestrator.look.run import Run
from orchestrator.records.recorded import is_set_aside, load_state

HOST = "127.0.0.1"
"""And no other: what is shown is for whoever has the runs."""

NAMES = [HOST, "localhost"]
"""By which a browser may know us. A page of somebody else whose name leads here has its own."""

HEADERS = {
    "Content-Security-Policy": f"{page.policy(with_script=True)}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
}
UNREADABLE = (LedgerCorruptError, ImpossibleEventError, ValueError, OSError)
"""Why a ledger cannot be read. Each says how to go on."""

DEEPEST = 6
"""Levels below the root that are looked through for runs."""

MOST_SLOTS = 64


class Entry(NamedTuple):
    """A run of the list; or why it cannot be read, as its answer."""

    id: str
    place: str  # its directory, from the one that is listed
    changed: tuple[float, int]  # the ledger; as long as it is the same, so is what it says
    header: page.Header
    answer: Answer
    run: Run | None = None
    goes_on: bool = False  # somebody carries it out
    stands: str = "unreadable"
    spent: str = ""


class Site:
    """Answers requests for the pages of the runs in or below `root`, to who knows the token."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.token = secrets.token_hex(16)
        self.home = f"/{self.token}/"
        self.app = Starlette(
            routes=[Route("/{token}/{name:path}", self._answer, methods=["GET"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=NAMES, www_redirect=False)],
            exception_handlers={HTTPException: _refused},
        )
        self._entries: dict[Path, Entry] = {}
        self._sections: tuple[object, Markup] = (None, Markup())  # of the run shown last: its plots

    @property
    def first(self) -> str:
        """Where a reader begins: at the run, if it is one run that is served."""
        is_one_run = os.path.lexists(self.root / LEDGER)
        return self.home + (identifier(self.root) if is_one_run else "")

    def entries(self) -> list[Entry]:
        """Those that go on first, then the latest. Each is read when its ledger has changed."""
        self._entries = {place: self._entry(place) for place in directories(self.root)}
        found = self._entries.values()
        return sorted(found, key=lambda one: (one.goes_on, one.changed), reverse=True)

    def _entry(self, directory: Path) -> Entry:
        known, changed = self._entries.get(directory), _changed(directory)
        if known is not None and known.changed == changed and not known.goes_on:
            return known
        about = identifier(directory), os.path.relpath(directory, self.root), changed
        try:
            run = Run(load_state(directory), datetime.now(UTC), directory)
            known = Entry(*about, page.header(run), answer(run), run, run.standing.goes_on)
        except UNREADABLE as error:
            own = page.headline("Cannot be read", one_line(str(error), 2000), "trouble")
            return Entry(*about, page.Header(directory.name), own)
        stands: str = "running" if known.goes_on else run.standing.kind
        if run.standing.host:
            stands += f" on {run.standing.host}"
        return known._replace(stands=stands, spent=text.spent(run))

    def _main(self, name: str) -> tuple[str, Markup]:
        """The title and the content of the list, without a name, or of the run of that id.

        Raises HTTPException where there is none.
        """
        if not name:
            shown = {"root": str(self.root), "entries": self.entries(), "home": self.home}
            return self.root.name, page.filled("list.html.j2", **shown)
        directory = {identifier(one): one for one in directories(self.root)}.get(name)
        if directory is None:
            raise HTTPException(404)
        one = self._entry(directory)
        blocks = list(_live(one.run)) if one.run is not None and one.goes_on else []
        main = page.filled("live.html.j2", one=one, home=self.home, blocks=blocks)
        main += page.filled("answer.html.j2", header=one.header, answer=one.answer)
        shows = one.id, one.changed, one.stands
        if one.run is not None and self._sections[0] != shows:
            sections = page.sections_of(one.run)
            self._sections = shows, page.filled("sections.html.j2", sections=sections)
        return one.header.name, main if one.run is None else main + self._sections[1]

    async def _answer(self, request: Request) -> Response:
        token, name = request.path_params["token"], request.path_params["name"]
        if not secrets.compare_digest(token.encode("utf-8", "replace"), self.token.encode()):
            raise HTTPException(404)
        if name == "follow.js":
            script = files("orchestrator.look") / "templates" / name
            return Response(script.read_bytes(), headers=HEADERS, media_type="text/javascript")
        title, main = self._main(name)
        tag = f'"{hashlib.sha256(main.encode("utf-8", "replace")).hexdigest()[:24]}"'
        headers = {**HEADERS, "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers=headers)
        is_part = "part" in request.query_params
        body = main if is_part else page.document(title, main, tag)
        return Response(body.encode("utf-8", "replace"), headers=headers, media_type="text/html")


def directories(root: Path) -> Iterator[Path]:
    """The runs in or below `root`, in order.

    Links are not followed; what is set aside is nobody's run; what cannot be looked into is left
    out.
    """
    for at, inner, names in os.walk(root):
        place = Path(at)
        is_run = LEDGER in (*names, *inner)
        if is_run:
            yield place
        if is_run or len(place.relative_to(root).parts) == DEEPEST:
            inner.clear()
        inner[:] = sorted(name for name in inner if not _is_skipped(name))


def _is_skipped(name: str) -> bool:
    return name.startswith(".") or name in {"eval", "reports"} or is_set_aside(Path(name))


def identifier(directory: Path) -> str:
    """Names the run in an address: it says nothing of the path, and is the same next time."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]


def _changed(directory: Path) -> tuple[float, int]:
    try:
        status = (directory / LEDGER).lstat()
    except OSError:  # gone since
        return 0.0, 0
    return status.st_mtime, status.st_size


def _live(run: Run) -> Iterator[Block]:
    """What a run that goes on does now: how far it is, when it ends, each device."""
    yield Text(plain(f"{text.progress(run)} {text.pace_line(run.pace, run.now)}"))
    rows = []
    for slot in run.slots[:MOST_SLOTS]:
        took = "" if slot.seconds is None else precise_duration(slot.seconds)
        took += ", **overdue**" if slot.is_overdue else ""
        done = "" if slot.progress is None else f"{slot.progress:.0%}"
        what = plain(slot.what) or slot.doing
        rows.append([str(slot.slot + 1), plain(slot.device), what, took, done])
    yield Table("", [">slot", "device", "evaluates", ">for", ">done"], rows)


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    said = "Nothing is here: open the address that `serve` printed.\n"
    return PlainTextResponse(said, status_code=error.status_code, headers=HEADERS)


class _Server(uvicorn.Server):
    """Ends at once, also while it makes a page: nothing is written that could be left half done."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - its name
        os._exit(0 if sig == signal.SIGINT else 128 + sig)  # an exception becomes a status 500


def listening(port: int) -> socket.socket:
    """A socket on loopback; 0: any port. Raises OSError where it cannot be had."""
    return socket.create_server((HOST, port), backlog=128)


def serve(site: Site, listener: socket.socket) -> None:
    """Answer until SIGINT, which ends the process with 0, or SIGTERM (143)."""
    config = uvicorn.Config(
        site.app,
        log_config=None,  # the terminal is the person's: it gets errors alone
        log_level="error",
        access_log=False,
        server_header=False,
        limit_concurrency=128,
    )
    _Server(config).run(sockets=[listener])
