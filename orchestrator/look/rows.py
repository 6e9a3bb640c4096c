"""The parts of a run as people are shown them: plain values, no text made of them.

Scores are better when lower. Times are seconds on the run's own clock: its sessions laid end to
end, without the breaks between them. Points and `unit` places are of the unit cube.
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
        """Whether there is anything to say: money only where it has a price or a cap."""
        return self.currency != "cost" or self.cap is not None or self.spent > 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One attempt at an evaluation: over, or in flight, which has no status yet."""

    what: str  # `generation 3, candidate 2`; `winner, average`
    comparison: str | None  # None: of the search, a check, a calibration or a campaign
    generation: int  # or the comparison's number
    candidate: int
    configuration: str  # of a comparison; a campaign's condition; empty otherwise
    seed: int
    attempt: int
    place: str  # its directory below the run's: `eval/gen_0000/cand_0003/seed_12`
    point: Point
    session: int  # that reserved it
    slot: int | None  # of the session; None: an older ledger, which does not say
    began: float
    limit_seconds: float  # then it is ended
    status: Status | None = None
    is_final: bool = False  # it decided its evaluation, which is not made again
    score: float | None = None
    ended: float | None = None
    cause: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Slot:
    """What a slot of the session that has the run does now."""

    slot: int
    device: str = ""  # as its attempt says; empty: not known
    doing: Literal["idle", "starting", "running"] = "idle"  # starting: no supervisor has it yet
    seconds: float | None = None  # for how long; None: not known
    what: str = ""  # which evaluation; empty when idle
    place: str = ""
    attempt: int = 0
    expected_seconds: float | None = None
    limit_seconds: float | None = None  # then it is ended
    step: float | None = None  # as its heartbeat said last
    loss: float | None = None
    progress: float | None = None  # 0 to 1

    @property
    def is_overdue(self) -> bool:
        """Whether it takes half as long again as is expected, and two seconds at least."""
        expected = self.expected_seconds
        return expected is not None and (self.seconds or 0) > max(1.5 * expected, expected + 2)


class Counts(Frozen):
    """Evaluations, of the search and of comparisons together."""

    settled: int  # for good
    ok: int
    failed: dict[str, int]  # by status
    lost: int  # attempts that were lost or cancelled and are retried: no evaluation is used up
    in_flight: int
    to_come: int  # neither settled nor in flight, at most
    planned: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """One generation: the scores of its healthy candidates, each the mean over its seeds.

    Of a run that searches nothing a score is a single evaluation's.
    """

    number: int
    is_told: bool
    began: float
    ended: float
    healthy: int
    failed: int  # evaluations
    best: float | None
    mean: float | None
    sd: float | None
    best_so_far: float | None  # of full generations up to this one
    best_by_chance: float | None  # expected of as many candidates that equal the baseline
    step_size: float | None  # of the search once it has learned the generation, as are the next
    axis_ratio: float | None
    mean_point: Point | None


class Usage(Frozen):
    """Device-hours of the slots in one part of the run's time."""

    part: str  # `start-up`, `generation 3`, `comparison`, `long run`
    planned: float  # by the calibration; 0 without one
    useful: float
    wasted: float  # by attempts that gave no score
    idle: float


class Knob(Frozen):
    """One knob, with where the search began and what it recommends, in the knob's own unit."""

    name: str
    kind: str
    step: int  # of an int knob: it takes every `step`-th number from `low` on
    low: int | float
    high: int | float
    baseline: int | float
    recommended: int | float | None
    baseline_unit: float
    recommended_unit: float | None
    at_end: str | None  # `lower`, `upper`: where in its range the best of the search lies


class NamedGain(Frozen):
    """A gain on fresh seeds."""

    name: str  # `winner`, `winner, 4 x FLOPs`, `plain attention (control)`
    against: str
    gain: Gain
    is_decisive: bool  # it is the one that the verdict rests on


class FailureKind(Frozen):
    """Attempts that failed alike."""

    whose: str  # configuration, infrastructure, ambiguous, setup
    what: str
    attempts: int
    final: int  # of these: the last word on their evaluations
    example: str  # the cause of one
    place: str  # its directory
