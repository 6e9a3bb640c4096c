"""Which address shows what. Nothing is found by a path: runs are known by their ids alone."""

from dataclasses import dataclass, field
from http import HTTPStatus

from orchestrator.serve import index, pages
from orchestrator.serve.answers import HTML, JSON, SCRIPT, Answer, Request, said
from orchestrator.serve.catalogue import Catalogue, Listing
from orchestrator.serve.shared import Shared
from orchestrator.serve.view import View, digest


@dataclass(frozen=True)
class Listed:
    """The list of runs at a moment, and its state as it is sent."""

    listing: Listing
    view: View
    state: Answer


@dataclass
class Routes:
    """Answers requests about the runs of a catalogue. Threads may share it."""

    catalogue: Catalogue
    _listed: Shared[Listed] = field(init=False)

    def __post_init__(self) -> None:
        self._listed = Shared(self._list, seconds=0.5)

    def answer(self, request: Request) -> Answer:
        """What is at that address."""
        match request.path.split("/"):
            case ["", ""]:
                return self._index()
            case ["", "state"]:
                return self._listed.get().state
            case ["", "content"]:
                found = self._listed.get()
                body = pages.listing_content(found.listing)
                return Answer(HTTPStatus.OK, body, HTML, tag=found.view.version)
            case ["", "follow.js"]:
                return Answer(HTTPStatus.OK, pages.script(), SCRIPT, tag=digest(pages.script()))
        return said(HTTPStatus.NOT_FOUND, "Nothing is here. The list of runs is at /")

    def _index(self) -> Answer:
        found = self._listed.get()
        body = pages.listing_page(found.listing, found.view, self.catalogue.root)
        return Answer(HTTPStatus.OK, body, HTML, policy=pages.policy())

    def _list(self) -> Listed:
        listing = self.catalogue.listing()
        view = index.view(listing, self.catalogue.root)
        body = view.encoded()
        return Listed(listing, view, Answer(HTTPStatus.OK, body, JSON, tag=digest(body)))
