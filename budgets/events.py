"""The ledger's words: one frozen model per fact. Nothing here computes.

Every record also carries its sequence number, the wall clock (`at`, for people only) and
`elapsed_ms`, milliseconds on the monotonic clock since its session opened.
"""

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from budgets.terms import Plan, Terms

SCHEMA = 1
"""Version of these words, in every ledger's first record."""


class Status(StrEnum):
    """How an evaluation ended."""

    OK = "ok"
    NAN = "nan"  # finished with a score that is no finite number, or diverged on the way
    OOM = "oom"
    TIMEOUT = "timeout"  # over its wall or stall limit
    ERROR = "error"
    LOST = "lost"  # its worker, node or orchestrator died: nobody's candidate is to blame
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether the evaluation is over; otherwise it is owed again under a new attempt."""
        return self not in (Status.LOST, Status.CANCELLED)


class Owner(Terms):
    """A process, told apart from every other one that had or will have its pid."""

    boot_id: str  # pids mean something on this boot of this machine only
    pid: int
    start_ticks: int  # field 22 of /proc/PID/stat


class Planned(Terms):
    """The run exists, on these terms."""

    kind: Literal["planned"] = "planned"
    schema_version: int = SCHEMA
    plan: Plan


class Opened(Terms):
    """A process took the ledger to append to it: a session begins, `elapsed_ms` restarts."""

    kind: Literal["opened"] = "opened"
    host: str
    owner: Owner
    workers: int = Field(ge=1)  # evaluations it runs at once
    versions: dict[str, str]


class GenerationAsked(Terms):
    """These points of the unit cube are to be evaluated on these seeds."""

    kind: Literal["generation_asked"] = "generation_asked"
    generation: int = Field(ge=0)
    points: tuple[tuple[float, ...], ...]
    seeds: tuple[int, ...]


class Reserved(Terms):
    """An attempt is about to start; its worst case is set aside."""

    kind: Literal["reserved"] = "reserved"
    generation: int
    candidate: int
    seed: int
    attempt: int = Field(ge=1)
    reserve_ms: int = Field(ge=0)


class Settled(Terms):
    """An attempt is over: what it cost, how it ended, and its score if it has one."""

    kind: Literal["settled"] = "settled"
    generation: int
    candidate: int
    seed: int
    attempt: int
    status: Status
    score: float | None  # present when and only when status is ok
    charged_ms: int = Field(ge=0)  # device time
    seconds: float
    startup_seconds: float = 0.0
    train_seconds: float = 0.0
    cpu_seconds: float = 0.0
    peak_memory_bytes: int = 0
    device: str = ""
    steps: int = 0
    tokens: int = 0
    train_flops: float = 0.0
    eval_flops: float = 0.0
    metrics: dict[str, float] = Field(default_factory=dict)
    cause: str = ""
    recovered: bool = False  # settled from the attempt's own files, nobody having waited for it


class GenerationTold(Terms):
    """The search learned the generation's fitness; where it stood afterwards."""

    kind: Literal["generation_told"] = "generation_told"
    generation: int
    digest: str  # of the whole state of the search
    favourite: tuple[float, ...]  # the distribution's favourite point of the unit cube
    sigma: float
    axis_ratio: float


class Fired(Terms):
    """A rule spoke, with its numbers."""

    kind: Literal["fired"] = "fired"
    rule: str
    generation: int
    decision: Literal["pause", "stop"]
    observed: float
    limit: float
    evidence: str


class Overridden(Terms):
    """A person lets the run go on although a rule fired."""

    kind: Literal["overridden"] = "overridden"
    rule: str
    generation: int
    reason: str = Field(min_length=1)


class Concluded(Terms):
    """The run is over."""

    kind: Literal["concluded"] = "concluded"
    reason: str


Event = (
    Planned
    | Opened
    | GenerationAsked
    | Reserved
    | Settled
    | GenerationTold
    | Fired
    | Overridden
    | Concluded
)

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="kind")])


def parse(fields: Any) -> Event:
    """The event that `fields` (decoded JSON) describe. Raises pydantic.ValidationError."""
    return _EVENT.validate_python(fields)
