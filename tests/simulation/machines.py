"""What a simulated executor runs on: devices that come and go, and attempts on them."""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np

from orchestrator.execution.evaluate import Attempt, Outcome
from tests.simulation.clock import SimulatedClock
from tests.simulation.fates import Nature, Trouble
from tests.simulation.journal import Evaluation, Journal


@dataclass
class Slot:
    """One device, and when it cannot be used."""

    name: str
    factor: float = 1.0  # on how long things take there
    gone_at: float = inf
    back_at: float = inf

    def is_usable(self, now: float) -> bool:
        return not self.gone_at <= now < self.back_at

    def is_lost(self, now: float) -> bool:
        """Gone, and for good."""
        return self.gone_at <= now and self.back_at == inf


@dataclass
class Flight:
    """An attempt on its slot: what becomes of it, and which outcomes come when."""

    attempt: Attempt
    slot: Slot
    began: float
    ends: float
    outcome: Outcome  # in its directory once it is over
    news: list[tuple[float, Outcome]] = field(default_factory=list)
    seen_at: float = 0.0  # no file of it is seen before, even if it has ended
    leaves_summary: bool = True

    @property
    def over_at(self) -> float:
        """When its summary is there, and nothing of it alive."""
        return max(self.ends, self.seen_at)

    def moments(self) -> list[float]:
        """When something happens to it."""
        ends = [] if self.is_over else [self.over_at]
        return ends + [at for at, _ in self.news]

    is_over: bool = False
    is_given_back: bool = False  # heard of, and over: its slot is free


@dataclass
class Machines:
    """What the executors of one story share: the time, the dice and what really happened."""

    clock: SimulatedClock
    rng: np.random.Generator
    journal: Journal
    natures: Mapping[Nature, float]
    faults: Counter[str] = field(default_factory=Counter)
    touch: Callable[[], None] = lambda: None  # the process may die whenever this is called
    is_dead: Callable[[], bool] = lambda: False  # then nothing that it still does has an effect
    met: set[tuple[Trouble, Evaluation]] = field(default_factory=set)  # by none of them twice
