"""A phase 1 that begins where an earlier search stood. Of that one's scores nothing is taken over.

The earlier run may have had another tier, other settings and other knobs: what differs is said.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path

from budgets.state import RunState
from budgets.terms import Inherited, Plan
from objectives.registry import kind
from objectives.space import Knob, SearchSpace
from orchestrator.planning.differences import deciding, differing
from orchestrator.planning.request import Request
from orchestrator.records.planned import space_of, spec_of
from orchestrator.records.recommended import Point, best_point
from orchestrator.records.recorded import find_run, load_state
from orchestrator.warm.predecessor import Predecessor

OPTION = "search.warm_start"


def find_start(root: Path, request: Request, run: str) -> Predecessor:
    """Where that run stood, as the start of a phase 1. Raises ValueError where it gives nothing."""
    directory = find_run(run, root)
    run_id, state = directory.resolve().name, load_state(directory)
    plan, objective = state.plan, request.objective
    if plan.search is None:
        raise ValueError(f"{OPTION}: expected a run that searched, {run_id} is a {plan.phase} run")
    here, there = kind(objective.spec), kind(spec_of(plan))
    if here != there:
        raise ValueError(f"{OPTION}: expected a search of {here}, {run_id} searched {there}")
    earlier = space_of(plan)
    inherited, point = carried(run_id, state, objective.space)
    notes = tuple(_notes(run_id, plan, request, inherited, earlier))
    return Predecessor(state, point, inherited.unlearned, inherited=inherited, notes=notes)


def carried(run_id: str, state: RunState, space: SearchSpace) -> tuple[Inherited, Point]:
    """What the run stands for in another space, by the names of knobs, and which it does not have.

    Raises ValueError where it stands for nothing, or shares no knob.
    """
    stands = best_point(state)
    if stands is None:
        raise ValueError(f"{OPTION}: {run_id} has told no generation yet: it stands nowhere")
    earlier = space_of(state.plan)
    known = {knob.name: (knob, u) for knob, u in zip(earlier.knobs, stands, strict=True)}
    inherited = Inherited(
        run_id=run_id,
        head=state.head,
        new=tuple(k.name for k in space.knobs if k.name not in known),
        moved=tuple(
            k.name for k in space.knobs if k.name in known and not _same_scale(k, known[k.name][0])
        ),
    )
    if len(inherited.new) == space.dimension:
        raise ValueError(
            f"{OPTION}: {run_id} searched other knobs, {', '.join(known)}: none of "
            f"{', '.join(inherited.new)}"
        )
    return inherited, tuple(_unit(knob, known) for knob in space.knobs)


def _unit(knob: Knob, known: Mapping[str, tuple[Knob, float]]) -> float:
    """Where the knob begins: where it stood, at that value, or at its baseline."""
    if knob.name not in known:
        return knob.encode(knob.baseline)
    earlier, unit = known[knob.name]
    if _same_scale(knob, earlier):
        return unit
    value = min(max(earlier.decode(unit), knob.decode(0.0)), knob.decode(1.0))
    return min(max(knob.encode(value), 0.0), 1.0)


def _same_scale(knob: Knob, other: Knob) -> bool:
    return (knob.kind, knob.low, knob.high, knob.step) == (
        other.kind,
        other.low,
        other.high,
        other.step,
    )


def _notes(
    run_id: str, plan: Plan, request: Request, inherited: Inherited, earlier: SearchSpace
) -> Iterator[str]:
    changed = list(differing("", _circumstances(plan), _circumstances(request)))
    if changed:
        yield f"{run_id} was another search (there -> here): {'; '.join(changed)}"
    elif plan.objective_fingerprint != request.objective.fingerprint:
        yield f"the objective's code or knobs have changed since {run_id} was planned"
    if inherited.new:
        names = ", ".join(inherited.new)
        yield f"{run_id} did not search {names}: at the baseline, with the usual first step"
    if inherited.moved:
        names = ", ".join(inherited.moved)
        yield (
            f"the range of {names} was another one in {run_id}: its value there, as far as it is "
            "in the range, with the usual first step"
        )
    names_here = {knob.name for knob in request.objective.space.knobs}
    if left := [knob.name for knob in earlier.knobs if knob.name not in names_here]:
        yield f"{', '.join(left)}, which {run_id} searched too, are not searched here"


def _circumstances(of: Plan | Request) -> dict[str, object]:
    """What a score depends on beside the knobs, and how much was or is to be spent."""
    if isinstance(of, Plan):
        settings, provenance = of.objective["settings"], of.provenance
    else:
        settings, provenance = of.objective.spec.settings, dict(of.objective.provenance)
    return {"phase": of.phase, "tier": of.tier, **settings, "provenance": deciding(provenance)}
