"""Begin a search where an earlier run ended: a phase 2, or a phase 1 with `search.warm_start`.

The new search takes over the point that the run stands for, its last step and its shape, but no
score. They are frozen in the plan: the earlier run may go on, or be deleted, afterwards.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from math import isclose, sqrt
from pathlib import Path
from typing import TYPE_CHECKING

from budgets.formatting import command
from budgets.plan import Inherited, Plan, SearchTerms, Source, VariantName
from budgets.rules import BEFORE_THE_RUN, follows_a_go
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective
from objectives.space import Knob, SearchSpace
from orchestrator.config import Config, format_value
from orchestrator.plan.differences import deciding, differing, in_short
from orchestrator.plan.history import Known, known_knobs
from orchestrator.plan.resolve import Overrides, Succession, first_step, method_of
from orchestrator.records.planned import objective_of, space_of, spec_of
from orchestrator.records.recommended import Point, best_point
from orchestrator.records.recorded import find_run, load_state

if TYPE_CHECKING:
    from orchestrator.search.landscape import Landscape, Matrix

LEAST_STEP, MOST_STEP = 0.05, 0.2
"""Bounds of the step that is taken over. Below, the noise of a generation hides what its candidates
differ in; above, what was learned is lost."""

LARGEST_SIGMA0 = 0.3  # that a plan may have


OPTION = "search.warm_start"


@dataclass(frozen=True)
class WarmStart:
    """An earlier run where a new search begins."""

    state: RunState
    point: Point  # where it stands, in the space of the new search
    unlearned: tuple[str, ...]  # knobs that it did not search, or on another range
    source: Source | None = None  # of a phase 2
    inherited: Inherited | None = None  # of a phase 1
    notes: tuple[str, ...] = ()  # what differs between then and now
    objections: Mapping[str, str] = field(default_factory=dict)  # by rule, with the remedies

    def succession(self, config: Config, seen: "Landscape | None" = None) -> Succession:
        """What the search of `config` takes over from this run, whose replay ended at `seen`.

        Without a replay the shape is missing.
        """
        if seen is not None:
            sigma0, shape = _distribution(seen, self.state.plan, config, self.unlearned)
        else:
            last = self.state.completed[-1].told if self.state.completed else None
            step = _bounded(MOST_STEP if last is None else last.sigma)
            sigma0, shape = step if config.search.sigma0 is None else config.search.sigma0, None
        search = SearchTerms(
            method=method_of(config),
            seed=config.search.seed,
            sigma0=sigma0,
            start=self.point,
            shape=shape,
            inherited=self.inherited,
        )
        return Succession(self.source, search)

    def permits(self, overrides: Overrides) -> tuple[Overrides, Overrides]:
        """The overrides that let the new run begin, and the others.

        Raises ValueError where one is missing, or where no rule calls for one.
        """
        if self.source is None:
            return (), overrides
        given = {rule for rule, _ in overrides}
        if missing := [why for rule, why in self.objections.items() if rule not in given]:
            raise ValueError(". ".join(missing))
        for rule in BEFORE_THE_RUN:
            if rule in given and rule not in self.objections:
                raise ValueError(f"--override {rule}: that rule does not hold this run up")
        mine = [override for override in overrides if override[0] in self.objections]
        return mine, [override for override in overrides if override not in mine]


def warm_start_of(root: Path, config: Config, kind: str) -> WarmStart | None:
    """The run where `config` begins, on devices of that kind; None: at the baseline.

    Raises ValueError where that run is not there or cannot be started from.
    """
    if config.search.follows is not None:
        return _phase1_followed(root, config, kind)
    return None if config.search.warm_start is None else _search_continued(root, config)


def foreseen(root: Path, config: Config, kind: str) -> Succession | None:
    """What the search would take over, without replaying the earlier one: no shape."""
    start = warm_start_of(root, config, kind)
    return None if start is None else start.succession(config)


def carried(run_id: str, state: RunState, space: SearchSpace) -> tuple[Inherited, Point]:
    """The point that the run stands for in another space, and which knobs differ there.

    A new knob is at its baseline, one with another range at the same value, within the range.
    Raises ValueError where the run stands for nothing, or shares no knob.
    """
    stands = best_point(state)
    if stands is None:
        raise ValueError(f"{run_id} has told no generation yet: there is nothing to start from")
    known = dict(zip((k.name for k in space_of(state.plan).knobs), stands, strict=True))
    earlier = {knob.name: knob for knob in space_of(state.plan).knobs}
    new = tuple(knob.name for knob in space.knobs if knob.name not in earlier)
    if len(new) == space.dimension:
        raise ValueError(
            f"{run_id} searched other knobs, {', '.join(earlier)}: none of {', '.join(new)}"
        )
    moved, point = [], []
    for knob in space.knobs:
        there = earlier.get(knob.name)
        if there is None:
            point.append(knob.encode(knob.baseline))
        elif _scale(knob) == _scale(there):
            point.append(known[knob.name])
        else:
            moved.append(knob.name)
            value = min(max(there.decode(known[knob.name]), knob.decode(0.0)), knob.decode(1.0))
            point.append(min(max(knob.encode(value), 0.0), 1.0))
    return Inherited(run_id=run_id, head=state.head, new=new, moved=tuple(moved)), tuple(point)


def _scale(knob: Knob) -> tuple[object, ...]:
    return knob.kind, knob.low, knob.high, knob.step


def _search_continued(root: Path, config: Config) -> WarmStart:
    """An earlier search of the same objective, whatever its tier, settings and knobs."""
    assert config.search.warm_start is not None
    directory = find_run(config.search.warm_start, root)
    run_id, state = directory.resolve().name, load_state(directory)
    plan, objective = state.plan, config.tuned
    if plan.search is None:
        raise ValueError(f"{OPTION}: expected a run that searched, {run_id} is a {plan.phase} run")
    here, there = registry.kind(objective.spec), registry.kind(spec_of(plan))
    if here != there:
        raise ValueError(f"{OPTION}: expected a search of {here}, {run_id} searched {there}")
    inherited, point = carried(run_id, state, objective.space)
    notes = tuple(_notes(run_id, plan, config, inherited))
    return WarmStart(state, point, inherited.unlearned, inherited=inherited, notes=notes)


def _notes(run_id: str, plan: Plan, config: Config, inherited: Inherited) -> Iterator[str]:
    objective = config.tuned
    then = {"phase": plan.phase, "tier": plan.tier, **plan.objective["settings"]}
    now = {
        "phase": config.search.phase,
        "tier": config.search.tier or "target",
        **objective.spec.settings,
    }
    then["provenance"], now["provenance"] = (
        deciding(plan.provenance),
        deciding(objective.provenance),
    )
    if changed := list(differing("", then, now)):
        yield f"{run_id} was another search (there -> here): {'; '.join(changed)}"
    elif plan.objective_fingerprint != objective.fingerprint:
        yield f"the objective's code or knobs have changed since {run_id} was planned"
    if inherited.new:
        yield f"not searched by {run_id}: {', '.join(inherited.new)}; they begin at the baseline"
    if inherited.moved:
        names = ", ".join(inherited.moved)
        yield f"{names}: another range than in {run_id}; the value is kept as far as it fits"
    here = {knob.name for knob in objective.space.knobs}
    if left := [knob.name for knob in space_of(plan).knobs if knob.name not in here]:
        yield f"searched by {run_id} and not here: {', '.join(left)}"


def _phase1_followed(root: Path, config: Config, kind: str) -> WarmStart:
    """The phase 1 that a phase 2 follows; a verdict that is no Go is an objection only."""
    follows, variant, objective = config.search.follows, config.search.variant, config.tuned
    assert follows is not None
    assert variant is not None
    directory = find_run(follows, root, "phase1")
    run_id, state = directory.resolve().name, load_state(directory)
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    _require_same_objective(run_id, state.plan, objective, variant)
    carry, point = carried(run_id, state, objective.space)
    if variant == "expanded":
        _require_more_knobs(run_id, space_of(state.plan), objective.space)
    known = known_knobs(root, objective, kind) if carry.new else Known((), (), ())
    source = Source(
        run_id=run_id,
        head=state.head,
        variant=variant,
        grade="" if state.decided is None else state.decided.grade,
        point=point,
        added=carry.new,
        unproven=tuple(name for name in carry.new if name not in known.alive),
    )
    remedies = {
        "go": _how_it_ended(state),
        "unproven_knobs": _check_of(root, objective, kind, source.unproven, known),
    }
    objections = {
        one.rule: f"{one.evidence}{remedies[one.rule]}, or begin all the same with "
        f'--override {one.rule} --reason "..."'
        for one in follows_a_go(source)
        if one.fires
    }
    return WarmStart(state, point, carry.new, source, objections=objections)


def _require_same_objective(
    run_id: str, plan: Plan, objective: Objective, variant: VariantName
) -> None:
    """Raises ValueError unless the same is tuned on the same data; `expanded` adds knobs."""
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
        return f"{which}: {state.decided.evidence}. Follow a run that says Go"
    if state.concluded is not None:
        return f": {state.concluded.reason}. Follow a run that says Go"
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
    seen: "Landscape", earlier: Plan, config: Config, unlearned: Sequence[str]
) -> "tuple[float, Matrix | None]":
    """Scale and shape of the first distribution; no shape is that of a ball.

    A learned knob keeps its standard deviation, within limits, and its correlations; an unlearned
    one gets the first step and none. A step that was asked for is that of the unlearned knobs, or
    of all where there are none.
    """
    import numpy as np

    from orchestrator.search.landscape import rows

    searched = [knob.name for knob in space_of(earlier).knobs]
    names = [knob.name for knob in config.tuned.space.knobs]
    here = [place for place, name in enumerate(names) if name not in unlearned]
    there = [searched.index(names[place]) for place in here]
    if not here:
        return first_step(config), None
    covariance = first_step(config) ** 2 * np.eye(len(names))
    learned_shape = np.array(seen.shape)[np.ix_(there, there)]
    covariance[np.ix_(here, here)] = _bounded(seen.scale) ** 2 * learned_shape
    variance = float(np.mean(np.diag(covariance)))
    sigma0 = min(sqrt(variance), LARGEST_SIGMA0)
    if config.search.sigma0 is not None and not unlearned:
        sigma0 = config.search.sigma0
    return sigma0, rows(covariance / variance)


def _bounded(step: float) -> float:
    return min(max(step, LEAST_STEP), MOST_STEP)


def recorded_again(config: Config, recorded: Plan) -> Succession | None:
    """What the recorded run took over, under the names asked for now; None: nothing.

    The earlier run may be gone since, or have gone on: only the plan is read.
    """
    search, source = recorded.search, recorded.source
    if search is None or (source, search.inherited, config.search.warm_start) == (None, None, None):
        return None
    inherited = search.inherited or Inherited(run_id="", head="")
    unlearned = inherited.unlearned if source is None else source.added
    if source is not None and config.search.follows is not None:
        asked = {"run_id": _id_of(config.search.follows), "variant": config.search.variant}
        source = source.model_copy(update=asked)
    terms = {
        "method": method_of(config),
        "seed": config.search.seed,
        "sigma0": _sigma0_again(config.search.sigma0, recorded, search, unlearned),
        "inherited": None
        if config.search.warm_start is None
        else inherited.model_copy(update={"run_id": _id_of(config.search.warm_start)}),
    }
    return Succession(source, search.model_copy(update=terms))


def _id_of(run: str) -> str:
    """The id of a run that is named by that or by its directory."""
    return Path(run).resolve().name


def _sigma0_again(
    asked: float | None, recorded: Plan, search: SearchTerms, unlearned: Sequence[str]
) -> float:
    """The recorded scale, where the step asked for now is the one that it was made with."""
    if asked is None:
        return search.sigma0
    names = [knob.name for knob in space_of(recorded).knobs]
    if search.shape is not None and unlearned:
        new = [row[i] for i, row in enumerate(search.shape) if names[i] in unlearned]
        if all(isclose(search.sigma0 * sqrt(variance), asked) for variance in new):
            return search.sigma0
    return asked


def learned(state: RunState, *, accept_drift: bool) -> "Landscape":
    """What a recorded search has come to, replayed. Raises ReplayError where that diverges."""
    return landscapes(state, accept_drift=accept_drift)[-1]


def landscapes(state: RunState, *, accept_drift: bool = False) -> "list[Landscape]":
    """The search's distribution as it began, and after each generation that was told.

    Raises ReplayError where the replay diverges.
    """
    from orchestrator.search import Search  # imports cma

    plan = state.plan
    assert plan.search is not None, "only a search is replayed"
    search = Search(plan.search, plan.resolved.population)
    seen = [search.landscape()]
    for generation in state.generations:
        search.replay([generation], accept_drift=accept_drift)
        if generation.told is not None:
            seen.append(search.landscape())
    return seen
