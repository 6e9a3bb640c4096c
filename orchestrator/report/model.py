"""A run's report as one model: what the page, Markdown, JSON, plots and notebooks show.

It is made of the ledger's records, and of the files that attempts left beside it (log lines, loss
curves), and says nothing of its own. Times are seconds on the run's own clock: its sessions laid
end to end, without the breaks between them. Scores are better when lower. Points are of the unit
cube.
"""

from datetime import datetime
from typing import Literal

from budgets.events import Status
from budgets.frozen import Frozen
from budgets.report.model import BudgetReport
from budgets.statistics.comparison import Gain
from budgets.terms import Limits, PanelName, Phase, Tier

Point = tuple[float, ...]
Matrix = tuple[tuple[float, ...], ...]


class Session(Frozen):
    """One process that had the ledger."""

    number: int
    opened: datetime  # by the wall's clock
    began: float  # seconds on the run's clock
    ended: float  # of its last record
    host: str
    workers: int
    versions: dict[str, str]


class Identity(Frozen):
    """Which run it is, and how far it has come."""

    run_id: str
    phase: Phase
    tier: Tier | None
    objective: str
    score: str  # what is measured, with its unit: `held-out bits per byte`
    began: datetime
    last: datetime  # of the last record: the report is as of then
    is_over: bool
    sessions: tuple[Session, ...]
    records: int
    head: str
    found_as: str = ""  # how a command finds it: its directory, where its id is not enough

    @property
    def named(self) -> str:
        """The word by which a command knows it."""
        return self.found_as or self.run_id


Mood = Literal["good", "caution", "bad", "open", "trouble"]
"""Go; No-Go; running or no verdict; paused, stopped, failed."""


class Answer(Frozen):
    """What a person asks first, answered in a sentence or two each: text, without any marks."""

    title: str  # the verdict in two or three words: `Go that persists`, `Running`
    sentence: str  # the verdict in a plain sentence, with its evidence
    but: str = ""  # what to know before relying on that, to stand behind `But`; empty: nothing
    meaning: str  # what the title means, for who never heard it
    luck: str = ""  # what luck alone would have shown; empty where nobody is tempted
    found: str  # did it find something
    sure: str  # how sure is that
    cost: str  # what did it cost, of what was allowed
    next: str  # what to do now
    commands: tuple[str, ...]  # ... to copy: the one that does that, and at most another
    otherwise: str = ""  # what the other is for: `Or, ...:`
    mood: Mood


class KnobView(Frozen):
    """One knob of the space, with where the run began and what it recommends."""

    name: str
    kind: str
    low: int | float  # in its own unit, as are the next three
    high: int | float
    baseline: int | float
    recommended: int | float | None
    baseline_unit: float  # place in its range, 0 to 1, as is the next
    recommended_unit: float | None
    step: int = 1  # of an int knob: it takes every `step`-th number from `low` on
    at_end: str | None = None  # `lower`, `upper`: where in its range the best of the search lies


class _Attempt(Frozen):
    """What is evaluated, and for the how many-th time."""

    panel: PanelName | None  # None: of the search, a check, a campaign
    generation: int  # or the panel's number
    candidate: int
    arm: str  # of a panel; a campaign's condition; empty otherwise
    seed: int
    attempt: int

    @property
    def where(self) -> str:
        """`generation 3, candidate 2`, `winner, average`."""
        if self.panel is not None:
            return f"{self.panel}, {self.arm}"
        return f"generation {self.generation}, candidate {self.candidate}"


class Evaluation(_Attempt):
    """One attempt that is over; the one that decided its evaluation has `is_final`."""

    is_final: bool
    is_short: bool  # evaluated by a proxy: comparable with its like only
    status: Status
    score: float | None
    point: Point
    knobs: dict[str, int | float]
    session: int  # that reserved it
    device: str  # nothing else was on it at the time: `0 on host`, `cpu on host, slot 2`
    began: float
    ended: float
    seconds: float
    startup_seconds: float
    train_seconds: float
    charged_seconds: float
    peak_memory_bytes: int
    steps: int
    tokens: int
    train_flops: float
    eval_flops: float
    cause: str
    whose: (
        str  # a failure's: configuration, infrastructure, ambiguous, setup; empty of a healthy one
    )
    recovered: bool
    place: str  # its directory below the run's: `eval/gen_0000/cand_0003/seed_12`
    metrics: dict[str, float]


class InFlight(_Attempt):
    """An attempt that is reserved and not settled."""

    began: float
    reserved_seconds: float


class GenerationView(Frozen):
    """One generation: its scores, where the search stood afterwards, and what it took.

    Planned device-hours are the calibration's; useful and wasted what its own evaluations were
    charged, a proxy's full ones among them; idle what slots were there for and nothing ran in, from
    the first record after the generation before it to its last record (of the last one to the
    comparison that follows it, or to the run's end).
    """

    number: int
    is_short: bool
    is_told: bool
    descent: int
    began: float
    ended: float
    candidates: int
    healthy: int
    failed: int
    best: float | None
    mean: float | None
    sd: float | None
    best_so_far: float | None  # of full generations up to this one
    luck_so_far: float | None  # expected best of as many evaluations of the baseline
    sigma: float | None
    axis_ratio: float | None
    favourite: Point | None
    planned_device_hours: float | None
    useful_device_hours: float
    wasted_device_hours: float
    idle_device_hours: float
    reserved_device_hours: float  # in flight at the end: of the last one only


class Beside(Frozen):
    """Device-hours of what is no generation: start-up, and what came after the search."""

    name: str  # `start-up`, `comparison`, `rung`
    useful_device_hours: float
    wasted_device_hours: float
    idle_device_hours: float


class Noise(Frozen):
    """The baseline as calibrated, and how far its scores spread over seeds."""

    mean: float
    sd: float | None
    sd_low: float | None  # 95 % interval of the sd
    sd_high: float | None
    scores: tuple[float, ...]
    seconds: tuple[float, ...]
    peak_memory_bytes: tuple[int, ...]
    median_seconds: float
    p90_seconds: float
    band: tuple[float, float] | None = None  # of a candidate's score: mean ± 2 sd over its seeds


class Spread(Frozen):
    """The search's distribution after one generation, replayed from the ledger."""

    generation: int
    sigma: float
    axis_ratio: float  # of the longest axis to the shortest, by standard deviations
    deviations: tuple[float, ...]  # of each knob, in units of its range
    favourite: Point


class Distribution(Frozen):
    """How the search's distribution grew, and what it is at last."""

    history: tuple[Spread, ...]
    first_deviations: tuple[float, ...]
    correlations: Matrix
    eigenvalues: tuple[float, ...]  # variances along the principal axes, the largest first
    axes: Matrix  # unit vectors in that order
    correlation_by_chance: float | None  # the strongest that one search in twenty has on pure noise
    condition_by_chance: float | None


class Marginal(Frozen):
    """What the paid evaluations say of one knob, all else aside (no experiment: see `analyze`).

    `excess` is a candidate's score less its generation's mean; bins hold as many candidates each.
    """

    knob: str
    units: tuple[float, ...]
    excess: tuple[float, ...]
    bin_units: tuple[float, ...]
    bin_means: tuple[float, ...]
    bin_errors: tuple[float, ...]  # standard errors
    slope: (
        float | None
    )  # by regression, per standard deviation of the candidates; see `sensitivity`
    slope_error: float | None
    stands: bool | None  # above its error; None: too few evaluations to say


class ArmScores(Frozen):
    """Scores of one configuration of a panel on its seeds."""

    panel: PanelName
    number: int
    name: str
    scores: dict[int, float | None]  # by seed; None: failed or owed


class Comparison(Frozen):
    """A gain on fresh seeds with its interval, as the verdict looks at it."""

    name: str  # `winner`, `winner, 4 x FLOPs`, `plain attention (control)`
    against: str
    gain: Gain
    is_decisive: bool  # it is the one that the verdict rests on


class Curve(Frozen):
    """A loss over the steps of one evaluation."""

    name: str  # `baseline`, `recommended`, `best of the search`
    seed: int
    quantity: str  # `train loss`
    steps: tuple[float, ...]
    values: tuple[float, ...]


class FailureGroup(Frozen):
    """Attempts that failed alike."""

    whose: str
    what: str
    attempts: int
    final: int
    places: tuple[str, ...]  # directories of the first few
    example: str  # the cause of one, in a line
    log: tuple[str, ...]  # the last lines of its stderr, or of its stdout
    log_from: str  # which file that was; empty: none is there


class Provenance(Frozen):
    """What decides the scores, and how to get them again."""

    settings: dict[str, str]  # of the objective, secrets left out
    data: dict[str, str]  # hashes and sizes
    versions: dict[str, str]  # of the last session
    changed_versions: tuple[str, ...]  # what was otherwise in an earlier one
    devices: str
    caps: dict[str, str]
    limits: dict[str, str]
    search: dict[str, str]  # method, seed, sigma0, P, G, S, evaluation seed, fingerprint
    commands: tuple[str, ...]  # to check it, see its configuration and run it again
    calibration: str | None  # which one its noise and times are from


class Report(Frozen):
    """Everything there is to see of a run."""

    identity: Identity
    answer: Answer
    budget: BudgetReport
    knobs: tuple[KnobView, ...]
    evaluations: tuple[Evaluation, ...]  # in the order in which they ended
    in_flight: tuple[InFlight, ...]
    generations: tuple[GenerationView, ...]
    beside: tuple[Beside, ...]
    noise: Noise | None
    distribution: Distribution | None
    no_distribution: str  # why there is none; empty where there is
    marginals: tuple[Marginal, ...]
    arms: tuple[ArmScores, ...]
    comparisons: tuple[Comparison, ...]
    curves: tuple[Curve, ...]
    no_curves: str  # why there are none
    limits: Limits | None = None  # of one attempt: what times and memory are drawn against
    failures: tuple[FailureGroup, ...]
    provenance: Provenance

    def fresh_scores(self, panel: PanelName, name: str | None = None) -> dict[int, float]:
        """Of the arm of that name, or the panel's first, by seed; empty where there is none."""
        arms = (arm.scores for arm in self.arms if arm.panel == panel and name in (None, arm.name))
        return {s: score for s, score in next(arms, {}).items() if score is not None}
