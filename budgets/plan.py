"""A run's plan: frozen before anything is spent. The ledger's first record.

Times are seconds or hours as the name says, money is in the unit of `price_per_device_hour`.
Nothing here is a timestamp: two runs with the same settings have equal plans.
"""

from itertools import product
from math import ceil
from statistics import median, quantiles
from typing import Annotated, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

from objectives.api import ObjectiveSpec, Variant
from objectives.space import SearchSpace

Phase = Literal["calibration", "check", "phase1", "phase2", "campaign"]
Tier = Literal["min", "target", "max"]

Direction = Literal["minimize", "maximize"]
"""Whether lower or higher scores are better."""

ComparisonName = Literal["reference", "finalists", "winner", "long_run", "proxy"]
"""Evaluations that no search learns from: see `Confirmation` and `Plan.proxy`."""

PositiveSeed = Annotated[int, Field(strict=True, ge=1, lt=2**32)]
"""Not 0, which some libraries replace by the clock."""


class Frozen(BaseModel):
    """Base of results: immutable, without unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid", defer_build=True)


class PlanPart(Frozen):
    """Base of everything in a ledger: also without infinities and NaNs."""

    model_config = ConfigDict(allow_inf_nan=False)


class Envelope(PlanPart):
    """P candidates a generation, G generations, S evaluation seeds a candidate."""

    population: int = Field(ge=1)
    generations: int = Field(ge=1)
    seeds_per_candidate: int = Field(ge=1)

    @property
    def per_generation(self) -> int:
        return self.population * self.seeds_per_candidate

    @property
    def evaluations(self) -> int:
        """E = P * G * S."""
        return self.per_generation * self.generations

    @property
    def in_words(self) -> str:
        """`12 x 10 x 1`."""
        return f"{self.population} x {self.generations} x {self.seeds_per_candidate}"


class Limits(PlanPart):
    """What one attempt may use before its process tree is killed."""

    wall_seconds: float = Field(gt=0)
    grace_seconds: float = Field(default=5.0, gt=0)  # between SIGTERM and SIGKILL
    stall_seconds: float | None = Field(default=None, gt=0)  # without output, heartbeat or CPU time
    memory_bytes: int | None = Field(default=None, gt=0)  # resident, the whole tree together
    log_bytes: int = Field(default=1 << 20, ge=1024)  # kept of stdout and of stderr, middle dropped

    @property
    def reserve_ms(self) -> int:
        """The worst an attempt can cost one device: the limit, the grace, and as much to reap."""
        return round(1000 * (self.wall_seconds + 2 * self.grace_seconds))

    def stretched(self, length: float) -> "Limits":
        """The limits of an evaluation that is expected to take `length` times as long."""
        if length <= 1:
            return self
        return self.model_copy(update={"wall_seconds": ceil(length * self.wall_seconds)})


class Window(PlanPart):
    """The calendar deadline of a run: so many hours after it was planned, or a moment.

    Evaluations end `margin_seconds` earlier, which leaves time for the last report.
    """

    hours: float | None = Field(default=None, gt=0)
    until: AwareDatetime | None = None
    margin_seconds: float = Field(default=1800.0, ge=0)

    def deadline_ms(self, began_ms: float) -> float:
        """When evaluations of a run that began at `began_ms` must be over; ms since 1970."""
        end_ms = began_ms + 3_600_000 * (self.hours or 0.0)
        if self.until is not None:
            end_ms = 1000 * self.until.timestamp()
        return end_ms - 1000 * self.margin_seconds


class Caps(PlanPart):
    """What the run never exceeds. `None`: no cap."""

    evaluations: int = Field(ge=1)
    device_hours: float | None = Field(default=None, gt=0)
    hours: float | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)
    window: Window | None = None


class Devices(PlanPart):
    """The devices that P and G were sized for. A later session may use others."""

    count: int = Field(ge=1)  # W, evaluations at once
    kind: Literal["cpu", "cuda"]
    name: str
    threads: int = Field(ge=1)  # CPU threads per evaluation: they decide the last bits of a score
    memory_bytes: int = Field(ge=1)  # of the host, for one evaluation


class Sample(PlanPart):
    """One calibration evaluation of the baseline."""

    seed: int
    score: float
    seconds: float
    startup_seconds: float
    cpu_seconds: float
    train_flops: float
    eval_flops: float


class Calibration(PlanPart):
    """The baseline, measured on several seeds; or a time that the user states."""

    samples: tuple[Sample, ...] = ()
    charged_ms: int = Field(default=0, ge=0)  # device time, if it was made for this run
    open_ms: int = Field(default=0, ge=0)  # wall clock, if it was made for this run
    assumed_seconds: float | None = Field(default=None, gt=0)

    @property
    def median_seconds(self) -> float:
        """Wall clock of a whole evaluation, start-up included."""
        return self.assumed_seconds or median(s.seconds for s in self.samples)

    @property
    def p90_seconds(self) -> float:
        """The 90th percentile by inclusive interpolation."""
        values = [sample.seconds for sample in self.samples] or [self.median_seconds]
        return quantiles(values, n=10, method="inclusive")[-1] if len(values) > 1 else values[0]


class Thresholds(PlanPart):
    """Every number that a rule compares with: the one place to edit them."""

    crash_rate_pause: float = Field(default=0.10, ge=0, le=1)  # a larger share of failures pauses
    crash_count_pause: int = Field(default=2, ge=1)  # ... if there are at least so many
    crash_level: float | None = Field(default=None, gt=0, lt=0.5)  # of all generations together
    edge: float = Field(default=0.005, ge=0, le=0.5)  # of a knob's range: nearer an end is extreme
    time_drift_pause: float = Field(default=2.0, gt=0)  # times the calibrated median (CPU on a CPU)
    time_drift_floor_seconds: float = Field(default=1.0, ge=0)  # a shorter time is not judged
    attempts_per_session: int = Field(default=3, ge=1)  # at one evaluation that is lost each time
    patience_generations: int | None = Field(default=None, ge=1)  # without improvement; None: ever
    patience_improve: float = Field(default=0.001, ge=0)  # relative: less does not count
    same_score: float = Field(default=1e-4, ge=0)  # relative: closer scores are the same
    alive_level: float = Field(default=0.05, gt=0, lt=1)  # share of findings that may be chance
    go_gain: float = Field(default=0.01, ge=0)  # needed of the winner, of the baseline's score
    go_seeds: int = Field(default=5, ge=2)  # fresh pairs needed
    go_level: float = Field(default=0.01, gt=0, lt=0.5)  # probability that chance passes for a gain
    go_crash_rate: float = Field(default=0.05, ge=0, le=1)  # a Go needs fewer failures
    go_generations: int = Field(default=3, ge=1)  # ... over so many last generations
    go_pathological: float = Field(default=0.20, ge=0, le=1)  # of the winner's runs, at most
    persist_share: float = Field(default=0.5, ge=0, le=1)  # of the gain, kept on the long run


SearchMethod = Literal["guided", "plain"]
"""`guided` draws mirrored orthogonal directions around the minimum of a model of all scores;
`plain` is unchanged pycma."""


class SearchPlan(PlanPart):
    """How candidates are proposed, in the unit cube."""

    method: SearchMethod = "guided"
    seed: PositiveSeed
    sigma0: float = Field(gt=0, le=0.3)
    start: tuple[float, ...]  # a point of the unit cube


class Configuration(Variant):
    """A point of the unit cube to evaluate, perhaps of a varied objective."""

    point: tuple[float, ...]
    knobs: dict[str, int | float] | None = None  # None: those of the point

    def knobs_in(self, space: SearchSpace) -> dict[str, float]:
        """Its knobs in their units; a campaign's conditions have their own."""
        return space.decode(self.point) if self.knobs is None else dict(self.knobs)


class Confirmation(PlanPart):
    """The comparisons of a verdict, on fresh seeds: counted and priced apart from E.

    The finalists are compared with each other and the baseline on `picking_seeds`, the winner with
    the baseline on `seeds` that no finalist was picked on.
    """

    seeds: int = Field(ge=2)
    picking_seeds: int = Field(ge=1)
    best_candidates: int = Field(ge=0)  # best candidates of the search that are finalists too
    control_seeds: int = Field(ge=0)  # of `seeds`, for each control
    controls: tuple[Variant, ...] = ()
    incumbent: tuple[float, ...] | None = None  # an earlier winner, compared on `seeds`
    long_run: Variant | None = None  # more FLOPs, on which a gain must persist
    long_run_seeds: int = Field(default=0, ge=0)

    def sizes(self) -> dict[ComparisonName, tuple[int, float]]:
        """Each comparison's evaluations, at most, and their cost in evaluations of the search."""
        controls = sum(c.cost_factor for c in self.controls) * self.control_seeds
        count = len(self.controls) * self.control_seeds
        both = self.seeds + self.picking_seeds + self.seeds * (self.incumbent is not None)
        finalists = (2 + self.best_candidates) * self.picking_seeds
        sizes: dict[ComparisonName, tuple[int, float]] = {
            "reference": (both + count, both + controls),
            "finalists": (finalists, finalists),
            "winner": (self.seeds, self.seeds),
        }
        if self.long_run is not None:
            pairs = 2 * self.long_run_seeds
            sizes["long_run"] = (pairs, pairs * self.long_run.cost_factor)
        return sizes


class Condition(Configuration):
    """One of the configurations that a campaign compares; its name can be a file's."""

    levels: dict[str, str] = Field(default_factory=dict)  # of each factor, if of the factorial
    control: bool = False  # the others are compared with it


class CampaignPlan(PlanPart):
    """Conditions, each evaluated on every seed."""

    name: str
    conditions: tuple[Condition, ...] = Field(min_length=1)
    seeds: tuple[PositiveSeed, ...] = Field(min_length=1)
    factors: dict[str, tuple[str, ...]] = Field(default_factory=dict)  # levels, in order, by name
    parallel: bool = True  # else one evaluation at a time
    max_workers: int | None = Field(default=None, ge=1)  # evaluations at once, at most
    stagger_seconds: float = Field(default=0.0, ge=0)  # between the first starts of a session

    @property
    def runs(self) -> list[tuple[Condition, int, str]]:
        """Each condition, seed and name of a run."""
        pairs = product(self.conditions, self.seeds)
        return [(one, seed, f"{one.name}_s{seed}") for one, seed in pairs]

    @property
    def evaluations(self) -> int:
        """conditions * seeds."""
        return len(self.conditions) * len(self.seeds)

    def workers(self, devices: int) -> int:
        """How many evaluations run at once on so many devices."""
        if not self.parallel:
            return 1
        return min(devices, self.evaluations, self.max_workers or devices)


class Source(PlanPart):
    """The run whose Go a phase 2 follows, and its recommendation."""

    run_id: str
    grade: str  # of its decision; empty without one, which a person overrode
    point: tuple[float, ...]  # its recommendation, in this run's space
    added: tuple[str, ...] = ()  # knobs that it did not search
    unproven: tuple[str, ...] = ()  # of these, not shown to move the score, which was overridden


class Plan(PlanPart):
    """A run's frozen plan. Two plans are equal only when they describe the same run."""

    run_id: str
    phase: Phase
    tier: Tier | None = None  # of a search
    nominal: Envelope
    resolved: Envelope
    reasons: tuple[str, ...]  # why the two differ
    objective: ObjectiveSpec
    objective_fingerprint: str
    direction: Direction = "minimize"
    space: SearchSpace
    provenance: dict[str, str | int]  # hashes and sizes of the data
    evaluation_seed: PositiveSeed
    limits: Limits
    caps: Caps
    price_per_device_hour: float = Field(default=0.0, ge=0)
    devices: Devices
    calibration: Calibration | None
    thresholds: Thresholds = Thresholds()
    search: SearchPlan | None = None  # of phase1 and phase2
    confirmation: Confirmation | None = None  # None: no Go is possible
    source: Source | None = None  # of a phase 2
    proxy: Variant | None = None  # a shorter evaluation, in a check of whether it may be used
    campaign: CampaignPlan | None = None

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.caps.cost is not None and self.price_per_device_hour == 0:
            raise ValueError("a cap on cost needs budget.price_per_device_hour")
        return self

    @property
    def sign(self) -> int:
        """What scores are multiplied by so that lower is better: 1 or -1."""
        return 1 if self.direction == "minimize" else -1

    @property
    def comparisons(self) -> dict[ComparisonName, tuple[int, float]]:
        """Each comparison's evaluations, at most, and their cost in evaluations of the search."""
        if self.proxy is not None:
            count = self.resolved.evaluations
            return {"proxy": (count, count * self.proxy.cost_factor)}
        return {} if self.confirmation is None else self.confirmation.sizes()

    @property
    def comparison_evaluations(self) -> int:
        """Evaluations planned beside E, at most."""
        return sum(count for count, _ in self.comparisons.values())
