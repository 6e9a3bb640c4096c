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
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from importlib.resources import files
from itertools import islice
from pathlib import Path
from time import monotonic
from types import FrameType
from typing import Any

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
from budgets.words import duration, precise_duration
from orchestrator.look import page
from orchestrator.look.blocks import Answer, Block, Mood
from orchestrator.look.rows import Slot
from orchestrator.look.run import Run
from orchestrator.records.manifest import read_manifest
from orchestrator.records.recorded import is_set_aside, recorded_state
from orchestrator.records.standing import GOES_ON

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

REST_SECONDS = 15.0
"""Between two reports of a run that goes on: a report takes seconds, and the run has the CPU."""

DEEPEST, MOST_DIRECTORIES = 7, 20_000
"""Levels below the root, and directories, that are looked through for runs."""

INSIDE_A_RUN = ("eval", "reports")
"""Where no run is looked for: of a run whose ledger was moved away, these have thousands."""

MOST_OF_AN_ERROR = 2000
MOST_SLOTS = 64
"""Rows of the table of devices."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A run in the list."""

    id: str
    place: str  # its directory, from the one that is listed
    name: str
    standing: str  # `Standing.kind`; `empty` without a whole record, `damaged` if it cannot be read
    host: str = ""  # the other machine that has it
    mood: Mood
    title: str
    sentence: str
    phase: str = ""
    objective: str = ""
    progress: float | None = None  # 0 to 1
    left: str = ""
    spent: str = ""
    last: datetime  # its last record; of what cannot be read, the file

    @property
    def goes_on(self) -> bool:
        """Whether somebody carries it out."""
        return self.standing in GOES_ON

    @property
    def shown(self) -> str:
        """How it stands, in a word."""
        return "running" if self.goes_on else self.standing


@dataclass
class Kept:
    """A run's row as long as its ledger is the same, and the sections as they were last made."""

    stamp: object
    row: Row
    sections: Markup | None = None
    sections_of: object = None  # the ledger's stamp and the standing that they show
    made: float = 0.0


class Runs:
    """The runs in or below `root`, each read again when it is asked for and may have changed."""

    def __init__(
        self,
        root: Path,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.root = root.absolute()
        self.is_one_run = os.path.lexists(self.root / LEDGER)
        self._now, self._clock = now, clock
        self._kept: dict[str, Kept] = {}

    def rows(self) -> tuple[list[Row], bool]:
        """Those that go on first, then the latest; and whether everything was looked through."""
        found, is_all = directories(self.root)
        rows = [self._row(directory) for directory in found]
        self._kept = {row.id: self._kept[row.id] for row in rows}
        return sorted(rows, key=lambda row: (not row.goes_on, -row.last.timestamp())), is_all

    def find(self, id_: str) -> Path | None:
        """The directory of the run of that id, if it is there."""
        return next((one for one in directories(self.root)[0] if identifier(one) == id_), None)

    def view(self, directory: Path, home: str) -> tuple[Row, Markup]:
        """The run as it stands, and what is inside the <main> of its page; `home` has the list."""
        id_, stamp = identifier(directory), stamp_of(directory)
        try:
            run, answer = self._look(directory)
            row = self._row_of(directory, run, answer)
            kept = self._kept.setdefault(id_, Kept(stamp, row))
            kept.stamp, kept.row, shows = stamp, row, (stamp, row.standing)
            rests = row.goes_on and self._clock() - kept.made < REST_SECONDS
            if kept.sections is None or (shows != kept.sections_of and not rests):
                kept.sections = page.sections_shown(page.sections_of(run))
                kept.sections_of, kept.made = shows, self._clock()
        except UNREADABLE as error:
            row, blocks = self._without_a_run(directory, error), []
            content = page.filled("unreadable.html.j2", row=row)
        else:
            blocks = live(run) if row.goes_on else []
            content = page.answer_shown(page.header(run), answer) + kept.sections
        head = page.filled("live.html.j2", row=row, home=home, blocks=blocks)
        return row, Markup("\n").join([head, content])

    def _look(self, directory: Path) -> tuple[Run, Answer]:
        """Raises one of UNREADABLE."""
        state = recorded_state(directory)
        if state is None:
            raise EmptyLedgerError("No whole record yet.")
        run = Run(state, self._now(), directory)
        return run, page.answer_of(run)

    def _row(self, directory: Path) -> Row:
        """As it was, unless there is something to read, or a process that may have ended."""
        id_, stamp = identifier(directory), stamp_of(directory)
        kept = self._kept.get(id_)
        if kept is None or kept.stamp != stamp or kept.row.goes_on:
            try:
                row = self._row_of(directory, *self._look(directory))
            except UNREADABLE as error:
                row = self._without_a_run(directory, error)
            kept = self._kept.setdefault(id_, Kept(stamp, row))
            kept.stamp, kept.row = stamp, row
        return kept.row

    def _row_of(self, directory: Path, run: Run, answer: Answer) -> Row:
        standing, hours = run.standing, run.pace.remaining_hours
        left = duration(3600 * hours) if standing.goes_on and hours else ""
        return Row(
            id=identifier(directory),
            place=os.path.relpath(directory, self.root),
            name=run.plan.run_id,
            standing=standing.kind,
            host=standing.host,
            mood=answer.mood,
            title=answer.title,
            sentence=answer.sentence,
            phase=run.plan.phase,
            objective=run.objective,
            progress=1.0 if standing.kind == "finished" else run.pace.progress,
            left=left and f"{left} left",
            spent=_spent(run),
            last=run.last,
        )

    def _without_a_run(self, directory: Path, error: Exception) -> Row:
        is_empty = isinstance(error, EmptyLedgerError)
        try:
            moment = datetime.fromtimestamp(directory.lstat().st_mtime, UTC)
        except OSError:  # gone since
            moment = datetime.fromtimestamp(0, UTC)
        return Row(
            id=identifier(directory),
            place=os.path.relpath(directory, self.root),
            name=directory.name,
            standing="empty" if is_empty else "damaged",
            mood="open" if is_empty else "trouble",
            title="Nothing yet" if is_empty else "Cannot be read",
            sentence=one_line(str(error), MOST_OF_AN_ERROR),
            last=moment,
        )


class EmptyLedgerError(ValueError):
    """There is no whole record yet."""


def directories(root: Path) -> tuple[list[Path], bool]:
    """The runs in or below `root`, and whether all of it was looked through.

    Of a campaign's directory its cells are, wherever they lie. Links are not followed; what is set
    aside is nobody's run; what cannot be looked into is left out.
    """
    found, looked = [], 0
    for start in _starts(root):
        for at, inner, names in islice(os.walk(start), MOST_DIRECTORIES):
            looked += 1
            directory = Path(at)
            if LEDGER in names or LEDGER in inner:
                found.append(directory)
                inner.clear()
            elif len(directory.relative_to(start).parts) >= DEEPEST:
                inner.clear()
            inner[:] = [name for name in inner if _may_lead_to_runs(name)]
    return sorted(found), looked < MOST_DIRECTORIES


def _starts(root: Path) -> list[Path]:
    try:
        manifest = read_manifest(root)
    except (ValueError, OSError):  # another program's
        manifest = None
    if manifest is None or os.path.lexists(root / LEDGER):
        return [root]
    cells = {os.path.normpath(root / run.directory) for run in manifest.runs}
    return [Path(cell) for cell in sorted(cells)]


def _may_lead_to_runs(name: str) -> bool:
    return not (name.startswith(".") or name in INSIDE_A_RUN or is_set_aside(Path(name)))


def identifier(directory: Path) -> str:
    """Names the run in an address: it says nothing of the path, and is the same next time."""
    return hashlib.sha256(os.fsencode(directory)).hexdigest()[:16]


def stamp_of(directory: Path) -> tuple[int, int, int] | None:
    """As long as it is the same, so is what the ledger says. None: it cannot be looked at."""
    try:
        status = (directory / LEDGER).lstat()
    except OSError:
        return None
    return status.st_ino, status.st_size, status.st_mtime_ns


def _spent(run: Run) -> str:
    balances = {balance.currency: balance for balance in run.balances if balance.counts}
    said = [f"{precise_duration(3600 * balances['device-hours'].spent)} of device time"]
    if (cost := balances.get("cost")) is not None:
        said.append(f"cost {cost.spent:,.2f}")
    return ", ".join(said)


def live(run: Run) -> list[Block]:
    """What a run that goes on does now: how far it is, when it ends, each device."""
    counts, pace = run.counts, run.pace
    said = [f"**{pace.progress:.0%} done**"]
    if pace.remaining_hours:
        said.append(f"{duration(3600 * pace.remaining_hours)} left")
    if pace.remaining_hours and pace.eta is not None:
        said.append(f"ends at {pace.eta.astimezone(UTC):%Y-%m-%d %H:%M} UTC")
    said.append(f"{counts.in_flight} evaluations in flight, {counts.to_come} to come")
    if pace.evals_per_hour is not None:
        said.append(f"{pace.evals_per_hour:,.0f} an hour")
    blocks: list[Block] = [Text(f"{', '.join(said)}.")]
    if slots := run.slots[:MOST_SLOTS]:
        columns = [">slot", "device", "evaluates", ">for", ">expected", "said last", ">done"]
        blocks.append(Table("", columns, [_cells(slot) for slot in slots]))
    return blocks


def _cells(slot: Slot) -> list[str]:
    what = plain(slot.what) or slot.doing
    again = f", attempt {slot.attempt}" if slot.attempt > 1 else ""
    heard = [] if slot.step is None else [f"step {slot.step:,.0f}"]
    heard += [] if slot.loss is None else [f"loss {slot.loss:.4g}"]
    seconds = "" if slot.seconds is None else precise_duration(slot.seconds)
    expected = "" if slot.expected_seconds is None else precise_duration(slot.expected_seconds)
    return [
        str(slot.slot + 1),
        plain(slot.device),
        f"{what}{again}",
        f"**{seconds}, overdue**" if slot.is_overdue else seconds,
        expected,
        ", ".join(heard),
        "" if slot.progress is None else f"{slot.progress:.0%}",
    ]


# Requests


class Site:
    """Answers requests for the pages of `runs`, to who knows the token."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self.token = secrets.token_hex(16)
        self.home = f"/{self.token}/"
        self.app = Starlette(
            routes=[Route("/{token}/{rest:path}", self._answer, methods=["GET"])],
            middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=NAMES, www_redirect=False)],
            exception_handlers={HTTPException: _refused},
        )

    @property
    def first(self) -> str:
        """Where a reader begins: at the run, if it is one run that is served."""
        return self.home + (identifier(self.runs.root) if self.runs.is_one_run else "")

    async def _answer(self, request: Request) -> Response:
        given = request.path_params["token"].encode("utf-8", "replace")
        if not secrets.compare_digest(given, self.token.encode()):
            raise HTTPException(404)
        match request.path_params["rest"].split("/"):
            case ["" | "part" as what]:
                title, main = self._list()
            case ["follow.js"]:
                script = files("orchestrator.look") / "templates" / "follow.js"
                return _sent(request, script.read_text(), "text/javascript")
            case [id_, *rest] if rest in ([], ["part"]) and (found := self.runs.find(id_)):
                what = "".join(rest)
                row, main = self.runs.view(found, self.home)
                share = "" if row.progress is None else f"{row.progress:.0%} "
                title = f"{share}{row.name}" if row.goes_on else f"{row.title}: {row.name}"
            case _:
                raise HTTPException(404)
        part = page.filled("part.html.j2", title=title, main=main)
        if what == "part":
            return _sent(request, part)
        address = f"{request.url.path.rstrip('/')}/part"
        followed = page.Followed(f"{self.home}follow.js", address, _tag(part))
        return _sent(request, page.document(title, main, followed=followed))

    def _list(self) -> tuple[str, Markup]:
        rows, is_all = self.runs.rows()
        running = [row for row in rows if row.goes_on]
        rest = [row for row in rows if not row.goes_on]
        parts = {
            "Running": running,
            "Runs": [row for row in rest if row.phase != "calibration"],
            "Calibrations": [row for row in rest if row.phase == "calibration"],
        }
        values: dict[str, Any] = {"parts": parts, "home": self.home, "is_all": is_all}
        root = self.runs.root
        main = page.filled("list.html.j2", root=str(root), count=len(rows), **values)
        return f"{f'{len(running)} running, ' if running else ''}{root.name}", main


def _sent(request: Request, body: str, kind: str = "text/html") -> Response:
    """The body, or nothing to who has it already."""
    data = body.encode("utf-8", "replace")
    headers = {**HEADERS, "ETag": _tag(body)}
    known = request.headers.get("If-None-Match", "").replace("W/", "").split(",")
    if headers["ETag"] in [tag.strip() for tag in known]:
        return Response(status_code=304, headers=headers)
    return Response(data, headers=headers, media_type=kind)


def _tag(body: str) -> str:
    """The same only for the same."""
    return f'"{hashlib.sha256(body.encode("utf-8", "replace")).hexdigest()[:24]}"'


async def _refused(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    text = "Nothing is here: open the address that `serve` printed."
    if error.status_code == 405:
        text = "Only GET and HEAD: nothing is changed here."
    headers = {**HEADERS, **(error.headers or {})}
    return PlainTextResponse(f"{text}\n", status_code=error.status_code, headers=headers)


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
        lifespan="off",
        ws="none",
        http="h11",
        loop="asyncio",
        server_header=False,
        limit_concurrency=128,
    )
    _Server(config).run(sockets=[listener])
