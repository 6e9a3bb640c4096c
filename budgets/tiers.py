"""Phases and tiers: a tier's P, G and S on the devices at hand."""

from math import ceil, floor, log
from typing import NamedTuple

from budgets.plan import Envelope, Phase, Tier

_TIERS: dict[tuple[Phase, Tier], tuple[int, int, int, str]] = {
    ("phase1", "min"): (8, 2, 1, "smoke test: the pipeline is stable, a first best so far"),
    ("phase1", "target"): (12, 10, 1, "enough evaluations to see an improvement trend"),
    ("phase1", "max"): (16, 30, 1, "only when stable and clearly improving"),
    ("phase2", "min"): (12, 5, 3, "whether the phase 1 winner survives several seeds"),
    ("phase2", "target"): (16, 15, 3, "real optimisation with variance control"),
    ("phase2", "max"): (24, 30, 3, "only when the correlation is good and the budget allows"),
}
"""P, G, S and the intent."""

TIERS = {
    tier: Envelope(population=population, generations=generations, seeds_per_candidate=seeds)
    for tier, (population, generations, seeds, _) in _TIERS.items()
}
INTENT = {tier: intent for tier, (*_, intent) in _TIERS.items()}


class Sizing(NamedTuple):
    """A tier as written, as resolved for the devices, and why they differ."""

    nominal: Envelope
    resolved: Envelope
    reasons: tuple[str, ...]


def smallest_population(dimension: int) -> int:
    """The fewest candidates a generation of CMA-ES learns from: even, 8 in ten dimensions."""
    floor_ = 4 + floor(2 * log(dimension))
    return floor_ + floor_ % 2


def size(  # noqa: PLR0913 - what sizes depend on
    phase: Phase,
    tier: Tier,
    dimension: int,
    devices: int | None = None,
    population: int | None = None,
    *,
    expanded: bool = False,
) -> Sizing:
    """The tier's sizes with P = 2 x devices, or with that population; its E is never exceeded.

    `expanded`: a phase 2 of more knobs, with S = 1, so a third of the tier's E. More knobs need
    more candidates, not more seeds each. Raises ValueError for a population that is odd, too small
    or beyond the tier's E.
    """
    nominal, reasons = TIERS[phase, tier], list[str]()
    if expanded:
        full, nominal = nominal, nominal.model_copy(update={"seeds_per_candidate": 1})
        reasons.append(
            f"more knobs, each candidate on 1 seed instead of {full.seeds_per_candidate}: "
            f"{nominal.evaluations} of the tier's {full.evaluations} evaluations"
        )
    resolved = nominal
    if population is not None:
        most = nominal.evaluations // nominal.seeds_per_candidate
        if population < 4 or population % 2 or population > most:
            raise ValueError(
                f"search.population must be even, at least 4 and at most {most} (the tier's "
                f"{nominal.evaluations} evaluations), got {population}"
            )
        resolved = _with_population(nominal, population)
        reasons.append(f"P = {population} was asked for")
    elif devices is not None:
        least, most = smallest_population(dimension), TIERS[phase, "max"].population
        chosen = _population_for(devices, least, most)
        resolved = _with_population(nominal, chosen)
        why = (
            f"P = {chosen}: twice the {devices} devices, from {least} for {dimension} knobs to "
            f"{most} for {phase}, in whole rounds where that fits"
        )
        if resolved.generations < 2:
            why = (
                f"P = {chosen} would leave {resolved.generations} generation of the tier's "
                f"{nominal.evaluations} evaluations: the tier's P = {nominal.population} is used"
            )
            resolved = nominal
        reasons.append(why)
        per_round = resolved.per_generation
        if idle := -per_round % devices:
            reasons.append(
                f"{per_round} evaluations a generation on {devices} devices leave {idle} idle in "
                f"the last round ({idle / (per_round + idle):.0%} of the time)"
            )
    return Sizing(nominal, resolved, tuple(reasons))


def _population_for(devices: int, least: int, most: int) -> int:
    step = devices if devices % 2 == 0 else 2 * devices  # even, and whole rounds
    wanted = ceil(max(2 * devices, least) / step) * step
    if wanted <= most:
        return wanted
    fitting = most // step * step
    return fitting if fitting >= least else most


def _with_population(nominal: Envelope, population: int) -> Envelope:
    """As many whole generations of `population` as the tier's E pays for."""
    generations = nominal.evaluations // (population * nominal.seeds_per_candidate)
    return nominal.model_copy(update={"population": population, "generations": generations})
