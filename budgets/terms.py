"""The terms of a run: what was agreed before anything was spent. The ledger's first record.

Times are seconds or hours as the name says, money is in the unit of `price_per_device_hour`.
Nothing here is a timestamp: two runs on the same terms have equal plans.
"""

from statistics import median, quantiles, stdev
from typing import Annotated, Any, Literal, Self

from pydantic import AwareDatetime, BaseModel, ConfigDict, Field, model_validator

Phase = Literal["calibration", "check", "phase1", "phase2"]
Tier = Literal["min", "target", "max"]

PositiveSeed = Annotated[int, Field(strict=True, ge=1, lt=2**32)]
"""0 means "take the clock" to some libraries, so it is no seed."""


class Terms(BaseModel):
    """Base of everything a ledger holds: frozen, complete, finite."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Envelope(Terms):
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


class Limits(Terms):
    """What one attempt may use before its whole process tree is killed."""

    wall_seconds: float = Field(gt=0)
    grace_seconds: float = Field(default=5.0, gt=0)  # between SIGTERM and SIGKILL
    stall_seconds: float | None = Field(default=None, gt=0)  # without output or heartbeat
    memory_bytes: int | None = Field(default=None, gt=0)  # resident, the whole tree together
    log_bytes: int = Field(default=1 << 20, gt=0)  # kept of stdout and of stderr, middle dropped

    @property
    def reserve_ms(self) -> int:
        """The worst an attempt can cost one device: the limit, the grace, and as long to reap."""
        return round(1000 * (self.wall_seconds + 2 * self.grace_seconds))


class Window(Terms):
    """When the run must be over, by the calendar: so long after it was planned, or at a moment.

    Evaluations must be over `margin_seconds` earlier: that time is for the last report.
    """

    hours: float | None = Field(default=None, gt=0, le=100_000)
    until: AwareDatetime | None = None
    margin_seconds: float = Field(default=1800.0, ge=0, le=1e8)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if (self.hours is None) == (self.until is None):
            raise ValueError("a window is a number of hours, or a moment")
        if self.hours is not None and 3600 * self.hours <= self.margin_seconds:
            raise ValueError(
                f"a window of {3600 * self.hours:g} s leaves nothing before its safety margin of "
                f"{self.margin_seconds:g} s: give a longer --window, or a shorter --safety-margin"
            )
        return self


class Caps(Terms):
    """What the run may never exceed. `None` is no cap."""

    evaluations: int = Field(ge=1)
    device_hours: float | None = Field(default=None, gt=0)
    hours: float | None = Field(default=None, gt=0)
    cost: float | None = Field(default=None, gt=0)
    window: Window | None = None


class Devices(Terms):
    """What the run was sized for. A later session may use others; P and G stay."""

    count: int = Field(ge=1)  # W, evaluations at once
    kind: Literal["cpu", "cuda"]
    name: str
    threads: int = Field(ge=1)  # CPU threads per evaluation: they decide the last bits of a score
    memory_bytes: int = Field(ge=1)  # of the host, for one evaluation


class Sample(Terms):
    """One calibration evaluation of the baseline."""

    seed: int
    score: float
    seconds: float
    startup_seconds: float
    train_seconds: float
    cpu_seconds: float
    peak_memory_bytes: int
    steps: int
    tokens: int
    train_flops: float
    eval_flops: float


class Calibration(Terms):
    """The baseline, measured on several seeds; or a time the user vouches for."""

    samples: tuple[Sample, ...] = ()
    failed: int = 0
    ledger: str = ""  # head hash of the ledger it was read from
    charged_ms: int = Field(default=0, ge=0)  # device time, if it was made for this very run
    open_ms: int = Field(default=0, ge=0)  # wall clock, likewise
    assumed_seconds: float | None = Field(default=None, gt=0)

    @model_validator(mode="after")
    def _check(self) -> Self:
        if bool(self.samples) == (self.assumed_seconds is not None):
            raise ValueError("a calibration is either measured or assumed")
        return self

    @property
    def median_seconds(self) -> float:
        """Wall clock of a whole evaluation, start-up included."""
        return self.assumed_seconds or median(s.seconds for s in self.samples)

    @property
    def p90_seconds(self) -> float:
        """The 90th percentile (inclusive interpolation)."""
        return self.assumed_seconds or percentile_90([s.seconds for s in self.samples])

    @property
    def median_cpu_seconds(self) -> float | None:
        return median(s.cpu_seconds for s in self.samples) if self.samples else None

    @property
    def mean_score(self) -> float | None:
        """The baseline's score over the seeds."""
        return sum(s.score for s in self.samples) / len(self.samples) if self.samples else None

    @property
    def sd_score(self) -> float | None:
        """Sample standard deviation over seeds; None below two samples."""
        return stdev(s.score for s in self.samples) if len(self.samples) > 1 else None


def percentile_90(values: list[float]) -> float:
    """The 90th percentile by inclusive interpolation; the value itself when there is one."""
    return values[0] if len(values) == 1 else quantiles(values, n=10, method="inclusive")[-1]


class Thresholds(Terms):
    """Every number a rule compares with. The one place to edit them."""

    crash_rate_pause: float = 0.10  # above it a generation pauses the run
    crash_count_pause: int = 2  # ... and no fewer failures than this
    time_drift_pause: float = 2.0  # times the calibrated median (CPU seconds on a CPU)
    time_drift_floor_seconds: float = 1.0  # below this nothing runs away
    attempts_per_session: int = 3  # tries at an evaluation that the infrastructure keeps losing
    same_score: float = 1e-4  # relative; two scores no further apart are the same score
    alive_level: float = 0.05  # share of the ends a check says move the score that may be chance


class SearchTerms(Terms):
    """How candidates are proposed, in the unit cube."""

    method: Literal["mirrored-orthogonal"] = "mirrored-orthogonal"
    seed: PositiveSeed
    sigma0: float = Field(gt=0, le=0.3)
    start: tuple[float, ...]  # a point of the unit cube


class Parent(Terms):
    """The run that this one was forked from. Its spending counts against the caps of both."""

    run_id: str
    head: str  # of its ledger, when it was forked
    device_ms: int = Field(ge=0)
    open_ms: int = Field(ge=0)


class Plan(Terms):
    """All of it. Two plans are equal when, and only when, they describe the same run."""

    run_id: str
    phase: Phase
    tier: Tier | None  # a calibration and a check have none
    nominal: Envelope
    resolved: Envelope
    reasons: tuple[str, ...]  # why the two differ
    objective: dict[str, Any]  # objectives.api.ObjectiveSpec as JSON
    objective_fingerprint: str
    space: dict[str, Any]  # objectives.space.SearchSpace as JSON
    provenance: dict[str, str | int]  # hashes and sizes of the data
    search: SearchTerms | None  # a calibration and a check search nothing
    evaluation_seed: PositiveSeed
    limits: Limits
    caps: Caps
    price_per_device_hour: float = Field(default=0.0, ge=0)
    devices: Devices
    calibration: Calibration | None
    parent: Parent | None
    thresholds: Thresholds = Thresholds()

    @model_validator(mode="after")
    def _check(self) -> Self:
        if self.resolved.evaluations > self.caps.evaluations:
            raise ValueError(
                f"the envelope's {self.resolved.evaluations} evaluations exceed the cap of "
                f"{self.caps.evaluations}"
            )
        if self.caps.cost is not None and self.price_per_device_hour == 0:
            raise ValueError("a cap on cost needs --price-per-device-hour")
        return self
