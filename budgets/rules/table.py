"""Every rule by name: what it looks at, what it leads to, which thresholds it compares with.

What a rule sees in a run is a `Reading`, whether it fires or not. The rules themselves are in
`failures`, `nan` and `progress`; `triggers` asks them.
"""

from dataclasses import dataclass
from typing import Any, Literal

from budgets.events import Fired
from budgets.state import Batch, Generation, RunState
from budgets.terms import Thresholds


@dataclass(frozen=True, slots=True)
class Reading:
    """What a rule observes, against its limit."""

    rule: str
    decision: Literal["pause", "stop"]
    generation: int
    observed: float | None  # None: there is nothing to observe yet
    limit: float | None  # None: there is none, the rule is off
    evidence: str
    overridable: bool = True
    fires: bool = False
    flag: str = ""  # of the cap that is in the way

    def fired(self) -> Fired:
        """As it goes on record once it fires."""
        assert self.observed is not None, "a rule fires on what it observed"
        assert self.limit is not None, "... beyond a limit"
        return Fired(
            rule=self.rule,
            generation=self.generation,
            decision=self.decision,
            observed=self.observed,
            limit=self.limit,
            evidence=self.evidence,
        )


@dataclass(frozen=True, slots=True)
class Rule:
    """A row of the table."""

    name: str
    about: str  # what it looks at, in plain words
    decision: Literal["pause", "stop", "no go", "finding"]
    fields: tuple[str, ...] = ()  # of `Thresholds`
    overridable: bool = True

    def limits(self, thresholds: Thresholds) -> dict[str, Any]:
        """The thresholds it compares with, by name."""
        return {name: getattr(thresholds, name) for name in self.fields}

    def reads(
        self,
        generation: int,
        observed: float | None,
        limit: float | None,
        evidence: str,
        *,
        fires: bool,
    ) -> Reading:
        """This rule's reading. Only rules that pause or stop a run have one."""
        assert self.decision in ("pause", "stop"), f"{self.name} holds no run up"
        return Reading(
            self.name,
            self.decision,
            generation,
            observed,
            limit,
            evidence,
            self.overridable,
            fires,
        )


CRASH_RATE = Rule(
    "crash_rate",
    "evaluations of the generation that failed, of all it will have; neither what the "
    "infrastructure lost, nor NaNs in an extreme region or that sustained_nan speaks for",
    "pause",
    ("crash_rate_pause", "crash_count_pause"),
)
SUSTAINED_NAN = Rule(
    "sustained_nan",
    "evaluations of the generation that are NaN, of all it will have, where no extreme region "
    "explains it; or one such in each of several generations running",
    "pause",
    ("nan_rate_pause", "nan_count_pause", "nan_generations_pause", "edge", "far"),
)
TOO_FEW_HEALTHY = Rule(
    "too_few_healthy",
    "healthy candidates of a closed generation: fewer than the search recombines, half of P, teach "
    "it nothing",
    "pause",
    overridable=False,
)
RUNAWAY_TIME = Rule(
    "runaway_time",
    "median time of a closed generation's healthy evaluations, times the calibrated one; CPU "
    "seconds on a CPU",
    "pause",
    ("time_drift_pause", "time_drift_floor_seconds"),
)
BASELINE_FAILED = Rule(
    "baseline_failed",
    "failed evaluations of a check's baseline: nothing can be compared with it",
    "pause",
    overridable=False,
)
INFRASTRUCTURE = Rule(
    "infrastructure",
    "how often one evaluation was lost with its worker or node since the run was last opened",
    "pause",
    ("attempts_per_session",),
    overridable=False,
)
SETUP_FAILED = Rule(
    "setup_failed",
    "evaluations which found, since the run was last opened, that nothing can be evaluated at all: "
    "data or a program missing, sources changed, a budget too small",
    "pause",
    overridable=False,
)
STORAGE = Rule(
    "storage",
    "room on the disk for further results, when an evaluation is to start",
    "pause",
    overridable=False,
)
PATIENCE = Rule(
    "patience",
    "by how much the mean healthy score got better over the last generations, relative to the "
    "baseline's",
    "stop",
    ("patience_generations", "patience_improve"),
)
BUDGET = Rule(
    "budget",
    "what the next generation or evaluation needs, against what the caps leave free",
    "stop",
    overridable=False,
)

FOLLOWS_A_GO = Rule("go", "whether the run that a phase 2 follows said Go, 1 or 0", "pause")
UNPROVEN_KNOBS = Rule(
    "unproven_knobs",
    "knobs that are new in a phase 2, and that no finished check has shown to move the score",
    "pause",
)

HOLDING_UP = (
    FOLLOWS_A_GO,
    UNPROVEN_KNOBS,
    CRASH_RATE,
    SUSTAINED_NAN,
    TOO_FEW_HEALTHY,
    RUNAWAY_TIME,
    BASELINE_FAILED,
    SETUP_FAILED,
    INFRASTRUCTURE,
    STORAGE,
    PATIENCE,
    BUDGET,
)
"""Rules that pause or stop a run."""


def _condition(name: str, about: str, *fields: str) -> Rule:
    return Rule(name, about, "no go", fields, overridable=False)


GO = (
    _condition(
        "stability",
        "share of evaluations that failed, over the last generations",
        "go_crash_rate",
        "go_generations",
    ),
    _condition(
        "signal",
        "the winner's gain, of the baseline's score, on paired fresh seeds, and its lower bound",
        "go_gain",
        "go_seeds",
        "go_level",
    ),
    _condition(
        "persistence",
        "how much better than the baseline, on paired fresh seeds, the mean of the search's "
        "distribution over the last third of generations is: not only one candidate",
    ),
    _condition(
        "sanity", "share of the winner's runs that failed, exploded or were sick", "go_pathological"
    ),
    _condition(
        "rung",
        "share of the gain that is kept with more FLOPs, to persist; the gain's lower bound there "
        "is above 0",
        "persist_share",
        "go_level",
    ),
    _condition(
        "flat",
        "nothing is shown to be better than the baseline; with the standard deviation of a "
        "generation's candidates in that of chance alone: no more, and the knobs do nothing",
        "go_gain",
        "dead_spread",
        "dead_freedom",
    ),
    _condition(
        "seed_luck",
        "the search's best score seemed a gain, more than the most that fresh seeds leave possible "
        "and than the best of as many baselines would seem 99 times of 100",
        "go_gain",
        "go_level",
    ),
)
"""Conditions that a finished search must meet for a Go, and why there is none."""

FINDINGS = (
    Rule(
        "alive",
        "a check's knobs: scores that count as the same, and the share of the finds that may be "
        "luck",
        "finding",
        ("same_score", "alive_level"),
        overridable=False,
    ),
)
"""What else compares with a threshold, and holds nothing up."""

TABLE = (*HOLDING_UP, *GO, *FINDINGS)
"""All of them, as `orchestrator explain` prints them."""


def place_of(state: RunState, batch: Batch) -> int:
    """Where a rule about the batch speaks: its generation, or that which would come next."""
    return batch.number if batch.panel is None else state.asked


def name_of(batch: Batch) -> str:
    """As people read it."""
    return f"generation {batch.number}" if batch.panel is None else f"the {batch.panel} panel"


def counted_in(generation: Generation, count: int) -> tuple[str, str, float]:
    """So many of a generation's evaluations, their share of all it will have, and as a number.

    `2 of 8 evaluations of generation 0`, `25.0%`; before all are over `2 of 3 evaluations of
    generation 0 so far`, `25.0% of its 8`.
    """
    planned, over = len(generation.points) * len(generation.seeds), len(generation.results())
    share, so_far = f"{count / planned:.1%}", ""
    if over < planned:
        share, so_far = f"{share} of its {planned}", " so far"
    said = f"{count} of {over} evaluations of generation {generation.number}{so_far}"
    return said, share, count / planned
