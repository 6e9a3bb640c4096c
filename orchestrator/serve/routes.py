"""Which address shows what. Nothing is found by a path: runs are known by their ids alone."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path
from threading import Lock
from time import monotonic

from orchestrator.serve import pages
from orchestrator.serve.answers import HTML, JSON, SCRIPT, Answer, Request, said
from orchestrator.serve.catalogue import Catalogue, Listing
from orchestrator.serve.entry import Entry
from orchestrator.serve.followed import Followed
from orchestrator.serve.reports import Reports
from orchestrator.serve.shared import Shared
from orchestrator.serve.view import View, digest
from orchestrator.watch.snapshot import Snapshot

NOWHERE = said(HTTPStatus.NOT_FOUND, "Nothing is here. The list of runs is at /")
NOT_YET = said(HTTPStatus.SERVICE_UNAVAILABLE, "The report is being made.")


@dataclass(frozen=True)
class Rhythm:
    """How often things are looked at and made, however many readers there are."""

    fresh_seconds: float = 1.0  # what is seen of a run is as old as that at most
    rest_seconds: float = 15.0  # between two reports of a run
    first_report_seconds: float = 3.0  # a page waits so long for its report; then it follows
    report_seconds: float = 15.0  # as who asks for it alone


@dataclass(frozen=True)
class Listed:
    """The list of runs at a moment, and its state as it is sent."""

    listing: Listing
    view: View
    state: Answer


@dataclass(frozen=True)
class Seen:
    """A run at a moment, and its state as it is sent."""

    entry: Entry
    snapshot: Snapshot | None  # None where its ledger cannot be read
    view: View
    state: Answer


class Routes:
    """Answers requests about the runs of a catalogue. Threads may share it."""

    def __init__(
        self,
        catalogue: Catalogue,
        build: Callable[[Path], str] = pages.report,
        rhythm: Rhythm | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.catalogue = catalogue
        self._rhythm = rhythm or Rhythm()
        self._reports = Reports(build, self._rhythm.rest_seconds, clock)
        self._clock = clock
        self._listed = Shared(self._list, self._rhythm.fresh_seconds, clock)
        self._seen: dict[str, Shared[Seen]] = {}
        self._lock = Lock()

    def first(self) -> str:
        """Where a reader begins: at the run, if it is one run that is served."""
        entries = self.catalogue.listing().entries
        alone = len(entries) == 1 and not entries[0].place
        return f"/{entries[0].id}" if alone else "/"

    def settle(self, seconds: float) -> None:
        """Wait until no report is being made."""
        self._reports.settle(seconds)

    def answer(self, request: Request) -> Answer:
        """What is at that address."""
        match request.path.split("/"):
            case ["", ""]:
                return self._index()
            case ["", "state"]:
                return self._listed.get().state
            case ["", "content"]:
                return self._index_content()
            case ["", "follow.js"]:
                return Answer(HTTPStatus.OK, pages.script(), SCRIPT, tag=digest(pages.script()))
            case ["", id_, *rest] if (run := self.catalogue.find(id_)) is not None:
                return self._of_run(run, rest)
        return NOWHERE

    def _of_run(self, run: Followed, rest: list[str]) -> Answer:
        match rest:
            case []:
                return self._page(run)
            case ["state"]:
                return self._look(run).state
            case ["content"]:
                return self._content(run)
        return NOWHERE

    def _index(self) -> Answer:
        first, found = self.first(), self._listed.get()
        if first != "/":
            return Answer(HTTPStatus.FOUND, location=first)
        body = pages.listing_page(found.listing, found.view, self.catalogue.root)
        return Answer(HTTPStatus.OK, body, HTML, policy=pages.policy())

    def _index_content(self) -> Answer:
        found = self._listed.get()
        body = pages.listing_content(found.listing)
        return Answer(HTTPStatus.OK, body, HTML, tag=found.view.version)

    def _list(self) -> Listed:
        listing = self.catalogue.listing()
        here = {entry.id for entry in listing.entries}
        with self._lock:
            self._seen = {id_: seen for id_, seen in self._seen.items() if id_ in here}
        view = pages.listing_view(listing, self.catalogue.root)
        return Listed(listing, view, _sent(view))

    def _page(self, run: Followed) -> Answer:
        seen = self._look(run)
        view, content = seen.view, pages.unreadable(seen.entry)
        if seen.snapshot is not None:
            built = self._reports.wait(run.id, self._rhythm.first_report_seconds)
            content = built.html if built else pages.WAITING
            view = replace(view, version=built.version if built else view.version)
        body = pages.run_page(seen.entry, seen.snapshot, view, content)
        return Answer(HTTPStatus.OK, body, HTML, policy=pages.policy())

    def _content(self, run: Followed) -> Answer:
        seen = self._look(run)
        if seen.snapshot is None:
            body = pages.unreadable(seen.entry)
            return Answer(HTTPStatus.OK, body, HTML, tag=seen.view.version)
        built = self._reports.wait(run.id, self._rhythm.report_seconds)
        if built is None:
            return NOT_YET
        return Answer(HTTPStatus.OK, built.html, HTML, tag=built.version)

    def _look(self, run: Followed) -> Seen:
        """Made once a second at most, whoever asks."""
        with self._lock:
            shared = self._seen.get(run.id)
            if shared is None:
                shared = self._seen[run.id] = Shared(
                    lambda: self._see(run), self._rhythm.fresh_seconds, self._clock
                )
        return shared.get()

    def _see(self, run: Followed) -> Seen:
        sight = run.sight(self.catalogue.now())
        entry = run.entry
        if sight is None:
            snapshot, version = None, digest(entry.sentence.encode())
        else:
            built = self._reports.last(run.id, run.directory, sight.stage)
            snapshot, version = sight.snapshot, built.version if built else ""
        view = pages.run_view(entry, snapshot, version)
        return Seen(entry, snapshot, view, _sent(view))


def _sent(view: View) -> Answer:
    body = view.encoded()
    return Answer(HTTPStatus.OK, body, JSON, tag=digest(body))
