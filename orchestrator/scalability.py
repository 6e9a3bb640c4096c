"""Throughput against the number of workers: the law, its fit, and a controller that uses it.

Pure arithmetic; numpy and scipy are imported by `fit`.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import floor, inf, sqrt
from statistics import fmean, stdev
from typing import Literal, NamedTuple

Regime = Literal["linear", "contended", "optimal", "retrograde"]
NEAR_MOST, NEAR_LINEAR = 0.95, 0.90
LEAST_GAIN = 0.02  # relative; a smaller difference in throughput counts as noise
TOLERANCE = 0.05  # relative; back-pressure ignores a smaller difference


class Law(NamedTuple):
    """X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1)), evaluations an hour on N workers.

    [Gunther, A General Theory of Computational Scalability Based on Rational Functions, 2008]
    """

    one: float  # lambda > 0: the throughput of one worker alone
    contention: float  # sigma >= 0: the share of the work that waits for a shared resource
    coherency: float  # kappa >= 0: the cost of each pair of workers

    def throughput(self, workers: float) -> float:
        """Return X(N) for N >= 1 workers."""
        others = workers - 1
        load = 1 + self.contention * others + self.coherency * workers * others
        return self.one * workers / load

    @property
    def optimum(self) -> float:
        """N* = sqrt((1 - sigma) / kappa), at least 1; infinite without a maximum."""
        if self.contention >= 1:
            return 1.0
        return max(1.0, sqrt((1 - self.contention) / self.coherency)) if self.coherency else inf

    def regime(self, workers: float) -> Regime:
        """Return the first of optimal, retrograde and linear that holds; otherwise contended."""
        limit = self.one / self.contention if self.contention else inf
        most = self.throughput(self.optimum) if self.optimum < inf else limit
        own = self.throughput(workers)
        if own >= NEAR_MOST * most:
            return "optimal"
        if workers > self.optimum:
            return "retrograde"
        return "linear" if own >= NEAR_LINEAR * workers * self.one else "contended"


class Level(NamedTuple):
    """The measured throughput of a number of workers."""

    workers: int
    throughput: float  # evaluations an hour
    noise: float = 0.0  # its relative standard error

    def exceeds(self, other: "Level", tolerance: float = TOLERANCE) -> bool:
        """Whether it is higher by more than the tolerance and more than two standard errors."""
        margin = max(tolerance, 2 * sqrt(self.noise**2 + other.noise**2))
        return self.throughput > other.throughput * (1 + margin)


@dataclass(frozen=True, slots=True)
class Fit:
    """The law fitted to measured levels, which are in the order of their workers."""

    levels: tuple[Level, ...]
    law: Law
    residual: float  # root mean square, relative

    @property
    def optimum(self) -> float | None:
        """N*, infinite without a maximum; None with fewer than three levels."""
        return self.law.optimum if len(self.levels) > 2 else None

    @property
    def noise(self) -> float:
        """The relative difference below which two throughputs count as equal."""
        measured = sqrt(2 * fmean(level.noise**2 for level in self.levels))
        return min(0.5, max(LEAST_GAIN, measured, self.residual))

    def recommended(self, most: float = inf) -> int:
        """Return the fewest workers with the highest throughput, within the noise.

        Never more than `most`, than were measured, or than the optimum.
        """
        last = max(1, floor(min(most, self.levels[-1].workers, self.law.optimum)))
        enough = (1 - self.noise) * self.law.throughput(last)
        return next(n for n in range(1, last + 1) if self.law.throughput(n) >= enough)


def fit(levels: Iterable[Level]) -> Fit:
    """Return the law fitted by least squares of relative residuals, with sigma, kappa >= 0.

    N / X is linear in the coefficients of 1, N - 1 and N (N - 1). Raises ValueError without a
    positive throughput at every level.
    """
    import numpy as np
    from scipy.optimize import nnls

    found = tuple(sorted(levels))
    if not found or any(one.workers < 1 or not 0 < one.throughput < inf for one in found):
        raise ValueError(f"expected measured throughputs of one worker or more, got {found}")
    workers, measured, _ = np.array(found).T
    terms = np.stack([np.ones_like(workers), workers - 1, workers * (workers - 1)], axis=1)
    terms *= (measured / workers)[:, None]
    known = min(3, len(found))  # as many coefficients as levels
    coefficients = np.zeros(3)
    coefficients[0] = min(workers / measured) / 1e4  # lambda stays finite
    coefficients[:known] += nnls(terms[:, :known], 1 - terms[:, 0] * coefficients[0])[0]
    sigma, kappa = (float(own) for own in coefficients[1:] / coefficients[0])
    law = Law(1 / float(coefficients[0]), sigma, kappa if kappa > 1e-9 else 0.0)  # rounding
    residuals = [law.throughput(level.workers) / level.throughput - 1 for level in found]
    return Fit(found, law, sqrt(fmean(residual**2 for residual in residuals)))


# Back-pressure

FIRST_WORKERS = 2
LEAST_WINDOW = 4  # evaluations before each decision, and at least one a worker
MOST_WINDOWS = 8  # of the present number of workers, that its throughput is measured on
MEMORY = 32  # decisions after which a level is forgotten: the machine may have changed


class Observation(NamedTuple):
    """A healthy evaluation, timed by the clock of an open run."""

    began_ms: float
    ended_ms: float
    workers: float  # mean number of evaluations in flight meanwhile


def throughput_of(window: Sequence[Observation], workers: int) -> Level:
    """Return X = N / R, with R the mean time of an evaluation (Little's law)."""
    seconds = [(seen.ended_ms - seen.began_ms) / 1000 for seen in window]
    mean = fmean(seconds)
    noise = stdev(seconds) / sqrt(len(seconds)) / mean if len(seconds) > 1 else 0.0
    return Level(workers, 3600 * fmean(seen.workers for seen in window) / mean, noise)


@dataclass(frozen=True, slots=True)
class Decision:
    """How many evaluations may be in flight from now on, and the figures behind it."""

    bp_action: Literal["increase", "hold", "throttle"]
    bp_regime: Regime | None  # None: nothing is measured yet
    bp_p_star: float | None  # the optimum; None if unknown or infinite
    bp_throughput: float | None  # evaluations an hour, as last measured
    bp_allowed: int


class Controller:
    """Finds the number of workers with the highest throughput while a run goes on.

    It begins with 2. After each window of evaluations at the present number it returns to a better
    level, or tries more workers if evaluations take stably long and the last increase has paid.
    """

    def __init__(self, devices: int) -> None:
        self._devices = devices
        self.decision = Decision("hold", None, None, None, min(FIRST_WORKERS, devices))
        self._window: list[Observation] = []  # at the present number of workers
        self._new = self._decisions = 0
        self._since_ms = 0.0  # when the present number began
        self._levels: dict[int, tuple[int, Level]] = {}  # by workers, with the decision's number

    def observe(self, seen: Observation) -> Decision:
        """Return the decision after one more evaluation."""
        allowed = self.decision.bp_allowed
        if seen.began_ms >= self._since_ms and abs(seen.workers - allowed) < 0.5:
            self._window.append(seen)
            self._new += 1
        enough = max(LEAST_WINDOW, allowed)
        if self._new < enough:
            return self.hold()
        self._window, self._new = self._window[-MOST_WINDOWS * enough :], 0
        self.decision = self._decide(allowed)
        if self.decision.bp_allowed != allowed:
            self._window, self._since_ms = [], seen.ended_ms
        return self.decision

    def hold(self) -> Decision:
        """Return the present number once more."""
        self.decision = replace(self.decision, bp_action="hold")
        return self.decision

    def _decide(self, allowed: int) -> Decision:
        self._decisions += 1
        self._levels[allowed] = self._decisions, throughput_of(self._window, allowed)
        recent = self._decisions - MEMORY
        levels = {n: level for n, (at, level) in self._levels.items() if at > recent}
        fitted = fit(levels.values())
        wanted = self._wanted(allowed, levels, fitted)
        optimum = self.decision.bp_p_star if fitted.optimum is None else fitted.optimum
        return Decision(
            "increase" if wanted > allowed else "throttle" if wanted < allowed else "hold",
            bp_regime=fitted.law.regime(allowed),
            bp_p_star=None if optimum == inf else optimum,
            bp_throughput=levels[allowed].throughput,
            bp_allowed=wanted,
        )

    def _wanted(self, allowed: int, levels: dict[int, Level], fitted: Fit) -> int:
        """Return the best level so far, or a larger number to try: twice as many, at most N*, or
        halfway to a larger one that was tried. One less if nothing larger is left to try."""
        here, fewer = levels[allowed], [n for n in levels if n < allowed]
        best = max(levels.values(), key=lambda level: level.throughput)
        if best.exceeds(here):
            return best.workers
        larger = min(self._devices, 2 * allowed)
        if fitted.optimum is not None:
            larger = min(larger, max(allowed + 1, floor(min(fitted.optimum, larger))))
        if tried := [n for n in levels if n > allowed]:
            larger = min(larger, (allowed + min(tried)) // 2)
        has_paid = not fewer or here.exceeds(levels[max(fewer)])
        if larger > allowed and has_paid and self._is_stable(allowed):
            return larger
        is_highest = allowed == self._devices or len(levels) > 1
        return allowed - 1 if is_highest and not fewer and allowed > 1 else allowed

    def _is_stable(self, allowed: int) -> bool:
        """Whether the later half of the window was as fast as the earlier, within the noise."""
        middle = len(self._window) // 2
        earlier = throughput_of(self._window[:middle], allowed)
        later = throughput_of(self._window[middle:], allowed)
        return not earlier.exceeds(later, 2 * TOLERANCE)
