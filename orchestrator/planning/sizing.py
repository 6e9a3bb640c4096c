"""How large a search is: its tier on the devices at hand, less what a request leaves of that."""

from budgets.tiers import Sizing, size, size_expanded
from orchestrator.config import Config


def sizing_of(config: Config, devices: int) -> Sizing:
    """P, G and S on so many devices. Raises ValueError where not one generation is paid for."""
    search, dimension = config.search, config.tuned.space.dimension
    tier = search.tier or "target"
    if search.variant == "expanded":
        sizing = size_expanded(tier, dimension, devices, search.population)
    else:
        sizing = size(search.phase, tier, dimension, devices, search.population)
    sizing = _on_seeds(sizing, search.seeds_per_candidate)
    sizing = _of_generations(sizing, search.generations)
    resolved, most = sizing.resolved, config.budget.max_evals
    if most is None or resolved.evaluations <= most:
        return sizing
    generations = most // resolved.per_generation
    if generations < 1:
        raise ValueError(
            f"--max-evals {most} does not pay for one generation of "
            f"{resolved.per_generation} evaluations"
        )
    reason = f"--max-evals {most} pays for {generations} of {resolved.generations} generations"
    return _resized(sizing, reason, generations=generations)


def _on_seeds(sizing: Sizing, seeds: int | None) -> Sizing:
    """Each candidate on so many seeds: fewer are fewer evaluations, for more there are fewer
    generations within the tier's E."""
    resolved, most = sizing.resolved, sizing.nominal.evaluations
    if seeds is None or seeds == resolved.seeds_per_candidate:
        return sizing
    affordable = most // (resolved.population * seeds) if seeds > 0 else 0
    if affordable < 1:
        raise ValueError(
            f"search.seeds_per_candidate: expected 1 to {most // resolved.population} (one "
            f"generation of {resolved.population} within the tier's {most} evaluations), got "
            f"{seeds}"
        )
    reason = f"{seeds} instead of {resolved.seeds_per_candidate} seeds a candidate were asked for"
    if affordable < resolved.generations:
        reason += f", so {affordable} of {resolved.generations} generations"
    generations = min(resolved.generations, affordable)
    return _resized(sizing, reason, generations=generations, seeds_per_candidate=seeds)


def _of_generations(sizing: Sizing, most: int | None) -> Sizing:
    """At most so many generations."""
    if most is None or most >= sizing.resolved.generations:
        return sizing
    if most < 1:
        raise ValueError(f"search.generations: expected 1 or more, got {most}")
    reason = f"{most} of {sizing.resolved.generations} generations were asked for"
    return _resized(sizing, reason, generations=most)


def _resized(sizing: Sizing, reason: str, **fields: int) -> Sizing:
    resolved = sizing.resolved.model_copy(update=fields)
    return Sizing(sizing.nominal, resolved, (*sizing.reasons, reason))


def most_evaluations(config: Config, sizing: Sizing) -> int:
    """The cap on evaluations: the tier's E, or what was asked for instead."""
    asked = [config.budget.max_evals or 2**31, sizing.nominal.evaluations]
    if config.search.generations is not None:  # an amendment that raises it pays for more of them
        asked.append(config.search.generations * sizing.resolved.per_generation)
    return min(asked)
