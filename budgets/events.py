"""The events of a ledger, one model each.

Every record also carries its sequence number, the wall clock (`at`, for people only) and
`elapsed_ms`, milliseconds on the monotonic clock since its session opened.
"""

from enum import StrEnum
from typing import Literal

from pydantic import Field

from budgets.plan import Caps, ComparisonName, Configuration, Plan, PlanPart

SCHEMA: Literal[1] = 1
"""Version of these events, in a ledger's first record and in every session's."""


class Status(StrEnum):
    """How an evaluation ended."""

    OK = "ok"
    NAN = "nan"  # finished without a score that can be compared, or diverged on the way
    OOM = "oom"
    TIMEOUT = "timeout"  # over its wall or stall limit
    ERROR = "error"
    LOST = "lost"  # its worker, node or orchestrator died
    CANCELLED = "cancelled"

    @property
    def final(self) -> bool:
        """Whether it is a result of the candidate."""
        return self not in (Status.LOST, Status.CANCELLED)


Grade = Literal["go_persists", "go", "no_go"]
"""A Go that persists on more FLOPs, a Go not shown to persist, a No-Go."""

NoGo = Literal["below_noise", "too_small", "does_not_persist", "pathological", "unstable"]

Facts = dict[str, int | float | str]
"""Further numbers and names that a rule saw."""

MOST_SCORE = 1e100
"""The largest size of a score: comparisons compute with its square."""


class Owner(PlanPart):
    """A process, distinguished from others with the same pid."""

    boot_id: str  # the machine's boot, in which the pid is valid
    pid: int
    start_ticks: int  # field 22 of /proc/PID/stat


class Planned(PlanPart):
    """The run exists, with this plan."""

    kind: Literal["planned"] = "planned"
    schema_version: Literal[1] = SCHEMA
    plan: Plan


class Opened(PlanPart):
    """A process opened the ledger to append: a session begins, `elapsed_ms` restarts."""

    kind: Literal["opened"] = "opened"
    schema_version: Literal[1] = SCHEMA
    host: str
    owner: Owner
    workers: int = Field(ge=1)  # evaluations at once
    versions: dict[str, str]
    command: tuple[str, ...] = ()  # its command line, without secrets


class Asked(PlanPart):
    """These configurations are to be evaluated on these seeds."""

    kind: Literal["asked"] = "asked"
    comparison: ComparisonName | None = None  # beside the search; None: its next generation
    generation: int = Field(default=0, ge=0)  # 0 in a comparison
    configurations: tuple[Configuration, ...] = Field(min_length=1)
    seeds: tuple[tuple[int, ...], ...]  # of each configuration


class _OfAnAttempt(PlanPart):
    """Names the attempt that an event is about."""

    comparison: ComparisonName | None = None  # None: of a generation
    generation: int  # 0 in a comparison
    candidate: int
    seed: int
    attempt: int = Field(ge=1)

    @property
    def place(self) -> str:
        """The attempt's directory under the run's `eval/`."""
        again = "" if self.attempt == 1 else f".{self.attempt}"
        batch = f"{self.comparison or 'gen'}_{self.generation:04d}"
        return f"{batch}/cand_{self.candidate:04d}/seed_{self.seed}{again}"


class Reserved(_OfAnAttempt):
    """An attempt is about to start; its worst case is reserved."""

    kind: Literal["reserved"] = "reserved"
    reserve_ms: int = Field(ge=0)
    slot: int | None = Field(default=None, ge=0)  # the session's lowest that was free


class Settled(_OfAnAttempt):
    """An attempt is over: what it cost, how it ended, and its score if it has one."""

    kind: Literal["settled"] = "settled"
    status: Status
    score: float | None = Field(ge=-MOST_SCORE, le=MOST_SCORE)  # when and only when it is ok
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
    recovered: bool = False  # settled from the attempt's files by a later session
    retry: bool = False  # the machine may have caused its failure: retried once

    @property
    def final(self) -> bool:
        """Whether the evaluation is over; otherwise it is pending again, for a new attempt."""
        return self.status.final and not self.retry


class Guided(PlanPart):
    """The advice of a model of the scores, which the search followed after a generation."""

    centre: tuple[float, ...]  # point of the unit cube: the distribution's new mean
    sigma: float | None  # the step size, if it was kept from shrinking


class GenerationTold(PlanPart):
    """The search learned the generation's fitness; its distribution afterwards."""

    kind: Literal["generation_told"] = "generation_told"
    generation: int
    digest: str  # of the whole state of the search
    mean: tuple[float, ...]  # of the search distribution, in the unit cube
    sigma: float
    axis_ratio: float
    guided: Guided | None = None  # None: without a model


class Fired(PlanPart):
    """A rule fired, with its numbers."""

    kind: Literal["fired"] = "fired"
    rule: str
    generation: int
    decision: Literal["pause", "stop"]
    observed: float
    limit: float
    facts: Facts


class Decided(PlanPart):
    """The verdict, after the comparisons with the baseline."""

    kind: Literal["decided"] = "decided"
    grade: Grade
    no_go: NoGo | None = None
    configuration: str = ""  # the recommendation's name; empty of a No-Go
    point: tuple[float, ...] | None = None  # ... and its point of the unit cube
    gain: float | None = None  # the winner's over the baseline, on fresh seeds
    lower: float | None = None  # its lower bound


class Overridden(PlanPart):
    """A person lets the run continue although a rule fired."""

    kind: Literal["overridden"] = "overridden"
    rule: str
    generation: int
    reason: str = Field(min_length=1)


class Amended(PlanPart):
    """A person changed the caps, for a reason. The only way a cap can rise."""

    kind: Literal["amended"] = "amended"
    caps: Caps
    reason: str = Field(min_length=1)


class Concluded(PlanPart):
    """The run is over."""

    kind: Literal["concluded"] = "concluded"


Event = (
    Planned
    | Opened
    | Asked
    | Reserved
    | Settled
    | GenerationTold
    | Fired
    | Decided
    | Overridden
    | Amended
    | Concluded
)


class Line(PlanPart):
    """A record as a ledger's line has it, without its seal."""

    seq: int = Field(ge=0)
    at: str = Field(pattern=r"^\d{4}-\d\d-\d\dT[\d:.]{5,18}[+-]\d\d:\d\d$")
    elapsed_ms: int = Field(ge=0)
    event: Event = Field(discriminator="kind")
