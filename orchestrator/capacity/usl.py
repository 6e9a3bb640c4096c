"""The universal scalability law: what more workers bring, and from where on they cost.

    X(N) = lambda N / (1 + sigma (N - 1) + kappa N (N - 1))

X evaluations an hour on N workers; lambda what one does alone, sigma the share that waits for
something all of them use (contention), kappa what each pair of them costs (coherency). It is
highest at N* = sqrt((1 - sigma) / kappa). [Gunther, A General Theory of Computational Scalability
Based on Rational Functions, 2008]
"""

from dataclasses import dataclass
from math import floor, inf, sqrt
from typing import Literal

Regime = Literal["linear", "contended", "optimal", "retrograde"]
"""Where N workers stand, the first that is true, with X_max the most that any N does:

- retrograde: fewer did more. N > N* and X(N) < 95 % of X_max, or measured so.
- optimal: X(N) is 95 % of X_max or more.
- linear: X(N) is 90 % of N lambda or more.
- contended: more workers still do more, each of them less.
"""

NEAR_MOST = 0.95  # of the most there is: no more can be gained that a measurement would show
NEAR_LINEAR = 0.90


@dataclass(frozen=True, slots=True)
class Law:
    """One system: throughput against workers. Throughputs have the unit of `one`."""

    one: float  # lambda > 0
    contention: float  # sigma >= 0
    coherency: float  # kappa >= 0

    def throughput(self, workers: float) -> float:
        """X(N) of N >= 1 workers."""
        return self.one * workers / self._load(workers)

    def efficiency(self, workers: float) -> float:
        """X(N) / (N lambda): 1 when every worker does what one does alone."""
        return 1 / self._load(workers)

    def _load(self, workers: float) -> float:
        others = workers - 1
        return 1 + self.contention * others + self.coherency * workers * others

    @property
    def optimum(self) -> float:
        """N*, 1 at least; infinite where more workers always do more."""
        serves = 1 - self.contention
        if serves <= 0:
            return 1.0
        return inf if self.coherency == 0 else max(1.0, sqrt(serves / self.coherency))

    @property
    def most(self) -> float:
        """The highest throughput of any number of workers, or the limit that it comes near."""
        if self.optimum < inf:
            return self.throughput(self.optimum)
        return self.one / self.contention if self.contention > 0 else inf

    def regime(self, workers: float) -> Regime:
        """Where so many workers stand (see `Regime`)."""
        done = self.throughput(workers)
        if done >= NEAR_MOST * self.most:
            return "optimal"
        if workers > self.optimum:
            return "retrograde"
        return "linear" if self.efficiency(workers) >= NEAR_LINEAR else "contended"

    def best(self, most: int, noise: float) -> int:
        """The fewest of 1 .. `most` workers that do as much as any, but for a share of `noise`.

        Never beyond N*.
        """
        highest = max(1, min(most, floor(min(self.optimum, most))))
        enough = (1 - noise) * self.throughput(highest)
        return next(n for n in range(1, highest + 1) if self.throughput(n) >= enough)
