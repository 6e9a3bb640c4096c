"""Whether a shorter evaluation ranks candidates as the full one does.

A check measures it: its candidates are evaluated in full and, on the same seeds, short, in the
comparison "proxy". No ranking ever holds scores of both lengths.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from random import Random

from budgets.events import Status
from budgets.plan import Frozen, Plan, ProxyTerms
from budgets.state import Batch, RunState
from budgets.stats import tau_b, tau_b_interval

LEAST_CANDIDATES = 8
"""Fewer hardly ever show agreement, and where they do their interval is much too narrow."""


class Certificate(Frozen):
    """How far short and full evaluations of the same candidates agree; it may be too little."""

    candidates: int
    compared: int  # of these: all but those that failed at both lengths
    healthy: int  # of these, at both lengths
    tau: float | None  # Kendall's tau-b; None where one length tells no two candidates apart
    lower: float | None  # its interval
    upper: float | None
    level: float  # how often the interval misses it
    asked: float  # of the lower bound
    holds: bool  # short evaluations may stand in for full ones


def certificate(state: RunState) -> Certificate | None:
    """What a check has shown; None unless its candidates were evaluated at both lengths."""
    short, terms = state.comparison("proxy"), state.plan.proxy
    if short is None or terms is None or not short.closed:
        return None
    generation = state.generation(0)
    return compare(generation, short, terms, _key(state.plan)) if generation.closed else None


def compare(generation: Batch, others: Batch, terms: ProxyTerms, key: str) -> Certificate:
    """Both lengths of the same candidates. One that failed comes after every healthy one.

    Those that failed at both lengths say nothing of ranks. `key` decides the bootstrap's draws.
    """
    both = list(zip(_ranked(generation), _ranked(others), strict=True))
    compared = [(f, s) for f, s in both if f < inf or s < inf]
    healthy = [(f, s) for f, s in compared if f < inf and s < inf]
    full, short = tuple(f for f, _ in compared), tuple(s for _, s in compared)
    lower, upper = _interval(full, short, key, terms.level) or (None, None)
    count = len(compared)
    return Certificate(
        candidates=len(both),
        compared=count,
        healthy=len(healthy),
        tau=tau_b(full, short),
        lower=lower,
        upper=upper,
        level=terms.level,
        asked=terms.agreement,
        holds=count >= LEAST_CANDIDATES and lower is not None and lower >= terms.agreement,
    )


def _ranked(batch: Batch) -> tuple[float, ...]:
    return tuple(inf if score is None else score for score in batch.scores())


@lru_cache(maxsize=256)  # it takes a tenth of a second, and is asked for after every record
def _interval(
    full: Sequence[float], short: Sequence[float], key: str, level: float
) -> tuple[float, float] | None:
    return tau_b_interval(full, short, Random(key), level)  # noqa: S311 - no secret


def _key(plan: Plan) -> str:
    return f"{plan.evaluation_seed}/0"


def seconds(batch: Batch, *, cpu: bool = False) -> list[float]:
    """What its healthy evaluations took, by the clock or of the processor."""
    healthy = [r for r in batch.results() if r.status is Status.OK]
    return [r.cpu_seconds if cpu else r.seconds for r in healthy]
