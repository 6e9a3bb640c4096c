"""The run that a phase 2 follows: whether it may, and what the new search takes over from it."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from budgets.following import readings
from budgets.plain import command
from budgets.state import RunState
from budgets.terms import Plan, Source, VariantName
from objectives import registry
from objectives.api import Objective
from objectives.space import SearchSpace
from orchestrator.config import format_value
from orchestrator.planning.differences import deciding, differing, in_short
from orchestrator.planning.known_knobs import Known, known_knobs
from orchestrator.planning.request import Follows, Request
from orchestrator.records.planned import objective_of, space_of
from orchestrator.records.recommended import Point, best_point
from orchestrator.records.recorded import find_run, load_state
from orchestrator.warm.predecessor import Predecessor

DECLARING = ("space", "knobs")
"""Settings that say which knobs are searched: `_added` compares those one by one."""


def follow(root: Path, request: Request, follows: Follows, kind: str) -> Predecessor:
    """The run that the phase 2 of `request` follows, for a search on that kind of device.

    Raises ValueError where it cannot be followed at all: it is no phase 1, has found nothing, or
    searched something else.
    """
    directory = find_run(follows.run, root, "phase1")
    state = load_state(directory)
    run_id = directory.resolve().name
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    _require_same(run_id, state.plan, request.objective, follows.variant)
    added = _added(run_id, state.plan, request.objective, follows.variant)
    known = known_knobs(root, request.objective, kind) if added else Known((), (), ())
    source = Source(
        run_id=run_id,
        head=state.head,
        variant=follows.variant,
        grade="" if state.decided is None else state.decided.grade,
        point=recommended(run_id, state, request.objective.space),
        added=added,
        unproven=tuple(name for name in added if name not in known.alive),
    )
    ways = {
        "go": _ways_to_a_go(state),
        "unproven_knobs": _ways_to_prove(root, request.objective, kind, source, known),
    }
    found = {
        one.rule: f"{one.evidence}{ways[one.rule]}, or begin all the same with "
        f'--override {one.rule} --reason "..."'
        for one in readings(source)
        if one.fires
    }
    return Predecessor(state, source.point, added, source, objections=found)


def _require_same(run_id: str, plan: Plan, objective: Objective, variant: VariantName) -> None:
    """Raises ValueError, naming what differs, unless the same is tuned on the same data."""
    earlier = objective_of(plan)
    theirs, ours = _identity(earlier, variant), _identity(objective, variant)
    theirs["provenance"] = deciding(plan.provenance)
    changed = list(differing("", theirs, ours))
    if not changed and earlier.fingerprint != plan.objective_fingerprint:
        changed = [f"its code or its space has changed since {run_id} was planned"]
    if changed:
        declared = "the table knobs" if "knobs" in objective.spec.settings else "--set space"
        may = "nothing" if variant == "robust" else f"nothing but {declared}"
        raise ValueError(
            f"--variant {variant} changes {may} of what {run_id} tuned (there -> asked): "
            f"{in_short(changed)}. {_way_back(changed)}"
        )


def _way_back(changed: Sequence[str]) -> str:
    if all(one.startswith(f"{registry.CODE}:") for one in changed):
        return "The sources have changed since: put them back as they were"
    return "Repeat its file, or its --objective and --set options"


def _identity(objective: Objective, variant: str) -> dict[str, object]:
    """What two objectives have in common if one may follow the other."""
    settings = dict(objective.spec.settings)
    if variant == "expanded":
        for name in DECLARING:
            settings.pop(name, None)
    return {
        "objective": objective.spec.name,
        **settings,
        "provenance": deciding(objective.provenance),
    }


def _added(run_id: str, plan: Plan, objective: Objective, variant: VariantName) -> tuple[str, ...]:
    """The knobs that the followed run did not search. Raises ValueError if it lost one of its own.

    A robust search has the same knobs as the run it follows.
    """
    if variant == "robust":
        return ()
    ours = {knob.name: knob for knob in objective.space.knobs}
    theirs = {knob.name: knob for knob in space_of(plan).knobs}
    for name, knob in theirs.items():
        if name not in ours:
            raise ValueError(
                f"--variant expanded keeps every knob of {run_id}, and {name} is missing: "
                "--set space=A+B joins groups"
            )
        if changed := list(differing(name, knob.model_dump(), ours[name].model_dump())):
            raise ValueError(
                f"--variant expanded keeps the knobs of {run_id} as they are, but (there -> "
                f"asked) {'; '.join(changed)}"
            )
    added = tuple(name for name in ours if name not in theirs)
    if not added:
        raise ValueError(
            f"--variant expanded adds knobs to those of {run_id}, and these are the same: join "
            "groups with --set space=A+B, or say --variant robust"
        )
    return added


def recommended(run_id: str, state: RunState, space: SearchSpace) -> Point:
    """What the run stands for in a space that has its knobs; others are at their baseline.

    That is its recommendation; where that is nothing, what its search stood for at last.
    """
    point = best_point(state)
    if point is None:
        raise ValueError(f"--from: {run_id} has told no generation yet: there is nothing to follow")
    names = (knob.name for knob in space_of(state.plan).knobs)
    known = dict(zip(names, point, strict=True))
    return tuple(
        known[knob.name] if knob.name in known else knob.encode(knob.baseline)
        for knob in space.knobs
    )


def _ways_to_a_go(state: RunState) -> str:
    if state.decided is not None:
        which = f" ({state.decided.no_go})" if state.decided.no_go is not None else ""
        return f"{which}: {state.decided.evidence}. Follow a run that says Go"
    if state.concluded is not None:
        return f": {state.concluded.reason}. Follow a run that says Go"
    return ". Let it come to its end with its own command first"


def _ways_to_prove(
    root: Path, objective: Objective, kind: str, source: Source, known: Known
) -> str:
    dead = [name for name in source.unproven if name in known.dead]
    untold = [name for name in source.unproven if name not in known.dead]
    said = f". Checked, and found not to move it: {', '.join(dead)}" if dead else ""
    if not untold:
        return f"{said}. Leave that out of --set space"
    check = command(*_check_words(root, objective, kind, untold))
    return f"{said}. Check with `{check}`"


def _check_words(
    root: Path, objective: Objective, kind: str, names: Sequence[str]
) -> Iterator[str]:
    yield from ("check", "knobs", "--objective", objective.spec.name)
    for key, value in registry.unusual(objective.spec).items():
        yield from ("--set", f"{key}={format_value(value)}")
    yield from ("--knobs", ",".join(names), "--device", kind, "--runs-dir", str(root))
