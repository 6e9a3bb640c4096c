"""What a page's script is told: what is to be written where. All of it text, none of it HTML."""

import hashlib
from dataclasses import asdict, dataclass, field
from typing import Literal, TypedDict

import orjson


class Since(TypedDict):
    """A cell that says how long ago a moment is."""

    since: str


class Bar(TypedDict):
    """A cell with a bar."""

    bar: float
    label: str


Cell = str | Since | Bar | None


class Row(TypedDict):
    """A row of a table; `look` is its class."""

    look: Literal["late", ""]
    cells: list[Cell]


@dataclass(frozen=True)
class View:
    """The state of a page, by the keys that its elements carry."""

    title: str
    version: str  # of what is in <main>: another one is to be fetched
    is_over: bool = False
    text: dict[str, str] = field(default_factory=dict)
    bars: dict[str, float | None] = field(default_factory=dict)
    moments: dict[str, str] = field(default_factory=dict)  # ISO 8601
    moods: dict[str, str] = field(default_factory=dict)
    tables: dict[str, list[Row]] = field(default_factory=dict)

    def encoded(self) -> bytes:
        """As JSON. The same state gives the same bytes."""
        return orjson.dumps(asdict(self))


def digest(data: bytes) -> str:
    """Names these bytes."""
    return hashlib.sha256(data).hexdigest()[:20]
