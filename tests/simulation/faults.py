"""The storage calls that can go wrong, and how: what a test tells a `FaultyDisk` to do."""

from dataclasses import dataclass
from typing import Literal, get_args

Call = Literal["open", "write", "sync", "truncate", "rename", "remove", "sync_directory"]
"""The calls that change something; an `open` counts when it creates the file."""

CALLS: tuple[Call, ...] = get_args(Call)


class PowerCut(BaseException):
    """The machine stopped in the middle of a storage call: nothing after it is done."""


@dataclass(frozen=True)
class Fault:
    """What happens at the `at`-th call (from 1) of a kind, or of any."""

    at: int
    call: Call | None = None
    error: int | None = None  # errno of the OSError; None cuts the power
    moment: Literal["before", "torn", "after"] = "before"  # torn: in the middle of a write
    kept: float = 0.5  # the share of a torn write that got through
    lasting: bool = False  # every later call of the kind fails too
