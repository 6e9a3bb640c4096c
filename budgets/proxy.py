"""Whether a shorter evaluation ranks candidates as the full one does.

A check evaluates its candidates in full and, on the same seeds, short, in the comparison "proxy".
No ranking mixes scores of both lengths.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import inf
from random import Random

from budgets.plan import Frozen
from budgets.state import RunState
from budgets.stats import tau_b, tau_b_interval

LEAST_CANDIDATES = 8
"""With fewer, agreement is rarely shown, and its interval is much too narrow."""


class Certificate(Frozen):
    """How far short and full evaluations of the same candidates agree."""

    candidates: int
    compared: int  # without those that failed at both lengths
    healthy: int  # at both lengths
    tau: float | None  # Kendall's tau-b; None where all scores of one length are equal
    lower: float | None  # its interval
    upper: float | None
    level: float  # how often the interval misses the truth
    asked: float  # the lower bound needed
    holds: bool  # whether short evaluations may replace full ones


def certificate(state: RunState) -> Certificate | None:
    """The result of a check of a proxy; None until its candidates are evaluated at both lengths.

    A failed candidate ranks after every healthy one. One that failed at both lengths is left out.
    """
    plan, other = state.plan, state.comparisons.get("proxy")
    if other is None or plan.proxy is None or not other.closed or not state.generations[0].closed:
        return None
    scores = (state.generations[0].scores(), other.scores())
    ranked = ([inf if score is None else score for score in own] for own in scores)
    both = list(zip(*ranked, strict=True))
    compared = [pair for pair in both if min(pair) < inf]
    full, short = tuple(f for f, _ in compared), tuple(s for _, s in compared)
    proxy, count = plan.proxy, len(compared)
    lower, upper = _interval(full, short, f"{plan.evaluation_seed}/0", proxy.level) or (None, None)
    return Certificate(
        candidates=len(both),
        compared=count,
        healthy=sum(max(pair) < inf for pair in compared),
        tau=tau_b(full, short),
        lower=lower,
        upper=upper,
        level=proxy.level,
        asked=proxy.agreement,
        holds=count >= LEAST_CANDIDATES and lower is not None and lower >= proxy.agreement,
    )


@lru_cache(maxsize=256)  # it takes a second
def _interval(
    full: Sequence[float], short: Sequence[float], key: str, level: float
) -> tuple[float, float] | None:
    return tau_b_interval(full, short, Random(key), level)  # noqa: S311 - no secret
