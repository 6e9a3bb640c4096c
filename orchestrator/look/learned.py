"""What a search's evaluations say of its knobs, and how its distribution grew."""

from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise
from math import ceil, sqrt
from statistics import fmean, stdev
from typing import TYPE_CHECKING, Any, NamedTuple

from budgets.plan import SearchTerms
from budgets.state import Batch, RunState
from budgets.stats import chance_of, discoveries
from budgets.verdict import mean_score
from orchestrator.look.rows import Distribution, Marginal, Spread
from orchestrator.records.diverged import ReplayError
from orchestrator.records.recommended import best_point

if TYPE_CHECKING:
    from orchestrator.look.run import Run

MOST_BINS, LEAST_IN_A_BIN = 8, 4  # of fewer candidates a standard error says little
LEAST_FREEDOM = 5  # degrees of freedom of the error: with fewer it is hardly known itself
LEAST_SPREAD = 1e-9  # of a knob's range: a knob that varied less was not searched
ROUNDING = 1e-12  # of the largest score: no smaller effect is one
NOISE_SEARCHES = 19  # one search in twenty shows more than all of them by chance


# Which knobs move the score


class Effect(NamedTuple):
    """What one knob does to the score per standard deviation of the candidates, others held."""

    slope: float
    error: float  # its standard error
    stands: bool  # its slope, or its curvature, is too much for chance


def effects(
    generations: Sequence[Batch], centre: Sequence[float], rate: float
) -> list[Effect] | None:
    """Estimate every knob's effect at the point `centre` by ordinary least squares.

    Scores are regressed on the points and on their squares around `centre`, all less their
    generation's mean, so that what a generation shares drops out. A knob at its optimum has no
    slope, but a curvature. The last half of the generations counts; where it is too little, only
    slopes; then all generations; None where those are too few or do not span the knobs. Of what
    stands, the share `rate` at most is expected to be luck (`discoveries`).
    """
    half = generations[-ceil(len(generations) / 2) :]
    for window, has_curvature in ((half, True), (half, False), (generations, False)):
        if (found := _least_squares(window, centre if has_curvature else None)) is not None:
            values, errors, freedom = found
            chances = [_chance(*pair, freedom) for pair in zip(values, errors, strict=True)]
            believed = discoveries(chances, rate)
            level = rate * believed / len(chances)
            stands = [believed > 0 and chance <= level for chance in chances]
            count = len(centre)
            return [
                Effect(values[knob], errors[knob], any(stands[knob::count]))
                for knob in range(count)
            ]
    return None


def _least_squares(
    generations: Sequence[Batch], centre: Sequence[float] | None
) -> tuple[list[float], list[float], int] | None:
    """Return coefficients, slopes first, their standard errors, and the degrees of freedom."""
    import numpy as np

    designs, targets, largest = list[Any](), list[Any](), 0.0
    for generation in generations:
        pairs = zip(generation.points, generation.scores(), strict=True)
        healthy = [(point, score) for point, score in pairs if score is not None]
        if len(healthy) < 2:
            continue
        points, scores = (np.array(column) for column in zip(*healthy, strict=True))
        if centre is not None:
            points = np.hstack([points, (points - np.array(centre)) ** 2])
        designs.append(points - points.mean(axis=0))
        targets.append(scores - scores.mean())
        largest = max(largest, float(np.abs(scores).max()))
    if not designs:
        return None
    design, target = np.concatenate(designs), np.concatenate(targets)
    within, knobs = len(target) - len(designs), len(generations[0].points[0])
    spread = np.sqrt(np.sum(design[:, :knobs] ** 2, axis=0) / within)
    if spread.min() < LEAST_SPREAD:
        return None
    design /= np.concatenate([spread, spread**2])[: design.shape[1]]
    freedom = within - design.shape[1]
    if freedom < LEAST_FREEDOM or np.linalg.matrix_rank(design) < design.shape[1]:
        return None
    q, r = np.linalg.qr(design)
    values = np.linalg.solve(r, q.T @ target)
    values[np.abs(values) <= ROUNDING * largest] = 0.0
    noise = np.sqrt(np.sum((target - design @ values) ** 2) / freedom)
    errors = noise * np.linalg.norm(np.linalg.inv(r), axis=1)
    return values.tolist(), errors.tolist(), freedom


def _chance(value: float, error: float, freedom: int) -> float:
    """Return the probability of so large a coefficient of a knob that does nothing."""
    if error == 0:
        return 0.0 if value else 1.0
    return chance_of(value / error, freedom)


def marginals(run: "Run") -> Iterator[Marginal]:
    """One a knob; none before a candidate has a score."""
    generations = run.state.completed
    samples = [
        (point, score - mean)
        for generation in generations
        if (mean := mean_score(generation)) is not None
        for point, score in zip(generation.points, generation.scores(), strict=True)
        if score is not None
    ]
    if not samples:
        return
    centre, found = best_point(run.state), None
    if centre is not None:
        found = effects(generations, centre, run.plan.thresholds.alive_level)
    for place, knob in enumerate(run.space.knobs):
        own = sorted((point[place], excess) for point, excess in samples)
        units, excess = zip(*own, strict=True)
        bins = list(_bins(len(own)))
        effect = None if found is None else found[place]
        yield Marginal(
            knob=knob.name,
            units=units,
            excess=excess,
            bin_units=tuple(fmean(units[one]) for one in bins),
            bin_means=tuple(fmean(excess[one]) for one in bins),
            bin_errors=tuple(stdev(excess[one]) / sqrt(len(excess[one])) for one in bins),
            slope=None if effect is None else effect.slope,
            slope_error=None if effect is None else effect.error,
            stands=None if effect is None else effect.stands,
        )


def _bins(samples: int) -> Iterator[slice]:
    """Parts as large as each other, or by one; none of too few candidates."""
    count = min(MOST_BINS, samples // LEAST_IN_A_BIN)
    edges = [round(place * samples / max(1, count)) for place in range(count + 1)]
    return (slice(*edge) for edge in pairwise(edges))


# How the distribution grew


def replayed(state: RunState) -> tuple[Distribution | None, str]:
    """The distribution after each generation; or None, and why there is none."""
    plan = state.plan
    if plan.search is None:
        return None, f"a {plan.phase} run searches nothing"
    if not state.completed:
        return None, "no generation is finished yet"
    try:
        from orchestrator.warm_start import landscapes

        seen = landscapes(state, accept_drift=True)
        correlation, condition = by_chance(plan.search, plan.resolved.population, state.finished)
    except (ImportError, ReplayError, ValueError, ArithmeticError) as error:
        return None, f"the search cannot be replayed here: {error}"
    history = []
    for generation, here in zip(state.completed, seen[1:], strict=True):
        told = generation.told
        assert told is not None, "it is among those told"
        ratio = sqrt(here.condition)  # that on record is of a decomposition before it
        spread = Spread(generation.number, told.sigma, ratio, here.deviations, told.mean)
        history.append(spread)
    return Distribution(tuple(history), seen[-1].correlations, correlation, condition), ""


@lru_cache(maxsize=8)
def by_chance(terms: SearchTerms, population: int, generations: int) -> tuple[float, float]:
    """Return what one search in twenty of that size exceeds where no knob does anything.

    That is its strongest correlation, whatever its sign, and its covariance's condition number.
    """
    import numpy as np
    from threadpoolctl import threadpool_limits

    from orchestrator.search import landscape_of_noise

    with threadpool_limits(1):  # in 40 knobs threads waiting for each other take six times as long
        seen = [
            landscape_of_noise(terms.model_copy(update={"seed": seed}), population, generations)
            for seed in range(1, NOISE_SEARCHES + 1)
        ]
    rest = (np.array(one.correlations) - np.eye(len(terms.start)) for one in seen)
    strongest = max(float(np.abs(matrix).max()) for matrix in rest)
    return strongest, max(one.condition for one in seen)
