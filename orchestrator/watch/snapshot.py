"""What a person watches of a run, as one model. It is also what a page of a live run shows.

Times are seconds, scores are better when lower. Text is as the ledger has it: whoever shows it
escapes it.
"""

import math
from datetime import datetime
from typing import Literal

from pydantic import ConfigDict, computed_field
from pydantic.dataclasses import dataclass

from budgets.events import Status
from budgets.frozen import Frozen
from budgets.pace import Pace
from budgets.report.model import Balance
from budgets.rules.triggers import Decision
from budgets.terms import PanelName, Phase, Tier
from orchestrator.records.standing import OVER, Kind

Doing = Literal["idle", "starting", "running"]
"""Of a device; `starting` until its supervisor has said that it took the evaluation on."""


OVERDUE_TIMES = 1.5
"""An evaluation that takes so many times what is expected is pointed at ..."""

OVERDUE_SECONDS = 2.0
"""... if it is so much longer at least."""


class Counts(Frozen):
    """Evaluations, of the search and beside it together."""

    settled: int  # for good
    ok: int
    failed: dict[str, int]  # by status
    lost: int  # attempts that were lost, cancelled or are tried again: no evaluation is used up
    in_flight: int
    to_come: int  # neither settled nor in flight, at most


class GenerationScores(Frozen):
    """One generation's scores over its healthy candidates, as far as it has come."""

    number: int
    is_full: bool  # else evaluated short by a proxy: comparable with its like only
    is_told: bool
    healthy: int
    failed: int
    best: float | None
    mean: float | None
    sigma: float | None
    outside: Literal["better", "worse"] | None  # the mean, of the baseline's noise band


class Scores(Frozen):
    """What a search has found so far, beside the baseline."""

    baseline: float | None
    noise_sd: float | None  # of one evaluation, from seed to seed
    band: tuple[float, float] | None  # the baseline's mean - and + 2 of these
    best: float | None  # of full evaluations
    best_by_luck: float | None  # expected best of as many evaluations of the baseline
    generations: tuple[GenerationScores, ...]


class Arm(Frozen):
    """One configuration that is compared on fresh seeds."""

    panel: PanelName
    name: str
    settled: int
    planned: int
    mean: float | None  # of the healthy ones so far


@dataclass(frozen=True, slots=True, kw_only=True, config=ConfigDict(extra="forbid"))
class DeviceRow:
    """One slot and what it does. There may be hundreds: a model of pydantic's is dearer to make."""

    slot: int  # from 0, the lowest that was free when the evaluation was reserved
    device: str  # as outcomes name it; empty: not known
    doing: Doing
    seconds: float | None  # for how long it has been doing that; None: not known
    what: str = ""  # which evaluation, in words; empty when idle
    place: str = ""  # its directory below the run's `eval/`
    attempt: int = 0
    expected_seconds: float | None = None
    expected_steps: float | None = None  # that others took
    limit_seconds: float | None = None  # then it is ended
    step: float | None = None  # as its heartbeat said last, as are the next two
    loss: float | None = None
    progress: float | None = None  # 0 to 1; of steps as others took them, where it does not say

    @computed_field  # type: ignore[prop-decorator]
    @property
    def is_overdue(self) -> bool:
        """Whether it takes far longer than is expected."""
        expected = self.expected_seconds
        if self.seconds is None or expected is None:
            return False
        return self.seconds > max(OVERDUE_TIMES * expected, expected + OVERDUE_SECONDS)

    @property
    def share(self) -> float:
        """Of what is expected, that it has taken; 0 where it is idle or nothing is known."""
        return 0.0 if self.seconds is None else self.seconds / (self.expected_seconds or math.inf)


class Ended(Frozen):
    """An attempt that is over."""

    what: str
    status: Status
    score: float | None
    seconds: float
    device: str
    cause: str
    is_again: bool  # its evaluation is owed once more
    is_recovered: bool


class Snapshot(Frozen):
    """A run at a moment."""

    run_id: str
    phase: Phase
    tier: Tier | None
    objective: str
    now: datetime
    last: datetime | None  # of the last record; None before the first session
    records: int
    standing: Kind
    whose: str  # the same with who carries it out, in words
    decision: Decision
    sentence: str  # how far it is, or what it came to, and what to do about a rule that holds it
    way_on: str  # what a person has to do where nobody carries it out; else empty
    course: str  # what it does now: `generation 3 (4 of 15)`, `finalists on fresh seeds`
    generation: int  # how many have begun
    generations: int  # that are planned
    counts: Counts
    scores: Scores
    arms: tuple[Arm, ...]
    balances: tuple[Balance, ...]
    pace: Pace  # as of now: what runs at the moment has come so much nearer to its end
    devices: tuple[DeviceRow, ...]
    recent: tuple[Ended, ...]  # the last few attempts, the last one first
    triggers: tuple[str, ...]  # rules that fired, the last one first, as are the next two
    overrides: tuple[str, ...]
    withdrawn: tuple[str, ...]

    @property
    def holder(self) -> str:
        """Who carries it out, without the time that passes by itself."""
        return self.whose if self.standing == "running" else self.standing

    @property
    def said(self) -> str:
        """Where it stands, and what to do about it."""
        return f"{self.sentence} {self.way_on}".rstrip()

    @property
    def is_over(self) -> bool:
        """Whether nothing more will happen unless a person does something."""
        return self.standing in OVER
