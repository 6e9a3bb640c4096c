"""Begin a phase 2 where the phase 1 that it follows ended.

The new search takes over phase 1's recommendation, but no score. It is frozen in the plan: phase 1
may go on, or be deleted, afterwards.
"""

from pathlib import Path

from budgets.formatting import PROGRAM
from budgets.plan import Plan, Source
from budgets.rules import follows_a_go
from budgets.verdict import recommendation, stood_for
from objectives import registry
from orchestrator.config import Config
from orchestrator.plan.forecast import known_knobs
from orchestrator.plan.resolve import differing, in_short
from orchestrator.records.runs import find_run, load_state

VERDICTS = {"": "has no verdict", "go_persists": "said Go that persists", "go": "said Go"}


def followed(root: Path, config: Config, kind: str) -> Source | None:
    """Return what a search takes over from the phase 1 that it follows; None for a phase 1.

    That is its best point, with new knobs at their baseline. `kind` is that of the search's
    devices. Raises ValueError if that run is missing or cannot be followed.
    """
    if (follows := config.search.follows) is None:
        return None
    directory = find_run(follows, root, "phase1")
    run_id, state = directory.resolve().name, load_state(directory)
    if state.plan.phase != "phase1":
        raise ValueError(f"--from: expected a phase 1 run, {run_id} is a {state.plan.phase} run")
    if changed := _another_objective(state.plan, config):
        more = " and more knobs, such as --set space=A+B" * (config.search.variant == "expanded")
        raise ValueError(
            f"--variant {config.search.variant} tunes what {run_id} tuned{more}, and this is "
            f"another objective (there -> here): {in_short(changed)}. Repeat its file, or its "
            "--objective and --set"
        )
    if (best := recommendation(state) or stood_for(state)) is None:
        raise ValueError(f"{run_id} has told no generation yet: there is nothing to start from")
    knobs, earlier = config.tuned.space.knobs, [knob.name for knob in state.plan.space.knobs]
    taken, shown = dict(zip(earlier, best, strict=True)), known_knobs(root, config.tuned, kind)
    added = tuple(knob.name for knob in knobs if knob.name not in taken)
    return Source(
        run_id=run_id,
        grade="" if state.decided is None else state.decided.grade,
        point=tuple(taken.get(knob.name, knob.encode(knob.baseline)) for knob in knobs),
        added=added,
        unproven=tuple(name for name in added if shown[name] != "alive"),
    )


def _another_objective(earlier: Plan, config: Config) -> list[str]:
    """Return where the two do not tune the same on the same data; `expanded` adds knobs."""
    own, is_expanded = config.tuned, config.search.variant == "expanded"
    there, here = (
        {"objective": spec.name, **spec.settings, "direction": direction, **provenance}
        for spec, direction, provenance in (
            (earlier.objective, earlier.direction, earlier.provenance),
            (own.spec, config.direction, own.provenance),
        )
    )
    if is_expanded:
        here |= {name: there.get(name) for name in ("space", "knobs")}  # compared one by one
    if changed := list(differing("", there, here)):
        return changed
    if registry.load(earlier.objective).fingerprint != earlier.objective_fingerprint:
        changed.append("its code or its space has changed since")
    if is_expanded:
        before, after = earlier.space.knobs, own.space.knobs
        changed += [f"knob {knob.name}" for knob in before if knob not in after]
        changed += ["no more knobs than there"] if len(after) == len(before) else []
    return changed


# In words


def beginning(plan: Plan) -> str:
    """Return the run that a search follows; empty without."""
    if (source := plan.source) is None:
        return ""
    new = f"with {', '.join(source.added)}" if source.added else "with the same knobs on more seeds"
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
        one.rule: f"{objection(source, one.rule)}. To begin anyway: --override {one.rule} "
        '--reason "..."'
        for one in follows_a_go(source)
    }
