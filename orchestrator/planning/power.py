"""With what probability a tier's verdict shows a gain that is there to be found."""

from collections.abc import Callable
from dataclasses import dataclass
from math import sqrt
from statistics import fmean
from typing import TYPE_CHECKING

from budgets.stats import power_of, rate_interval
from budgets.terms import Plan, SearchMethod

if TYPE_CHECKING:
    from orchestrator.planning.trial import Ending, Noise

GAINS = (0.01, 0.02, 0.05)
"""Relative to the baseline's score."""

RUNS = 60
"""Imagined searches of each gain, at most: a rate of one half is then known to +-13 %."""

SECONDS = 30.0
"""That a tier's searches may take together."""

GUIDED_EVALUATIONS = 240
"""Of longer searches the model takes seconds each: they are imagined without it."""

SEED = 20_251


@dataclass(frozen=True)
class Assumptions:
    """What nobody can know of a landscape before it is searched."""

    conditioning: float = 10.0  # the steepest knob's curvature by the flattest one's
    knobs_that_matter: float = 0.8  # share of them; the others do nothing
    by_checks: bool = False  # whether checks have shown that share


@dataclass(frozen=True)
class Detected:
    """How often the search's verdict shows a gain that is there, and is a Go."""

    gain: float  # at the landscape's optimum
    runs: int
    shown: int
    go: int
    kept: float  # of the gain, what the winner truly has on average

    @property
    def shown_interval(self) -> tuple[float, float]:
        """Where the true probability lies, 95 times in 100."""
        return rate_interval(self.shown, self.runs)

    @property
    def go_interval(self) -> tuple[float, float]:
        return rate_interval(self.go, self.runs)


@dataclass(frozen=True)
class Power:
    """Of one tier, by gain; and what it was imagined with."""

    detected: tuple[Detected, ...]
    method: SearchMethod
    asked_method: SearchMethod
    own_noise: float  # sd of one evaluation that no other one shares, of the baseline's score
    shared_noise: float  # sd that a seed adds to all alike
    assumptions: Assumptions


def of_the_comparison(plan: Plan, gain: float, own_noise: float) -> tuple[float, float]:
    """With what probability the comparison alone shows a winner's true gain, and finds it enough.

    Exactly, for normal noise, of which `own_noise` is what two points on one seed do not share;
    however the search came by its winner. The plan has a comparison.
    """
    confirmation, limits = plan.confirmation, plan.thresholds
    assert confirmation is not None
    terms = (gain, sqrt(2) * own_noise, confirmation.seeds, limits.go_level)
    enough = confirmation.seeds >= limits.go_seeds
    return power_of(*terms), power_of(*terms, at_least=limits.go_gain) if enough else 0.0


def imagined_power(  # noqa: PLR0913, PLR0917 - what it depends on, and how long it may take
    plan: Plan,
    noise: "Noise",
    seconds: Callable[[], float],
    progress: Callable[[int, int], None],
    assumptions: Assumptions = Assumptions(),
    runs: int = RUNS,
) -> Power:
    """The power of a plan with a comparison, by imagining its search again and again.

    Each of `runs` landscapes is searched with each gain to be had, on the same draws. It ends
    earlier when `seconds`, a clock, has gone on by SECONDS. Imports cma.
    """
    assert plan.search is not None
    asked, began = plan.search.method, seconds()
    is_long = asked == "guided" and plan.resolved.evaluations > GUIDED_EVALUATIONS
    method: SearchMethod = "mirrored-orthogonal" if is_long else asked
    endings: dict[float, list[Ending]] = {gain: [] for gain in GAINS}
    for number in range(runs):
        for gain in GAINS:
            endings[gain].append(_ending(plan, method, gain, noise, assumptions, number))
        progress(number + 1, runs)
        if seconds() - began > SECONDS:
            break
    detected = tuple(_counted(gain, own) for gain, own in endings.items())
    return Power(detected, method, asked, noise.own, noise.shared, assumptions)


def _ending(  # noqa: PLR0913, PLR0917
    plan: Plan,
    method: SearchMethod,
    gain: float,
    noise: "Noise",
    assumptions: Assumptions,
    number: int,
) -> "Ending":
    import numpy as np

    from orchestrator.planning.trial import Landscape, imagined

    assert plan.search is not None
    rng = np.random.default_rng([SEED, number])
    terms = plan.search.model_copy(update={"method": method, "seed": number + 1, "known": ()})
    landscape = Landscape(
        terms.start, gain, assumptions.knobs_that_matter, assumptions.conditioning, rng
    )
    return imagined(plan, terms, landscape, noise, rng)


def _counted(gain: float, endings: "list[Ending]") -> Detected:
    return Detected(
        gain=gain,
        runs=len(endings),
        shown=sum(ending.shown for ending in endings),
        go=sum(ending.go for ending in endings),
        kept=fmean(ending.true_gain for ending in endings) / gain,
    )
