"""What a verdict promises, each as a share of runs; and the trials that it is held to."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace

from budgets.statistics.rates import rate_interval
from tests.simulation.instant import Machine
from tests.simulation.verdicts import Ending, Trial

DEFAULT_NOISE = 0.005
"""Standard deviation over seeds of the embedded default, in its score (docs/benchmarks.md)."""

CONVINCING, POWER = 0.02, 0.90
"""A gain that so large a share of runs find, and say Go."""

FALSE_GO = 0.01

LUCKY = 0.05
"""Share of evaluations that score 5 sd too low: of a search's 120 some six."""


@dataclass(frozen=True)
class Promise:
    """Something that happens in so large a share of a trial's runs, at least and at most."""

    what: str
    happens: Callable[[Ending], bool]
    least: float = 0.0
    most: float = 1.0

    @property
    def asked(self) -> str:
        """In words; empty where it is only counted."""
        if self.least == 0:
            return {0.0: "never", 1.0: ""}.get(self.most, f"at most {self.most:.0%}")
        return f"at least {self.least:.0%}" if self.least < 1 else "always"


@dataclass(frozen=True)
class Kept:
    """How often it happened."""

    promise: Promise
    count: int
    runs: int

    @property
    def rate(self) -> float:
        return self.count / self.runs

    @property
    def interval(self) -> tuple[float, float]:
        """Where the true rate lies, 95 times in 100."""
        return rate_interval(self.count, self.runs)

    @property
    def is_kept(self) -> bool:
        return self.promise.least <= self.rate <= self.promise.most


def kept(promises: Iterable[Promise], endings: list[Ending]) -> list[Kept]:
    """Each promise, held against the runs there were."""
    return [Kept(p, sum(map(p.happens, endings)), len(endings)) for p in promises]


@dataclass(frozen=True)
class Case:
    """A trial, and what its runs are held to. What is promised without a limit is counted."""

    trial: Trial
    promises: tuple[Promise, ...]


def is_lucky(ending: Ending) -> bool:
    """Whether something is recommended that gains nothing."""
    return bool(ending.arm) and (ending.gain is None or ending.gain <= 0)


def fires_alone(rule: str) -> Promise:
    return Promise(f"{rule} fires, nothing else", lambda e: e.rules == (rule,), least=1.0)


GO = Promise("Go", lambda e: e.is_go)
NO_GO_HERE = replace(GO, most=FALSE_GO)
GO_HERE = replace(GO, least=POWER)
PERSISTS = Promise("Go that persists", lambda e: e.grade == "go_persists")
LUCK = Promise("Go for what gains nothing", lambda e: e.is_go and is_lucky(e), most=FALSE_GO)
NAMED_LUCK = Promise("named as best, gains nothing", is_lucky)
HELD_UP = Promise("held up by a rule", lambda e: e.grade is None, most=0.0)
SEED_LUCK = Promise(
    "seed_luck fires where nothing is recommended",
    lambda e: bool(e.arm) or e.rules == ("seed_luck",),
    least=0.95,
)


def nothing(name: str, machine: Machine | None = None, **settings: float) -> Trial:
    """Pure noise: no point is better than another."""
    return Trial(f"nothing, {name}", "noise", settings, calibrated_on=machine)


def gain(available: float, objective: str = "sphere", **settings: float) -> Trial:
    """So much can be gained, on the noise of the embedded default."""
    asked = {"available": available, "noise": DEFAULT_NOISE, **settings}
    return Trial(f"{objective} {available:.1%}", objective, asked)


def named(name: str, trial: Trial, machine: Machine | None = None) -> Trial:
    return replace(trial, name=name, machine=machine or trial.machine)


NULL = (NO_GO_HERE, NAMED_LUCK, HELD_UP)


def _of_the_curve(trial: Trial) -> tuple[Promise, ...]:
    if not trial.available:
        return NULL
    return (GO if trial.available < CONVINCING else GO_HERE, LUCK, HELD_UP)


CURVE = (
    nothing("noise 0.5%", noise=DEFAULT_NOISE),
    *(gain(share) for share in (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.05)),
)
"""Trials that differ in nothing but how much can be gained."""

CASES = (
    *(Case(trial, _of_the_curve(trial)) for trial in CURVE),
    *(Case(nothing(f"noise {sd:.0%}", noise=sd), NULL) for sd in (0.01, 0.02)),
    Case(nothing("noise 0.5%, seeds 2%", noise=0.005, seed_noise=0.02), NULL),
    Case(nothing("noise 1%, calibrated as 0.3%", Machine(calm=0.3), noise=0.01), NULL),
    Case(named("sphere 2.0%, seeds 2%", gain(0.02, seed_noise=0.02)), (GO_HERE, LUCK, HELD_UP)),
    Case(gain(0.02, "ellipsoid"), (GO, LUCK, HELD_UP)),
    Case(gain(0.02, "rosenbrock"), (GO, LUCK, HELD_UP)),
    Case(
        nothing("noise 0.5%, lucky evaluations", noise=0.005, traps=LUCKY),
        (NO_GO_HERE, NAMED_LUCK, SEED_LUCK, HELD_UP),
    ),
    Case(
        named("sphere 2.0%, lucky evaluations", gain(0.02, traps=LUCKY)),
        (GO, LUCK, NAMED_LUCK, HELD_UP),
    ),
    Case(
        named("a machine that slows down", gain(0.05), Machine(trouble="slow")),
        (fires_alone("runaway_time"),),
    ),
    Case(
        named("a device that fails", gain(0.05), Machine(trouble="failing")),
        (fires_alone("infrastructure"),),
    ),
    Case(
        named("NaNs around the optimum", gain(0.05, nan_radius=0.7)),
        (fires_alone("sustained_nan"),),
    ),
    *(
        Case(named(f"{share:.0%} of 3.0% persists", gain(0.03, persists=share)), (GO, promise))
        for share, promise in (
            (-1.0, replace(PERSISTS, most=FALSE_GO)),
            (0.0, replace(PERSISTS, most=FALSE_GO)),
            (0.5, PERSISTS),
            (1.0, PERSISTS),
        )
    ),
)
"""All of them, each with a name of its own."""
