"""Begin a phase 2 where the phase 1 that it follows ended.

The new search takes over phase 1's recommendation, but no score. It is frozen in the plan: phase 1
may go on, or be deleted, afterwards.
"""

from pathlib import Path

from budgets.formatting import PROGRAM
from budgets.plan import Plan, Source
from budgets.rules import follows_a_go
from budgets.state import RunState
from budgets.verdict import Point, best_point
from objectives import registry
from objectives.space import SearchSpace
from orchestrator.config import Config
from orchestrator.plan.forecast import known_knobs
from orchestrator.plan.resolve import Overrides, differing, in_short
from orchestrator.records.runs import find_run, load_state

MORE = ("", " and more knobs, such as --set space=A+B")

VERDICTS = {"": "has no verdict", "go_persists": "said Go that persists", "go": "said Go"}


def followed(root: Path, config: Config, kind: str) -> Source | None:
    """Return what a search takes over from the phase 1 that it follows; None for a phase 1.

    `kind` is that of its devices. Raises ValueError if that run is missing or cannot be followed.
    """
    follows, space = config.search.follows, config.tuned.space
    if follows is None:
        return None
    directory = find_run(follows, root, "phase1")
    run_id, state = directory.resolve().name, load_state(directory)
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    _require_same_objective(run_id, state.plan, config)
    point, added = carried(run_id, state, space)
    shown = known_knobs(root, config.tuned, kind)
    return Source(
        run_id=run_id,
        grade="" if state.decided is None else state.decided.grade,
        point=point,
        added=added,
        unproven=tuple(name for name in added if shown[name] != "alive"),
    )


def carried(run_id: str, state: RunState, space: SearchSpace) -> tuple[Point, tuple[str, ...]]:
    """Return the run's best point in another space, and the knobs that are new there.

    New knobs are at their baseline. Raises ValueError without a point.
    """
    best, earlier = best_point(state), [knob.name for knob in state.plan.space.knobs]
    if best is None:
        raise ValueError(f"{run_id} has told no generation yet: there is nothing to start from")
    known = dict(zip(earlier, best, strict=True))
    new = tuple(knob.name for knob in space.knobs if knob.name not in known)
    point = (known.get(knob.name, knob.encode(knob.baseline)) for knob in space.knobs)
    return tuple(point), new


def _require_same_objective(run_id: str, earlier: Plan, config: Config) -> None:
    """Raise ValueError unless both tune the same on the same data; `expanded` adds knobs."""
    objective, variant = config.tuned, config.search.variant
    there, here = (
        {"objective": spec.name, **spec.settings, "direction": direction, **provenance}
        for spec, direction, provenance in (
            (earlier.objective, earlier.direction, earlier.provenance),
            (objective.spec, config.direction, objective.provenance),
        )
    )
    if variant == "expanded":
        here |= {name: there.get(name) for name in ("space", "knobs")}  # compared one by one
    changed, before, space = list(differing("", there, here)), earlier.space.knobs, objective.space
    if (
        not changed
        and registry.load(earlier.objective).fingerprint != earlier.objective_fingerprint
    ):
        changed += ["its code or its space has changed since"]
    if variant == "expanded" and not changed:
        changed = [f"knob {knob.name}" for knob in before if knob not in space.knobs]
        changed += ["no more knobs than there"] if len(space.knobs) == len(before) else []
    if changed:
        raise ValueError(
            f"--variant {variant} tunes what {run_id} tuned{MORE[variant == 'expanded']}, and this "
            f"is another objective (there -> here): {in_short(changed)}. Repeat its file, or its "
            "--objective and --set"
        )


def recorded_again(config: Config, recorded: Plan) -> Source | None:
    """Return what a recorded phase 2 took over, as this configuration asks for it.

    Phase 1 is not read: it may have gone on, or be deleted.
    """
    source, follows = recorded.source, config.search.follows
    if source is None or follows is None:
        return source
    return source.model_copy(update={"run_id": Path(follows).resolve().name})


# In words


def beginning(plan: Plan) -> str:
    """Return the run that a search follows; empty without."""
    if (source := plan.source) is None:
        return ""
    new = f"with {', '.join(source.added)}" if source.added else "the same knobs on more seeds"
    return f"It follows {source.run_id}, which {_verdict(source)}, {new}."


def objection(source: Source, rule: str) -> str:
    """Return what the rule `go` or `unproven_knobs` objects to in following that run."""
    if rule == "go":
        return f"phase 2 follows a Go, and {source.run_id} {_verdict(source)}"
    check = f"`{PROGRAM} check knobs --knobs {','.join(source.unproven)}`"
    return f"no check of these knobs has shown that they move the score: {check}"


def _verdict(source: Source) -> str:
    return VERDICTS.get(source.grade, "said No-Go")


def objections(source: Source) -> dict[str, str]:
    """Return what speaks against following that run, by rule."""
    return {
        one.rule: f"{objection(source, one.rule)}. To begin all the same: --override {one.rule} "
        '--reason "..."'
        for one in follows_a_go(source)
    }


def permits(source: Source, overrides: Overrides) -> tuple[Overrides, Overrides]:
    """Return the overrides that let the new run begin, and the others.

    Raises ValueError if one is missing.
    """
    against, given = objections(source), dict(overrides)
    if missing := [why for rule, why in against.items() if rule not in given]:
        raise ValueError(". ".join(missing))
    mine = [override for override in overrides if override[0] in against]
    return mine, [override for override in overrides if override not in mine]
