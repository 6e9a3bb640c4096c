"""What a run's wall clock loses beside its evaluations, as a ledger has measured it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean, median

from budgets.events import GenerationTold, Opened, Reserved, Settled
from budgets.ledger import Record


@dataclass(frozen=True)
class Overheads:
    """Seconds that no evaluation takes. Those named in `assumed` nobody has measured."""

    startup_seconds: float  # of a command, until its first evaluation may begin
    gap_seconds: float  # of a device, for each evaluation: before it starts and after it ended
    generation_seconds: float  # between a generation's last evaluation and the next one's first
    assumed: tuple[str, ...] = ()


NOTHING = Overheads(0.0, 0.0, 0.0)

ASSUMED = Overheads(10.0, 0.03, 0.1, ("start-up", "gap", "between generations"))
"""Where nothing was measured: Ray on two cores, an evaluation forked from a warm process, and a
guided search's model of some hundred scores (docs/benchmarks.md)."""


def overheads(records: Sequence[Record], default: Overheads = ASSUMED) -> Overheads:
    """Those of a run or a calibration, from its ledger; what it does not tell is the default's.

    The start-up is the first session's: later runs of one command find the engine started. Times
    between generations are their mean, for a search's model takes longer the more it knows.
    """
    found = {
        "start-up": next(_startups(records), None),
        "gap": _gap(records),
        "between generations": _mean(list(_between_generations(records))),
    }
    usual = {
        "start-up": default.startup_seconds,
        "gap": default.gap_seconds,
        "between generations": default.generation_seconds,
    }
    seconds = [usual[name] if value is None else value for name, value in found.items()]
    unknown = [name for name, value in found.items() if value is None and name in default.assumed]
    return Overheads(seconds[0], seconds[1], seconds[2], tuple(unknown))


def _startups(records: Sequence[Record]) -> Iterator[float]:
    """Of each session that evaluated something: from its opening to its first reservation."""
    is_begun = False
    for record in records:
        if isinstance(record.event, Opened):
            is_begun = True
        elif isinstance(record.event, Reserved) and is_begun:
            is_begun = False
            yield record.elapsed_ms / 1000


def _gap(records: Sequence[Record]) -> float | None:
    """What an attempt's device waits before and after the attempt itself; medians."""
    around, after = list(_around(records)), list(_after(records))
    return max(0.0, median(around)) + _median(after) if around else None


def _around(records: Sequence[Record]) -> Iterator[float]:
    """From each reservation to its settlement, less the evaluation itself."""
    open_since: dict[tuple[object, ...], int] = {}
    for record in records:
        event = record.event
        if isinstance(event, Opened):
            open_since = {}  # another clock, and nobody waited for what was in flight
        elif isinstance(event, Reserved):
            open_since[event.attempt_key] = record.elapsed_ms
        elif isinstance(event, Settled):
            since = open_since.pop(event.attempt_key, None)
            if since is not None:
                yield (record.elapsed_ms - since) / 1000 - event.seconds


def _after(records: Sequence[Record]) -> Iterator[float]:
    """From each settlement to the reservation that follows it at once."""
    for record, following in pairwise(records):
        if isinstance(record.event, Settled) and isinstance(following.event, Reserved):
            yield (following.elapsed_ms - record.elapsed_ms) / 1000


def _between_generations(records: Sequence[Record]) -> Iterator[float]:
    settled: int | None = None
    is_told = False
    for record in records:
        if isinstance(record.event, Opened):
            settled, is_told = None, False
        elif isinstance(record.event, Settled) and not is_told:
            settled = record.elapsed_ms
        elif isinstance(record.event, GenerationTold):
            is_told = True
        elif isinstance(record.event, Reserved) and is_told:
            if settled is not None:
                yield (record.elapsed_ms - settled) / 1000
            is_told = False


def _median(values: list[float]) -> float:
    return median(values) if values else 0.0


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None
