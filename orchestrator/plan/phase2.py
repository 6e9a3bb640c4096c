"""Begin a phase 2 where the phase 1 that it follows ended.

The new search takes over phase 1's recommendation, its last step size and shape, but no score. They
are frozen in the plan: phase 1 may go on, or be deleted, afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from budgets.formatting import PROGRAM
from budgets.plan import Plan, Source, VariantName
from budgets.rules import follows_a_go
from budgets.state import RunState
from objectives import registry
from objectives.space import SearchSpace
from orchestrator.config import Config
from orchestrator.plan.differences import differing, in_short, objection
from orchestrator.plan.resolve import SIGMA0, Overrides, Succession
from orchestrator.plan.times import known_knobs
from orchestrator.records.objective import Point, best_point
from orchestrator.records.runs import find_run, load_state

if TYPE_CHECKING:
    from orchestrator.search.strategy import Landscape, Matrix

LEAST_STEP, MOST_STEP = 0.05, 0.2
"""Bounds of the step size that is taken over. Below, the noise hides the differences between
candidates; above, what was learned is lost."""

LARGEST_SIGMA0 = 0.3  # of a plan


@dataclass(frozen=True)
class Followed:
    """The phase 1 that a phase 2 follows."""

    state: RunState
    source: Source
    objections: Mapping[str, str]  # by rule, with the remedies

    def succession(self, config: Config, seen: "Landscape | None" = None) -> Succession:
        """Return what the search takes over, if the run's replay ended at `seen`.

        Without a replay it starts at the same point, with the default step and no shape.
        """
        if seen is None:
            return Succession(self.source)
        taken = _distribution(seen, self.state.plan, config, self.source.added)
        return Succession(self.source, *taken)

    def permits(self, overrides: Overrides) -> tuple[Overrides, Overrides]:
        """Return the overrides that let the new run begin, and the others.

        Raises ValueError if one is missing.
        """
        given = {rule for rule, _ in overrides}
        if missing := [why for rule, why in self.objections.items() if rule not in given]:
            raise ValueError(". ".join(missing))
        mine = [override for override in overrides if override[0] in self.objections]
        return mine, [override for override in overrides if override not in mine]


def followed(root: Path, config: Config, kind: str) -> Followed | None:
    """Return the phase 1 that `config` follows, for devices of that kind; None for a phase 1.

    A verdict other than Go is an objection only. Raises ValueError if that run is missing or cannot
    be followed.
    """
    follows, variant, objective = config.search.follows, config.search.variant, config.tuned
    if follows is None:
        return None
    assert variant is not None, "a phase 2 has a variant"
    directory = find_run(follows, root, "phase1")
    run_id, state = directory.resolve().name, load_state(directory)
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    _require_same_objective(run_id, state.plan, config, variant)
    point, added = carried(run_id, state, objective.space)
    alive = known_knobs(root, objective, kind).alive if added else ()
    source = Source(
        run_id=run_id,
        head=state.head,
        variant=variant,
        grade="" if state.decided is None else state.decided.grade,
        point=point,
        added=added,
        unproven=tuple(name for name in added if name not in alive),
    )
    check = f"{PROGRAM} check knobs --knobs {','.join(source.unproven)}"
    remedies = {
        "go": "Follow a run that says Go",
        "unproven_knobs": f"Check them with `{check}` and the same --objective and --set",
    }
    objections = {
        one.rule: f"{objection(source, one.rule)}. {remedies[one.rule]}, or begin all the same "
        f'with --override {one.rule} --reason "..."'
        for one in follows_a_go(source)
    }
    return Followed(state, source, objections)


def foreseen(root: Path, config: Config, kind: str) -> Succession | None:
    """Return what a phase 2 takes over, without a replay of phase 1; None for a phase 1."""
    start = followed(root, config, kind)
    return None if start is None else start.succession(config)


def carried(run_id: str, state: RunState, space: SearchSpace) -> tuple[Point, tuple[str, ...]]:
    """Return the run's best point in another space, and the knobs that are new there.

    New knobs are at their baseline. Raises ValueError without a point, or without a shared knob.
    """
    best, earlier = best_point(state), [knob.name for knob in state.plan.space.knobs]
    if best is None:
        raise ValueError(f"{run_id} has told no generation yet: there is nothing to start from")
    known = dict(zip(earlier, best, strict=True))
    new = tuple(knob.name for knob in space.knobs if knob.name not in known)
    if len(new) == space.dimension:
        raise ValueError(
            f"{run_id} searched other knobs, {', '.join(earlier)}: none of {', '.join(new)}"
        )
    point = (known.get(knob.name, knob.encode(knob.baseline)) for knob in space.knobs)
    return tuple(point), new


def _require_same_objective(
    run_id: str, earlier: Plan, config: Config, variant: VariantName
) -> None:
    """Raise ValueError unless both tune the same on the same data; `expanded` adds knobs."""
    before, space, objective = earlier.space, config.tuned.space, config.tuned
    there = {"objective": earlier.objective.name, **earlier.objective.settings}
    here = {"objective": objective.spec.name, **objective.spec.settings}
    there |= {"direction": earlier.direction, "provenance": earlier.provenance}
    here |= {"direction": config.direction, "provenance": dict(objective.provenance)}
    if variant == "expanded":
        here |= {name: there.get(name) for name in ("space", "knobs")}  # compared one by one
    changed = list(differing("", there, here))
    recorded = registry.load(earlier.objective).fingerprint
    if not changed and recorded != earlier.objective_fingerprint:
        changed = [f"its code or its space has changed since {run_id} was planned"]
    if changed:
        raise ValueError(
            f"--variant {variant} tunes what {run_id} tuned, and this is another objective "
            f"(there -> here): {in_short(changed)}. Repeat its file, or its --objective and --set"
        )
    if variant == "expanded":
        lost = [knob.name for knob in before.knobs if knob not in space.knobs]
        if lost or space.dimension == before.dimension:
            raise ValueError(
                f"--variant expanded: expected the knobs of {run_id} and more, such as --set "
                f"space=A+B; missing or changed: {', '.join(lost) or 'none'}"
            )


def _distribution(
    seen: "Landscape", earlier: Plan, config: Config, added: Sequence[str]
) -> "tuple[float, Matrix]":
    """Return scale and shape of the first distribution.

    A learned knob keeps its standard deviation, within bounds, and its correlations; an added one
    gets the default step and no correlations.
    """
    import numpy as np

    from orchestrator.search.strategy import rows

    searched = [knob.name for knob in earlier.space.knobs]
    names = [knob.name for knob in config.tuned.space.knobs]
    here = [place for place, name in enumerate(names) if name not in added]
    there = [searched.index(names[place]) for place in here]
    step = min(max(seen.scale, LEAST_STEP), MOST_STEP)
    covariance = SIGMA0[config.search.method] ** 2 * np.eye(len(names))
    covariance[np.ix_(here, here)] = step**2 * np.array(seen.shape)[np.ix_(there, there)]
    variance = float(np.mean(np.diag(covariance)))
    return min(sqrt(variance), LARGEST_SIGMA0), rows(covariance / variance)


def recorded_again(config: Config, recorded: Plan) -> Succession | None:
    """Return what a recorded phase 2 took over, as this configuration asks for it.

    Phase 1 is not read: it may have gone on, or be deleted.
    """
    search, source = recorded.search, recorded.source
    if search is None or source is None:
        return None
    if config.search.follows is not None:
        run_id = Path(config.search.follows).resolve().name
        source = source.model_copy(update={"run_id": run_id, "variant": config.search.variant})
    return Succession(source, search.sigma0, search.shape)


def landscapes(state: RunState) -> "list[Landscape]":
    """Return the search's distribution at its beginning and after each generation told.

    Raises ReplayError if the replay diverges.
    """
    from orchestrator.search import Search  # imports cma

    plan = state.plan
    assert plan.search is not None, "only a search is replayed"
    search = Search(plan.search, plan.resolved.population)
    seen = [search.landscape()]
    for generation in state.generations:
        search.replay([generation])
        if generation.told is not None:
            seen.append(search.landscape())
    return seen
