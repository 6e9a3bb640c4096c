"""Runs as pages in a browser on this machine: a list of them, and each as it goes on.

Requests are answered one after the other on one thread, and nothing is written. An address names a
run by a hash of its directory, which is looked up among those that are there: no path is ever made
of what a request says.
"""

import hashlib
import os
import secrets
import signal
from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.resources import files
from pathlib import Path
from socket import socket
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

from budgets.formatting import one_line
from budgets.ledger import LEDGER, LedgerCorruptError
from budgets.state import ImpossibleEventError
from orchestrator.look import page, text
from orchestrator.look.answer import answer
from orchestrator.look.blocks import Answer, headline
from orchestrator.look.run import Run
from orchestrator.look.terminal import status_lines
from orchestrator.records.runs import is_set_aside, last_changed, load_state

HOST = "127.0.0.1"  # and no other: what is shown is for whoever has the runs
HEADERS = {
    "Content-Security-Policy": (
        f"{page.policy()}; script-src 'self'; connect-src 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
UNREADABLE = (LedgerCorruptError, ImpossibleEventError, ValueError, OSError)
DEEPEST = 6  # levels below the root that are looked through for runs


class Entry(NamedTuple):
    """A run of the list; or why it cannot be read, as its answer."""

    id: str
    place: str  # its directory, from the one that is listed
    changed: float  # its ledger
    name: str  # of the run
    about: str
    answer: Answer
    run: Run | None = None
    spent: str = ""
    progress: float | None = None  # 0 to 1, while somebody carries it out

    @property
    def stands(self) -> str:
        """Whether somebody carries it out, in a word."""
        return "unreadable" if self.run is None else self.run.standing.kind


class Site:
    """Answers requests for the pages of the runs in or below `root`, to who knows the token."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.token = secrets.token_hex(16)
        self.home = f"/{self.token}/"
        names = [HOST, "localhost"]  # a page of somebody else whose name leads here has its own
        self.app = Starlette(
            routes=[Route("/{token}/{name:path}", self._answer, methods=["GET"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)],
            exception_handlers={HTTPException: _refused},
        )
        self._sections: tuple[object, Markup] = (None, Markup())  # of the run shown last: its plots

    def entries(self) -> list[Entry]:
        """Those that go on first, then the latest."""
        found = map(self._read, directories(self.root))
        return sorted(found, key=lambda one: (one.progress is not None, one.changed), reverse=True)

    def _read(self, directory: Path) -> Entry:
        place = os.path.relpath(directory, self.root)
        about = (identifier(directory), place, last_changed(directory / LEDGER))
        try:
            run = Run(load_state(directory), datetime.now(UTC), directory)
            progress = run.pace.progress if run.standing.goes_on else None
            said, own, spent = page.about(run), answer(run), text.spent(run)
            return Entry(*about, run.plan.run_id, said, own, run, spent, progress)
        except UNREADABLE as error:
            own = headline("Cannot be read", one_line(str(error), 2000), "trouble")
            return Entry(*about, directory.name, "", own)

    def _main(self, name: str) -> tuple[str, Markup]:
        """The title and the content of the run of that id, or of the list, if there is one."""
        found = {identifier(one): one for one in directories(self.root)}
        directory = found.get(name or identifier(self.root))
        if directory is None and name:
            raise HTTPException(404)
        if directory is None:
            shown = {"root": str(self.root), "entries": self.entries(), "home": self.home}
            return self.root.name, page.filled("list.html.j2", **shown)
        one = self._read(directory)
        run = one.run
        lines = [] if run is None or one.progress is None else list(status_lines(run))
        main = page.filled("live.html.j2", one=one, home=self.home, lines=lines)
        main += page.filled("answer.html.j2", page=one)
        if run is not None:
            shows = one.id, one.stands, run.state.head
            if self._sections[0] != shows:
                sections = page.page_of(run).sections
                self._sections = shows, page.filled("sections.html.j2", sections=sections)
            main += self._sections[1]
        return one.name, main

    async def _answer(self, request: Request) -> Response:
        token, name = request.path_params["token"], request.path_params["name"]
        if not secrets.compare_digest(token.encode(), self.token.encode()):
            raise HTTPException(404)
        if name == "follow.js":
            script = files("orchestrator.look") / "templates" / name
            return Response(script.read_bytes(), headers=HEADERS, media_type="text/javascript")
        title, main = self._main(name)
        tag = f'"{hashlib.sha256(main.encode()).hexdigest()[:24]}"'
        headers = {**HEADERS, "ETag": tag}
        if request.headers.get("If-None-Match") == tag:
            return Response(status_code=304, headers=headers)
        body = main if "part" in request.query_params else page.document(title, main, tag)
        return Response(body, headers=headers, media_type="text/html")


def directories(root: Path) -> Iterator[Path]:
    """The runs in or below `root`, in order; no links, and none of those that are set aside."""
    for at, inner, names in os.walk(root):
        place = Path(at)
        is_run = LEDGER in (*names, *inner)
        if is_run:
            yield place
        if is_run or len(place.relative_to(root).parts) == DEEPEST:
            inner.clear()
        kept = (name for name in inner if not name.startswith(".") and not is_set_aside(Path(name)))
        inner[:] = sorted(set(kept) - {"eval", "reports"})


def identifier(directory: Path) -> str:
    """Names the run in an address: it says nothing of the path, and is the same next time."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]


def _refused(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    said = "Nothing is here: open the address that `serve` printed.\n"
    return PlainTextResponse(said, status_code=status, headers=HEADERS)


class _Server(uvicorn.Server):
    """Ends at once, also while it makes a page: nothing is written that could be left half done."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - its name
        os._exit(0 if sig == signal.SIGINT else 128 + sig)  # an exception becomes a status 500


def serve(site: Site, listener: socket) -> None:
    """Answer until SIGINT, which ends the process with 0, or SIGTERM (143)."""
    config = uvicorn.Config(  # the terminal is the person's: it gets errors alone
        site.app, log_config=None, log_level="error", access_log=False, server_header=False
    )
    _Server(config).run(sockets=[listener])
