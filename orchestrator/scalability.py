"""Throughput against the number of workers: the law, its fit, and a controller that uses it.

Pure arithmetic; numpy and scipy are imported by `fit`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, inf, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

FIRST_WORKERS = 2

Regime = Literal["linear", "contended", "optimal", "retrograde"]
NEAR_MOST, NEAR_LINEAR = 0.95, 0.90
LEAST_GAIN = 0.02  # of the throughput: less is taken for noise, however well it seems known


class Law(NamedTuple):
    """X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), evaluations an hour on N workers.

    [Gunther, A General Theory of Computational Scalability Based on Rational Functions, 2008]
    """

    one: float  # lambda > 0: what one worker does alone
    contention: float  # sigma >= 0: the share that waits for something all of them use
    coherency: float  # kappa >= 0: what each pair of workers costs

    def throughput(self, workers: float) -> float:
        """X(N) of N >= 1 workers."""
        others = workers - 1
        load = 1 + self.contention * others + self.coherency * workers * others
        return self.one * workers / load

    @property
    def optimum(self) -> float:
        """N* = sqrt((1 - sigma) / kappa), 1 at least; infinite where more always do more."""
        if self.contention >= 1:
            return 1.0
        return max(1.0, sqrt((1 - self.contention) / self.coherency)) if self.coherency else inf

    def regime(self, workers: float) -> Regime:
        """Where so many workers stand: the first of optimal, retrograde, linear that is true."""
        limit = self.one / self.contention if self.contention else inf
        most = self.throughput(self.optimum) if self.optimum < inf else limit
        done = self.throughput(workers)
        if done >= NEAR_MOST * most:
            return "optimal"
        if workers > self.optimum:
            return "retrograde"
        return "linear" if done >= NEAR_LINEAR * workers * self.one else "contended"


class Level(NamedTuple):
    """A number of workers, and what they were measured to do together."""

    workers: int
    throughput: float  # evaluations an hour
    noise: float = 0.0  # relative standard error of it

    def exceeds(self, other: "Level", tolerance: float, errors: float) -> bool:
        """Whether this does more: by the tolerance, and by so many standard errors."""
        margin = max(tolerance, errors * sqrt(self.noise**2 + other.noise**2))
        return self.throughput > other.throughput * (1 + margin)


@dataclass(frozen=True, slots=True)
class Fit:
    """The law through measured levels, each number of workers once, in their order."""

    levels: tuple[Level, ...]
    law: Law
    residual: float  # root mean square, relative

    @property
    def optimum(self) -> float | None:
        """N*, infinite where more workers always do more; None where it cannot be told."""
        return self.law.optimum if len(self.levels) > 2 else None

    @property
    def noise(self) -> float:
        """Relative: two throughputs no further apart may be the same."""
        own = sqrt(2 * fmean(level.noise**2 for level in self.levels))
        return min(0.5, max(LEAST_GAIN, own, self.residual))

    def regime(self, workers: int) -> Regime:
        """Where so many workers stand by the law; retrograde if fewer were measured to do more."""
        own = [level.throughput for level in self.levels if level.workers == workers]
        fewer = [level.throughput for level in self.levels if level.workers < workers]
        if own and fewer and own[0] < NEAR_MOST * max(fewer):
            return "retrograde"
        return self.law.regime(workers)

    def recommended(self, most: float = inf) -> int:
        """The fewest workers that do as much as any but for noise.

        Never beyond `most`, what was measured, or the optimum.
        """
        last = max(1, floor(min(most, self.levels[-1].workers, self.law.optimum)))
        enough = (1 - self.noise) * self.law.throughput(last)
        return next(n for n in range(1, last + 1) if self.law.throughput(n) >= enough)


def fit(levels: Iterable[Level]) -> Fit:
    """The law of least squares through measured levels, with sigma, kappa >= 0.

    N / X is linear in the factors of 1, N - 1 and N (N - 1); residuals are relative. Raises
    ValueError where there is nothing to fit.
    """
    import numpy as np
    from scipy.optimize import nnls

    found = tuple(sorted(levels))
    if not found or any(one.workers < 1 or not 0 < one.throughput < inf for one in found):
        raise ValueError(f"expected measured throughputs of one worker or more, got {found}")
    workers, measured, _ = np.array(found).T
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    terms *= (measured / workers)[:, None]
    free = [0, 1, 2][: len(found)]
    if len(found) == 2 and measured[1] < measured[0]:  # no sigma <= 1 makes throughput fall
        free = [0, 2]
    factors = np.zeros(3)
    factors[0] = min(workers / measured) / 1e4  # lambda is finite
    factors[free] += nnls(terms[:, free], 1 - terms[:, 0] * factors[0])[0]
    sigma, kappa = (float(factor) for factor in factors[1:] / factors[0])
    law = Law(1 / float(factors[0]), sigma, kappa if kappa > 1e-9 else 0.0)  # less is rounding
    residuals = [law.throughput(level.workers) / level.throughput - 1 for level in found]
    return Fit(found, law, sqrt(fmean(residual**2 for residual in residuals)))


LIKELY, SURE = 2.0, 3.0  # standard errors of a difference: to go upwards; to go back
MOST_WINDOWS = 8  # that the throughput of the present number of workers is the mean of
MEMORY = 32  # decisions until a number of workers may be tried again: the machine may have changed


class Observation(NamedTuple):
    """An evaluation that ended well. Times count while the run is open."""

    began_ms: float
    ended_ms: float
    workers: float  # in flight while it ran, the mean over that time


def throughput_of(window: Sequence[Observation], workers: int) -> Level:
    """X = N / R, with R the mean time of an evaluation (Little's law)."""
    seconds = [(seen.ended_ms - seen.began_ms) / 1000 for seen in window]
    mean = fmean(seconds)
    noise = stdev(seconds) / sqrt(len(seconds)) / mean if len(seconds) > 1 else 0.0
    return Level(workers, 3600 * fmean(seen.workers for seen in window) / mean, noise)


@dataclass(frozen=True, slots=True)
class Decision:
    """How many evaluations may be in flight from now on, and on what grounds."""

    bp_action: Literal["increase", "hold", "throttle"]
    bp_regime: Regime | None  # None: nothing is known yet
    bp_p_star: float | None  # the optimum, where it was told and is finite
    bp_throughput: float | None  # evaluations an hour, as last measured
    bp_allowed: int


class Controller:
    """Finds the number of workers that does most, from evaluations that ended. Pure arithmetic.

    It begins with 2. After each window of evaluations that all ran at the present number it goes to
    the number that did most, or tries a larger one while evaluations take stably long and the last
    step up has gained.
    """

    def __init__(self, devices: int, window: int, tolerance: float) -> None:
        self._most, self._least_window, self._tolerance = devices, window, tolerance
        self.decision = Decision("hold", None, None, None, min(FIRST_WORKERS, devices))
        self._window: list[Observation] = []  # of the present number of workers
        self._is_new = self._decisions = 0
        self._since_ms = 0.0  # what began earlier says nothing of the present number
        self._levels: dict[int, tuple[int, Level]] = {}  # by workers, with the decision it is of

    def observe(self, seen: Observation) -> Decision:
        """Decide after one more evaluation."""
        own = self.decision.bp_allowed
        if seen.began_ms >= self._since_ms and abs(seen.workers - own) < 0.5:
            self._window.append(seen)
            self._is_new += 1
        enough = max(self._least_window, own)
        if self._is_new < enough:
            return self.hold()
        self._window, self._is_new = self._window[-MOST_WINDOWS * enough :], 0
        self.decision = self._decide(own)
        if self.decision.bp_allowed != own:
            self._window, self._since_ms = [], seen.ended_ms
        return self.decision

    def hold(self) -> Decision:
        """Decide nothing."""
        self.decision = replace(self.decision, bp_action="hold")
        return self.decision

    def _decide(self, own: int) -> Decision:
        self._decisions += 1
        self._levels[own] = self._decisions, throughput_of(self._window, own)
        levels = {
            n: level for n, (at, level) in self._levels.items() if self._decisions - at < MEMORY
        }
        found = fit(levels.values())
        wanted = self._wanted(own, levels, found)
        optimum = self.decision.bp_p_star if found.optimum is None else found.optimum
        return Decision(
            bp_action="increase" if wanted > own else "throttle" if wanted < own else "hold",
            bp_regime=found.regime(own),
            bp_p_star=None if optimum == inf else optimum,
            bp_throughput=levels[own].throughput,
            bp_allowed=wanted,
        )

    def _wanted(self, own: int, levels: dict[int, Level], found: Fit) -> int:
        """The number that did most; else a larger one to try: twice as many, N* on the way,
        halfway to one tried; one less where more cannot be tried and fewer never were.
        """
        here, tolerance = levels[own], self._tolerance
        better = [
            level
            for n, level in levels.items()
            if level.exceeds(here, tolerance, SURE if n < own else LIKELY)
        ]
        if better:
            return max(better, key=lambda level: level.throughput).workers
        larger = min(self._most, 2 * own)
        if found.optimum is not None:
            larger = min(larger, max(own + 1, floor(min(found.optimum, larger))))
        if tried := [n for n in levels if n > own]:
            larger = min(larger, (own + min(tried)) // 2)
        fewer = [n for n in levels if n < own]
        has_gained = not fewer or here.exceeds(levels[max(fewer)], tolerance, LIKELY)
        if larger > own and has_gained and self._is_stable(own):
            return larger
        goes_no_higher = own == self._most or len(levels) > 1
        return own - 1 if goes_no_higher and not fewer and own > 1 else own

    def _is_stable(self, own: int) -> bool:
        """Whether the later half of the window took no longer than the earlier, but for chance."""
        middle = len(self._window) // 2
        earlier = throughput_of(self._window[:middle], own)
        later = throughput_of(self._window[middle:], own)
        return not earlier.exceeds(later, 2 * self._tolerance, LIKELY)
