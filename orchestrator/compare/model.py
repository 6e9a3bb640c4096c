"""Runs side by side as one model: what a page, Markdown, JSON and plots show of them.

Every list about runs is in their order. Scores are better when lower; a gain is relative to the
run's own baseline.
"""

from typing import Literal

from budgets.frozen import Frozen
from budgets.pace import Timing
from budgets.report.model import Balance
from budgets.statistics.comparison import Gain
from orchestrator.report.model import Answer, Identity, KnobView


class Step(Frozen):
    """Where a search stood after one generation."""

    evaluations: int  # settled by then, of the search
    device_hours: float  # charged by then, start-up and fresh seeds left out
    best: float | None  # gain of the best score so far over the baseline: luck is in it
    mean: float | None  # ... of the generation's mean


class Side(Frozen):
    """One of the runs."""

    name: str  # no other's
    label: str  # short, for a plot
    directory: str
    identity: Identity
    answer: Answer
    fingerprint: str  # of the objective: of everything that decides a score
    baseline: float | None  # its score, as calibrated; else on the fresh seeds
    sd: float | None
    gain: Gain | None  # the winner's on fresh seeds; None: not compared yet, or never
    asked: float | None  # what a Go needs
    statuses: dict[str, int]
    balances: tuple[Balance, ...]
    timing: Timing | None
    steps: tuple[Step, ...]  # of a search whose baseline is known
    knobs: tuple[KnobView, ...]

    @property
    def recommends(self) -> bool:
        """Whether it has a value for any knob."""
        return any(knob.recommended is not None for knob in self.knobs)


Part = Literal["objective", "data", "space", "search", "budget", "machine"]
"""What a fact is of."""


class Fact(Frozen):
    """One thing that was asked for or was there, in every run. None: nothing is on record."""

    part: Part
    name: str
    values: tuple[str | None, ...]

    @property
    def differs(self) -> bool:
        return len(set(self.values)) > 1


class Scores(Frozen):
    """Whether the runs' scores are of one measure."""

    groups: tuple[tuple[int, ...], ...]  # runs by number whose scores can be compared
    why_not: tuple[str, ...]  # what sets the groups apart
    mind: tuple[str, ...]  # where scores can be compared and not all else is the same

    @property
    def are_comparable(self) -> bool:
        return len(self.groups) == 1


class Duel(Frozen):
    """One run's winner against another's, on the seeds that both were evaluated on."""

    run: int
    against: int
    gain: Gain


class Compared(Frozen):
    """Runs side by side."""

    runs: tuple[Side, ...]
    scores: Scores
    facts: tuple[Fact, ...]
    duels: tuple[Duel, ...]

    @property
    def differences(self) -> tuple[Fact, ...]:
        return tuple(fact for fact in self.facts if fact.differs)
