"""The parts of a run that views show, as plain values without text.

Times are seconds on the run's clock: its sessions end to end, without
the breaks between them. Points, and fields named `unit`, are in the unit cube.
"""

from dataclasses import dataclass
from typing import Literal

from budgets.events import Status
from budgets.plan import Frozen
from budgets.stats import Gain

Point = tuple[float, ...]


class Balance(Frozen):
    """One currency."""

    currency: str  # [comparison] evaluations, device-hours, wall-clock hours, cost
    spent: float
    reserved: float
    free: float | None  # None without a cap
    cap: float | None

    @property
    def counts(self) -> bool:
        """Whether to show it: cost is left out where nothing has a price or a cap."""
        return self.currency != "cost" or self.cap is not None or self.spent > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at an evaluation; it has no status while it runs."""

    what: str  # `generation 3, candidate 2`; `winner, average`
    comparison: str | None  # None: of the search, a check, a calibration or a campaign
    generation: int  # or the comparison's number
    candidate: int
    configuration: str  # of a comparison; a campaign's condition; otherwise empty
    seed: int
    attempt: int
    place: str  # its directory below the run's: `eval/gen_0000/cand_0003/seed_12`
    point: Point
    slot: int | None  # of the session; None: an older ledger without slots
    began: float
    status: Status | None = None
    is_final: bool = False  # it decided its evaluation, which is not retried
    score: float | None = None
    ended: float | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What a slot of the current session does now."""

    slot: int
    device: str = ""  # as its attempt reports it; empty: not known
    doing: Literal["idle", "starting", "running"] = "idle"  # starting: not yet taken by a worker
    seconds: float | None = None  # for how long; None: not known
    what: str = ""  # the evaluation; empty when idle
    place: str = ""
    attempt: int = 0
    expected_seconds: float | None = None
    limit_seconds: float | None = None  # it is killed after these
    step: float | None = None  # from its last heartbeat, as are the next
    loss: float | None = None
    progress: float | None = None  # 0 to 1

    @property
    def is_overdue(self) -> bool:
        """Whether it takes 1.5 times what is expected, and at least two seconds more."""
        expected = self.expected_seconds
        return expected is not None and (self.seconds or 0) > max(1.5 * expected, expected + 2)


class Counts(Frozen):
    """Evaluations, of the search and of comparisons together."""

    settled: int
    ok: int
    failed: dict[str, int]  # by status
    lost: int  # attempts, lost or cancelled, that are retried: they use up no evaluation
    in_flight: int
    to_come: int  # neither settled nor in flight, at most
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation, with the scores of its healthy candidates: each the mean over its seeds.

    In a run without a search a score is a single evaluation's.
    """

    number: int
    failed: int  # evaluations
    best: float | None
    mean: float | None
    sd: float | None
    best_so_far: float | None  # of all generations up to this one
    best_by_chance: float | None  # expected of that many candidates equal to the baseline
    step_size: float | None  # of the search after this generation, as are the next
    axis_ratio: float | None


class Usage(Frozen):
    """Device-hours."""

    planned: float  # by the calibration; 0 without one
    useful: float
    wasted: float  # by attempts without a score
    idle: float


class Knob(Frozen):
    """One knob, its baseline and what is recommended."""

    name: str
    kind: str
    step: int  # of an int knob: the distance between its values
    low: int | float
    high: int | float
    baseline: int | float
    recommended: int | float | None
    baseline_unit: float
    recommended_unit: float | None
    at_end: str | None  # `lower`, `upper`: the end of the range where the search's best lies


class NamedGain(Frozen):
    """A gain on fresh seeds."""

    name: str  # `winner`, `winner, 4 x FLOPs`, `plain attention (control)`
    against: str
    gain: Gain
    is_decisive: bool  # the verdict rests on it


class FailureKind(Frozen):
    """Attempts that failed in the same way."""

    whose: str  # configuration, infrastructure, ambiguous, setup
    what: str
    attempts: int
    final: int  # how many of them were not retried
    example: str  # the cause of one
    place: str  # its directory
