"""Begin a phase 2 where the phase 1 that it follows ended.

The new search takes over the point that phase 1 recommends, its last step and its shape, but no
score. They are frozen in the plan: phase 1 may go on, or be deleted, afterwards.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from budgets.following import objection
from budgets.formatting import command
from budgets.plan import Plan, SearchTerms, Source, VariantName
from budgets.rules import BEFORE_THE_RUN, follows_a_go
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective
from objectives.space import SearchSpace
from orchestrator.config import Config, format_value
from orchestrator.plan.differences import deciding, differing, in_short
from orchestrator.plan.resolve import SIGMA0, Overrides, Succession, method_of
from orchestrator.plan.times import Known, known_knobs
from orchestrator.records.objective import Point, best_point, objective_of
from orchestrator.records.runs import find_run, load_state

if TYPE_CHECKING:
    from orchestrator.search.landscape import Landscape, Matrix

LEAST_STEP, MOST_STEP = 0.05, 0.2
"""Bounds of the step that is taken over. Below, the noise of a generation hides what its candidates
differ in; above, what was learned is lost."""

LARGEST_SIGMA0 = 0.3  # that a plan may have


@dataclass(frozen=True)
class Followed:
    """The phase 1 that a phase 2 follows."""

    state: RunState
    source: Source
    objections: Mapping[str, str]  # by rule, with the remedies

    def succession(self, config: Config, seen: "Landscape | None" = None) -> Succession:
        """Return what the search of `config` takes over from this run, whose replay ended at
        `seen`. Without a replay the shape is missing."""
        shape: Matrix | None = None
        if seen is not None:
            sigma0, shape = _distribution(seen, self.state.plan, config, self.source.added)
        else:
            last = self.state.completed[-1].told if self.state.completed else None
            step = _bounded(MOST_STEP if last is None else last.sigma)
            sigma0 = step if config.search.sigma0 is None else config.search.sigma0
        search = SearchTerms(
            method=method_of(config),
            seed=config.search.seed,
            sigma0=sigma0,
            start=self.source.point,
            shape=shape,
        )
        return Succession(self.source, search)

    def permits(self, overrides: Overrides) -> tuple[Overrides, Overrides]:
        """Return the overrides that let the new run begin, and the others.

        Raises ValueError where one is missing, or where no rule calls for one.
        """
        given = {rule for rule, _ in overrides}
        if missing := [why for rule, why in self.objections.items() if rule not in given]:
            raise ValueError(". ".join(missing))
        for rule in BEFORE_THE_RUN:
            if rule in given and rule not in self.objections:
                raise ValueError(f"--override {rule}: that rule does not hold this run up")
        mine = [override for override in overrides if override[0] in self.objections]
        return mine, [override for override in overrides if override not in mine]


def followed(root: Path, config: Config, kind: str) -> Followed | None:
    """Return the phase 1 that `config` follows, on devices of that kind; None: it follows none.

    A verdict that is no Go is an objection only. Raises ValueError where that run is not there or
    cannot be followed.
    """
    follows, variant, objective = config.search.follows, config.search.variant, config.tuned
    if follows is None:
        return None
    assert variant is not None, "a phase 2 has a variant"
    directory = find_run(follows, root, "phase1")
    run_id, state = directory.resolve().name, load_state(directory)
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    _require_same_objective(run_id, state.plan, objective, variant)
    point, added = carried(run_id, state, objective.space)
    if variant == "expanded":
        _require_more_knobs(run_id, state.plan.space, objective.space)
    known = known_knobs(root, objective, kind) if added else Known((), (), ())
    source = Source(
        run_id=run_id,
        head=state.head,
        variant=variant,
        grade="" if state.decided is None else state.decided.grade,
        point=point,
        added=added,
        unproven=tuple(name for name in added if name not in known.alive),
    )
    remedies = {
        "go": _how_it_ended(state),
        "unproven_knobs": _check_of(root, objective, kind, source.unproven, known),
    }
    objections = {
        one.rule: f"{objection(source, one.rule)}{remedies[one.rule]}, or begin all the same with "
        f'--override {one.rule} --reason "..."'
        for one in follows_a_go(source)
        if one.fires
    }
    return Followed(state, source, objections)


def foreseen(root: Path, config: Config, kind: str) -> Succession | None:
    """Return what a phase 2 would take over, without replaying phase 1: no shape."""
    start = followed(root, config, kind)
    return None if start is None else start.succession(config)


def carried(run_id: str, state: RunState, space: SearchSpace) -> tuple[Point, tuple[str, ...]]:
    """Return the point that the run stands for in another space, and the knobs that are new there.

    A new knob is at its baseline. Raises ValueError where the run stands for nothing, or shares no
    knob.
    """
    stands, earlier = best_point(state), [knob.name for knob in state.plan.space.knobs]
    if stands is None:
        raise ValueError(f"{run_id} has told no generation yet: there is nothing to start from")
    known = dict(zip(earlier, stands, strict=True))
    new = tuple(knob.name for knob in space.knobs if knob.name not in known)
    if len(new) == space.dimension:
        raise ValueError(
            f"{run_id} searched other knobs, {', '.join(earlier)}: none of {', '.join(new)}"
        )
    point = (known.get(knob.name, knob.encode(knob.baseline)) for knob in space.knobs)
    return tuple(point), new


def _require_same_objective(
    run_id: str, plan: Plan, objective: Objective, variant: VariantName
) -> None:
    """Raise ValueError unless the same is tuned on the same data; `expanded` adds knobs."""
    earlier = objective_of(plan)
    theirs, ours = (
        {"objective": one.spec.name, **one.spec.settings} for one in (earlier, objective)
    )
    theirs["provenance"], ours["provenance"] = map(
        deciding, (plan.provenance, objective.provenance)
    )
    if variant == "expanded":
        for setting in ("space", "knobs"):  # knobs are compared one by one
            theirs.pop(setting, None)
            ours.pop(setting, None)
    changed = list(differing("", theirs, ours))
    if not changed and earlier.fingerprint != plan.objective_fingerprint:
        changed = [f"its code or its space has changed since {run_id} was planned"]
    if changed:
        raise ValueError(
            f"--variant {variant} tunes what {run_id} tuned, and this is another objective "
            f"(there -> here): {in_short(changed)}. Repeat its file, or its --objective and --set "
            "options, with its sources as they were"
        )


def _require_more_knobs(run_id: str, earlier: SearchSpace, space: SearchSpace) -> None:
    lost = [knob.name for knob in earlier.knobs if knob not in space.knobs]
    if lost or space.dimension == earlier.dimension:
        which = f"missing or changed: {', '.join(lost)}" if lost else "these are the same knobs"
        raise ValueError(
            f"--variant expanded adds knobs to those of {run_id} and changes none, but {which}. "
            "Join groups with --set space=A+B, or say --variant robust"
        )


def _how_it_ended(state: RunState) -> str:
    if state.decided is not None:
        which = f" ({state.decided.no_go})" if state.decided.no_go else ""
        return f"{which}. Follow a run that says Go"
    if state.concluded is not None:
        return ". Follow a run that says Go"
    return ". Let it come to its end with its own command first"


def _check_of(
    root: Path, objective: Objective, kind: str, unproven: Sequence[str], known: Known
) -> str:
    """The command that checks these knobs; one that was found dead is not checked again."""
    dead = [name for name in unproven if name in known.dead]
    unchecked = [name for name in unproven if name not in known.dead]
    said = f". Checked, and found not to move it: {', '.join(dead)}" if dead else ""
    if not unchecked:
        return f"{said}. Leave that out of --set space"
    settings = registry.unusual(objective.spec).items()
    words = ["check", "knobs", "--objective", objective.spec.name]
    words += [word for key, value in settings for word in ("--set", f"{key}={format_value(value)}")]
    words += ["--knobs", ",".join(unchecked), "--device", kind, "--runs-dir", str(root)]
    return f"{said}. Check with `{command(*words)}`"


def _distribution(
    seen: "Landscape", earlier: Plan, config: Config, added: Sequence[str]
) -> "tuple[float, Matrix]":
    """Scale and shape of the first distribution.

    A learned knob keeps its standard deviation, within limits, and its correlations; an added one
    gets the method's first step and none. A step that was asked for is the scale of them all.
    """
    import numpy as np

    from orchestrator.search.landscape import rows

    searched = [knob.name for knob in earlier.space.knobs]
    names = [knob.name for knob in config.tuned.space.knobs]
    here = [place for place, name in enumerate(names) if name not in added]
    there = [searched.index(names[place]) for place in here]
    covariance = SIGMA0[method_of(config)] ** 2 * np.eye(len(names))
    learned_shape = np.array(seen.shape)[np.ix_(there, there)]
    covariance[np.ix_(here, here)] = _bounded(seen.scale) ** 2 * learned_shape
    variance = float(np.mean(np.diag(covariance)))
    sigma0 = config.search.sigma0 or min(sqrt(variance), LARGEST_SIGMA0)
    return sigma0, rows(covariance / variance)


def _bounded(step: float) -> float:
    return min(max(step, LEAST_STEP), MOST_STEP)


def recorded_again(config: Config, recorded: Plan) -> Succession | None:
    """Return what a recorded phase 2 took over, under the names asked for now; None: it is none.

    Phase 1 may be gone since, or have gone on: only the plan is read.
    """
    search, source = recorded.search, recorded.source
    if search is None or source is None:
        return None
    terms = {
        "method": method_of(config),
        "seed": config.search.seed,
        "sigma0": config.search.sigma0 or search.sigma0,
    }
    if config.search.follows is not None:
        run_id = Path(config.search.follows).resolve().name
        source = source.model_copy(update={"run_id": run_id, "variant": config.search.variant})
    return Succession(source, search.model_copy(update=terms))


def landscapes(state: RunState) -> "list[Landscape]":
    """Return the search's distribution as it began, and after each generation that was told.

    Raises ReplayError where the replay diverges.
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
