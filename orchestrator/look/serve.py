"""Runs as pages in a browser on this machine: a list, and for each run a page that is updated.

Requests are answered one after the other, and nothing is written. An address names a run by a hash
of its directory, which is looked up among those found: no path is made from a request.
"""

import hashlib
import os
import secrets
import signal
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
from budgets.ledger import LedgerCorruptError
from orchestrator.look import page, sections
from orchestrator.look.answer import answer
from orchestrator.look.page import Answer
from orchestrator.look.run import Run
from orchestrator.look.terminal import slot_lines
from orchestrator.records.runs import last_changed, load_state, runs_below

HOST = "127.0.0.1"  # pages are for the user of this machine only
HEADERS = {
    "Content-Security-Policy": (
        f"{page.policy()}; script-src 'self'; connect-src 'self'; frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",  # the address holds the token
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
}
UNREADABLE = (LedgerCorruptError, ValueError, OSError)


class Entry(NamedTuple):
    """A run of the list; its answer says why it cannot be read where that is so."""

    id: str
    place: str  # its directory, relative to the root
    changed: float  # its ledger
    name: str
    answer: Answer
    about: str = ""
    stands: str = "unreadable"
    run: Run | None = None
    progress: float | None = None  # 0 to 1, while it runs


class Site:
    """Pages of the runs in or below `root`, for those who know the token."""

    def __init__(self, root: Path) -> None:
        self.root = root.absolute()
        self.token = secrets.token_hex(16)
        self.home = f"/{self.token}/"
        names = [HOST, "localhost"]  # DNS rebinding comes with another name
        self.app = Starlette(
            routes=[Route("/{token}/{name:path}", self._respond, methods=["GET"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=names, www_redirect=False)],
            exception_handlers={HTTPException: _refused},
        )
        self._sections: tuple[object, Markup] = (None, Markup())  # of the last run: plots are slow

    def entries(self) -> list[Entry]:
        """Return the runs: those in progress first, then the latest."""
        found = map(self._read, runs_below(self.root))
        return sorted(found, key=lambda one: (one.progress is not None, one.changed), reverse=True)

    def _read(self, directory: Path) -> Entry:
        place = os.path.relpath(directory, self.root)
        where = (identifier(directory), place, last_changed(directory))
        try:
            run = Run(load_state(directory), datetime.now(UTC), directory)
            said = sections.about(run), run.standing.kind
            progress = run.pace.progress if run.standing.goes_on else None
            return Entry(*where, run.plan.run_id, answer(run), *said, run, progress)
        except UNREADABLE as error:
            why = one_line(str(error), 2000)
            own = Answer(title="Cannot be read", sentence=why, mood="trouble")
            return Entry(*where, directory.name, own)

    def _main(self, name: str) -> tuple[str, Markup]:
        """Return the title and content of a run's page, or of the list without a name."""
        found = {identifier(one): one for one in runs_below(self.root)}
        directory = found.get(name or identifier(self.root))
        if directory is None and name:
            raise HTTPException(404)
        if directory is None:
            main = page.template().runs(str(self.root), self.home, self.entries())
            return self.root.name, main
        one = self._read(directory)
        lines = [] if one.run is None else slot_lines(one.run.slots)
        main = page.template().live(one, self.home, lines) + page.template().answer(one)
        if one.run is not None:
            key = one.id, one.stands, one.run.state.head
            if self._sections[0] != key:
                shown = sections.page_of(one.run).sections
                self._sections = key, page.template().sections(shown)
            main += self._sections[1]
        return one.name, main

    async def _respond(self, request: Request) -> Response:
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
        body = (
            main if "part" in request.query_params else page.template().document(title, main, tag)
        )
        return Response(body, headers=headers, media_type="text/html")


def identifier(directory: Path) -> str:
    """Return the part of an address that stands for a run without revealing its path."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]


def _refused(_: Request, error: Exception) -> Response:
    status = getattr(error, "status_code", 500)
    said = "Nothing is here: open the address that `serve` printed.\n"
    return PlainTextResponse(said, status_code=status, headers=HEADERS)


class _Server(uvicorn.Server):
    """Ends at once, even while it makes a page: it writes no file."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:  # noqa: ARG002 - its name
        os._exit(0 if sig == signal.SIGINT else 128 + sig)  # an exception becomes a status 500


def serve(site: Site, listener: socket) -> None:
    """Answer until SIGINT, which ends the process with 0, or SIGTERM (143)."""
    config = uvicorn.Config(
        site.app, log_config=None, log_level="error", access_log=False, server_header=False
    )
    _Server(config).run(sockets=[listener])
