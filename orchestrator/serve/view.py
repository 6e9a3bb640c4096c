"""What a page's script is told: the HTML of what changes often, as templates have made it."""

import hashlib
from dataclasses import asdict, dataclass

import orjson


@dataclass(frozen=True)
class View:
    """The state of a page."""

    title: str
    version: str  # of what is in <main>: another one is to be fetched
    parts: dict[str, str]  # HTML by the id of the element that it is in
    is_over: bool = False

    def encoded(self) -> bytes:
        """As JSON. The same state gives the same bytes."""
        return orjson.dumps(asdict(self))


def digest(data: bytes) -> str:
    """Names these bytes."""
    return hashlib.sha256(data).hexdigest()[:20]
