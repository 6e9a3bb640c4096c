"""What was found out about one thing that a run needs, and what all of it amounts to."""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Any, Literal

State = Literal["ok", "absent", "missing", "unknown"]
"""`absent`: nothing needs it. `missing`: something does. `unknown`: it could not be found out."""

STATES: tuple[State, ...] = ("ok", "absent", "missing", "unknown")
_WANT_MENDING = ("missing", "unknown")


@dataclass(frozen=True)
class Finding:
    """One item: its state, the figures that were seen, and the command that mends it."""

    item: str
    state: State
    seen: str
    mend: str = ""

    def __post_init__(self) -> None:
        assert self.mend or self.state not in _WANT_MENDING, f"{self.item}: how is it mended?"


@dataclass(frozen=True)
class Section:
    """Findings about one part of what a run needs."""

    title: str
    findings: tuple[Finding, ...]


def nothing_is_missing(sections: Iterable[Section]) -> bool:
    """Whether all that is needed is there, as far as it could be found out."""
    return counted(sections)["missing"] == 0


def counted(sections: Iterable[Section]) -> dict[State, int]:
    """How many findings there are of each state."""
    states = [finding.state for section in sections for finding in section.findings]
    return {state: states.count(state) for state in STATES}


def as_dict(sections: tuple[Section, ...]) -> dict[str, Any]:
    """All of it as a JSON document."""
    return {
        "ready": nothing_is_missing(sections),
        "counts": counted(sections),
        "sections": [asdict(section) for section in sections],
    }
