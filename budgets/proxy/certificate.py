"""Whether a shorter evaluation ranks candidates as the full one does, and how long that holds.

It is measured: a full generation's candidates are evaluated short as well, on the same seeds, in
the panel "proxy" that bears the generation's number. While the two orders agree the generations
that follow are evaluated short, every candidate of them: no ranking holds scores of both lengths.
"""

from collections.abc import Sequence
from functools import lru_cache
from math import dist, inf, sqrt
from random import Random
from statistics import fmean, median
from typing import Any, NamedTuple

from budgets.events import PanelAsked, Status
from budgets.frozen import Frozen
from budgets.state import Batch, Generation, Panel, RunState
from budgets.stats import centred_error, tau_b, tau_b_interval, top_overlap
from budgets.terms import Arm, Plan, ProxyTerms

LEAST_CANDIDATES = 8
"""Fewer hardly ever show agreement, and where they do their interval is much too narrow."""


class Certificate(Frozen):
    """How far short and full evaluations of the same candidates agree; it may be too little."""

    generation: int  # whose candidates they are
    candidates: int
    compared: int  # of these: all but those that failed at both lengths
    healthy: int  # of these, at both lengths
    tau: float | None  # Kendall's tau-b; None where one length tells no two candidates apart
    lower: float | None  # its interval
    upper: float | None
    level: float  # how often the interval misses it
    asked: float  # of the lower bound
    error: float | None  # mean difference of the scores, in their unit, but for a constant shift
    top_half: float | None  # share of the better half in full that is in the better half short too
    top_quarter: float | None
    seconds_ratio: float | None  # short over full, medians of healthy evaluations

    @property
    def holds(self) -> bool:
        """Whether short evaluations may stand in for full ones."""
        enough = self.compared >= LEAST_CANDIDATES
        return enough and self.lower is not None and self.lower >= self.asked


class Fidelity(NamedTuple):
    """How a generation is evaluated, and why."""

    short: bool
    paired: bool  # in full, and short too beside the search
    why: str


def fidelity(state: RunState, number: int) -> Fidelity:
    """How the generation of that number is evaluated, by what was known when it was asked.

    Every one before it is told, and its short evaluations, if it had any, are settled.
    """
    terms, left = state.plan.proxy, state.plan.resolved.generations - number - 1
    if terms is None:
        return Fidelity(short=False, paired=False, why="the plan has no proxy")
    if state.plan.search is None:
        return Fidelity(short=False, paired=True, why="the check compares both lengths")
    if left == 0:
        return Fidelity(short=False, paired=False, why="the last generation is always full")
    last = last_certificate(state, number)
    over = "nothing is known yet" if last is None else why_over(state, last, number)
    if last is not None and over is None:
        shown = "showed agreement" if last.holds else "did not show agreement"
        why = f"generation {last.generation} {shown}"
        return Fidelity(short=last.holds, paired=False, why=why)
    assert over is not None
    why = over if left > 1 else f"{over}, and no later one is left to shorten"
    return Fidelity(short=False, paired=left > 1, why=why)


def fidelity_of_next(state: RunState) -> Fidelity:
    """How the next generation is evaluated, which can be asked now."""
    return fidelity(state, state.asked)


def length_of_next(state: RunState) -> tuple[dict[str, Any], float]:
    """The settings and the expected length of the next generation's evaluations."""
    terms = state.plan.proxy
    if terms is None or not fidelity_of_next(state).short:
        return {}, 1.0
    return terms.varied.settings, terms.varied.length


def why_over(state: RunState, certificate: Certificate, number: int) -> str | None:
    """Why it says nothing any more of the generation of that number; None while it does."""
    terms = state.plan.proxy
    assert terms is not None
    if number - certificate.generation > terms.generations:
        return f"{terms.generations} generations have passed"
    moved, spread = drift(state, certificate.generation, number)
    if certificate.holds and moved > terms.drift * spread:
        return f"the mean has moved by {moved:.2g}, {terms.drift * spread:.2g} are allowed"
    return None


def drift(state: RunState, since: int, number: int) -> tuple[float, float]:
    """How far the mean moved from one generation to the other, and how far `since`'s points lay.

    Both are Euclidean distances in the unit cube, the second one the root mean square of the
    distances of the points from the mean that they were drawn around.
    """
    before, now = _mean(state, since), _mean(state, number)
    apart = (dist(point, before) ** 2 for point in state.generation(since).points)
    return dist(before, now), sqrt(fmean(apart))


def _mean(state: RunState, number: int) -> tuple[float, ...]:
    """Of the distribution that the generation's points were drawn from."""
    assert state.plan.search is not None
    if number == 0:
        return state.plan.search.start
    told = state.told[number - 1].told
    assert told is not None
    return told.favourite


def certificate(state: RunState, number: int) -> Certificate | None:
    """What the generation of that number showed; None unless it was evaluated at both lengths."""
    panel, terms = state.panel("proxy", number), state.plan.proxy
    if panel is None or terms is None or not panel.closed:
        return None
    generation = state.generation(number)
    return (
        compare(generation, panel, terms, _key(state.plan, number)) if generation.closed else None
    )


def last_certificate(state: RunState, before: int) -> Certificate | None:
    """The latest one that is settled, of generations before the one of that number."""
    numbers = [n for name, n in state.panels if name == "proxy" and n < before]
    found = (certificate(state, number) for number in sorted(numbers, reverse=True))
    return next((one for one in found if one is not None), None)


def compare(generation: Generation, panel: Panel, terms: ProxyTerms, key: str) -> Certificate:
    """Both lengths of the same candidates. One that failed comes after every healthy one.

    Those that failed at both lengths say nothing of ranks. `key` decides the bootstrap's draws.
    """
    both = list(zip(_ranked(generation), _ranked(panel), strict=True))
    compared = [(f, s) for f, s in both if f < inf or s < inf]
    healthy = [(f, s) for f, s in compared if f < inf and s < inf]
    full, short = tuple(f for f, _ in compared), tuple(s for _, s in compared)
    lower, upper = _interval(full, short, key, terms.level) or (None, None)
    count = len(compared)
    return Certificate(
        generation=generation.number,
        candidates=len(both),
        compared=count,
        healthy=len(healthy),
        tau=tau_b(full, short),
        lower=lower,
        upper=upper,
        level=terms.level,
        asked=terms.agreement,
        error=centred_error(*zip(*healthy, strict=True)) if healthy else None,
        top_half=top_overlap(full, short, max(1, count // 2)) if count else None,
        top_quarter=top_overlap(full, short, max(1, count // 4)) if count else None,
        seconds_ratio=_seconds_ratio(generation, panel),
    )


def _ranked(batch: Batch) -> tuple[float, ...]:
    return tuple(inf if score is None else score for score in batch.scores())


@lru_cache(maxsize=256)  # it takes a tenth of a second, and is asked for after every record
def _interval(
    full: Sequence[float], short: Sequence[float], key: str, level: float
) -> tuple[float, float] | None:
    return tau_b_interval(full, short, Random(key), level)  # noqa: S311 - no secret


def _key(plan: Plan, number: int) -> str:
    seed = plan.evaluation_seed if plan.search is None else plan.search.seed
    return f"{seed}/{number}"


def _seconds_ratio(full: Batch, short: Batch) -> float | None:
    own, others = seconds(short), seconds(full)
    return median(own) / median(others) if own and others and median(others) else None


def seconds(batch: Batch, *, cpu: bool = False) -> list[float]:
    """What its healthy evaluations took, by the clock or of the processor."""
    healthy = [r for r in batch.results() if r.status is Status.OK]
    return [r.cpu_seconds if cpu else r.seconds for r in healthy]


def seconds_when_short(state: RunState, before: int, *, cpu: bool = False) -> float:
    """The median of the last short evaluations that were compared with full ones, 0 without any.

    Of generations before the one of that number.
    """
    numbers = [n for name, n in state.panels if name == "proxy" and n < before]
    found = seconds(state.panels["proxy", max(numbers)], cpu=cpu) if numbers else []
    return median(found) if found else 0.0


def paired_panel(generation: Generation, terms: ProxyTerms) -> PanelAsked:
    """The generation's points on its own seeds, evaluated short."""
    varied = terms.varied
    arms = tuple(
        Arm(
            name=f"candidate {number}",
            point=point,
            settings=varied.settings,
            length=varied.length,
        )
        for number, point in enumerate(generation.points)
    )
    seeds = tuple(generation.seeds for _ in arms)
    return PanelAsked(panel="proxy", number=generation.number, arms=arms, seeds=seeds)


def outlook(terms: ProxyTerms, generations: int) -> tuple[int, int]:
    """How many of so many generations are evaluated at both lengths, and how many may be short.

    That is where both lengths agree whenever they are compared and the mean hardly moves; where
    they never agree, as many are compared and none is short.
    """
    paired, short, since = 0, 0, -1 - terms.generations
    for number in range(generations - 1):
        if number - since <= terms.generations:
            short += 1
        elif number < generations - 2:
            paired, since = paired + 1, number
    return paired, short
