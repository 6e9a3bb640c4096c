"""What a window of evaluations measured, and what several of them did."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from orchestrator.capacity.fitted import Level

MOST_WINDOWS = 8  # of a number of workers that its mean speaks for
LEAST_CHANGE = 0.15  # of the throughput, from one window to the next: the machine has changed


@dataclass(frozen=True, slots=True)
class Observation:
    """An evaluation that ended well, as the ledger tells it. Times are of when the run was open."""

    began_ms: float
    ended_ms: float
    workers: float  # in flight while it ran, the mean over that time
    length: float = 1.0  # of what it evaluates, relative to the objective

    @property
    def seconds(self) -> float:
        """For an evaluation as long as the objective's."""
        return (self.ended_ms - self.began_ms) / 1000 / self.length


@dataclass(frozen=True, slots=True)
class Measured:
    """What a number of workers did, over so many windows."""

    level: Level
    windows: int = 1

    @property
    def throughput(self) -> float:
        return self.level.throughput

    @property
    def noise(self) -> float:
        return self.level.noise


def measured(window: Sequence[Observation], workers: int) -> Measured:
    """What so many workers did: X = N / R, with R the mean time an evaluation takes (Little)."""
    count = len(window)
    seconds = [seen.seconds for seen in window]
    in_flight, mean = fsum(seen.workers for seen in window) / count, fsum(seconds) / count
    variance = fsum((one - mean) ** 2 for one in seconds) / (count - 1)
    return Measured(Level(workers, 3600 * in_flight / mean, sqrt(variance / count) / mean))


def merged(before: Measured | None, now: Measured) -> Measured:
    """The mean with what was known, so that luck fades; `now` alone where the machine changed."""
    if before is None:
        return now
    margin = max(LEAST_CHANGE, 3 * sqrt(before.noise**2 + now.noise**2))
    if abs(now.throughput / before.throughput - 1) > margin:
        return now
    windows = min(before.windows + 1, MOST_WINDOWS)
    own, old = 1 / windows, 1 - 1 / windows
    throughput = old * before.throughput + own * now.throughput
    noise = sqrt((old * before.noise) ** 2 + (own * now.noise) ** 2)
    return Measured(Level(now.level.workers, throughput, noise), windows)


def is_stable(window: Sequence[Observation], tolerance: float) -> bool:
    """Whether the window's later half took as long as its earlier half, but for chance."""
    seconds = [seen.seconds for seen in window]
    middle = len(seconds) // 2
    halves = (seconds[:middle], seconds[middle:])
    means = [fsum(half) / len(half) for half in halves]
    squares = fsum((x - m) ** 2 for half, m in zip(halves, means, strict=True) for x in half)
    spread = sqrt(squares / max(1, len(seconds) - 2) * (1 / middle + 1 / len(halves[1])))
    allowed = max(2 * tolerance * fsum(means) / 2, 2 * spread)
    return abs(means[1] - means[0]) <= allowed
