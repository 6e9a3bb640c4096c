"""One way to spend a window: its plan, its hours, whether it fits, and its price in quality."""

from collections.abc import Callable
from dataclasses import dataclass
from math import floor
from typing import Any, Literal

from budgets.plain import PROGRAM
from budgets.terms import Calibration, Devices, Plan
from objectives.api import Objective, Variant
from orchestrator.planning.gains import smallest_gain
from orchestrator.planning.needs import Hours, Spread, hours_of, hours_that_must_be_free
from orchestrator.planning.plan import Succession, search_plan, why_no_go
from orchestrator.planning.request import Request
from orchestrator.planning.times import Times

Lever = Literal["as asked", "generations", "tier", "seeds", "flops", "all of these", "more"]


@dataclass(frozen=True)
class Room:
    """The time there is."""

    hours: float  # for evaluations: of a window, what is before its safety margin
    flag: str  # that says so
    text: str  # how it was given


@dataclass(frozen=True)
class Wanted:
    """What was asked for, where, and what is known of it."""

    request: Request
    devices: Devices
    times: Times
    room: Room
    succession: Succession | None = None
    calibrated: Callable[[Objective], Calibration | None] = lambda _: None  # what is, elsewhere
    spread: Spread = lambda _: 0.0

    def plan(self, request: Request) -> Plan:
        """Raises ValueError on a request that cannot be planned."""
        return search_plan(request, self.devices, self.times.calibration, None, self.succession)


@dataclass(frozen=True)
class Idea:
    """What could be done with the window."""

    lever: Lever
    what: str
    request: Request
    price: tuple[str, ...] = ()  # in quality, in words
    varied: Variant | None = None  # what it changes of the objective


@dataclass(frozen=True)
class Choice:
    """An idea, weighed."""

    idea: Idea
    plan: Plan
    hours: Hours
    needed_hours: float  # so much must be free: with the spread, and the last attempts' limits
    fits: bool
    is_assumed: bool  # its times are not measured
    fewer: int  # evaluations than were asked for; negative: more
    smallest_gain: float | None  # that its verdict would see 8 times of 10
    no_go: tuple[str, ...]  # why it cannot come to a Go
    slowdown: float = 1.0  # that its hours reckon with

    @property
    def search_hours(self) -> float:
        """Of its generations, with what is lost between their evaluations."""
        return self.hours.search * self.slowdown

    @property
    def go_is_possible(self) -> bool:
        return self.plan.confirmation is not None and not self.no_go

    def price(self) -> tuple[str, ...]:
        """What it costs in quality, in words and numbers."""
        said = [*self.idea.price]
        if self.fewer > 0:
            said.insert(0, f"{self.fewer} evaluations fewer")
        if self.fewer < 0:
            said.append(f"{-self.fewer} evaluations more")
        if self.plan.confirmation is None:
            said.append("no comparison on fresh seeds: it never says Go")
        if self.smallest_gain:
            said.append(f"sees a gain of {self.smallest_gain:.2%} 8 times of 10")
        return (*said, *self.no_go)

    def as_dict(self) -> dict[str, Any]:
        """For programs."""
        shape = self.plan.resolved
        return {
            "lever": self.idea.lever,
            "what": self.idea.what,
            "fits": self.fits,
            "tier": self.plan.tier,
            "population": shape.population,
            "generations": shape.generations,
            "seeds_per_candidate": shape.seeds_per_candidate,
            "evaluations": shape.evaluations,
            "evaluations_fewer": self.fewer,
            "settings": {} if self.idea.varied is None else self.idea.varied.settings,
            "hours": self.hours.likely,
            "needed_hours": self.needed_hours,
            "is_assumed": self.is_assumed,
            "price": list(self.price()),
            "smallest_gain": self.smallest_gain,
            "go_is_possible": self.go_is_possible,
        }


class NoTimeError(ValueError):
    """Nothing says how long an evaluation takes."""

    def __init__(self) -> None:
        super().__init__(
            "--fit: nothing says how long an evaluation takes here: there is no calibration, and "
            f"no earlier run to scale from. Measure with `{PROGRAM} calibrate` and the "
            "same --objective and --set, or say --assume-eval-seconds X"
        )


def weighed(
    wanted: Wanted, idea: Idea, asked: Plan | None = None, plan: Plan | None = None
) -> Choice:
    """The idea beside what was `asked` for, by its own plan or the one that was made of it.

    Raises NoTimeError without a time, ValueError on a request that cannot be planned.
    """
    plan = wanted.plan(idea.request) if plan is None else plan
    calibration = plan.calibration
    is_assumed = calibration is None or not calibration.samples
    known = wanted.times.calibration
    is_scaled = known is not None and bool(known.samples) and is_assumed
    to_calibrate = wanted.times.to_calibrate or is_scaled
    hours = hours_of(plan, to_calibrate=to_calibrate, beside=wanted.times.delays)
    needed = hours_that_must_be_free(plan, wanted.times, wanted.spread, is_scaled=is_scaled)
    if hours is None or needed is None:
        raise NoTimeError
    seen = smallest_gain(plan)
    return Choice(
        idea=idea,
        plan=plan,
        hours=hours,
        needed_hours=needed,
        fits=needed <= wanted.room.hours * (1 + 1e-9),  # sums of the same parts may differ so
        is_assumed=is_assumed,
        fewer=0 if asked is None else asked.resolved.evaluations - plan.resolved.evaluations,
        smallest_gain=None if seen is None else seen.gain,
        no_go=why_no_go(plan.resolved, plan.confirmation, plan.thresholds),
        slowdown=wanted.times.delays.slowdown,
    )


def generations_that_fit(choice: Choice, room: Room) -> int:
    """About how many of its generations do, not too few; 0 where not even one does."""
    generations = choice.plan.resolved.generations
    spread = choice.needed_hours - choice.hours.needed  # fewer generations have less of it
    search = choice.search_hours + spread
    left = room.hours - (choice.needed_hours - search)
    return max(0, min(generations, floor(left * generations / search + 1e-9)))
