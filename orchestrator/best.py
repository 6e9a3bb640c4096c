"""The configuration that a search recommends, in every form."""

from typing import Any

from budgets.formatting import shell_word
from budgets.verdict import recommendation
from objectives import registry
from objectives.api import Knobs
from orchestrator.config import Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.json_documents import best_document, plain_values
from orchestrator.look.run import Run
from orchestrator.look.text import cautions


def recommended(run: Run) -> tuple[Knobs, bool]:
    """Return the knobs that a search recommends, and whether they are the baseline's.

    Raises ValueError if the run recommends nothing, or nothing yet.
    """
    plan = run.plan
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if not run.state.completed:
        raise ValueError(f"{plan.run_id} recommends nothing yet: no generation is complete")
    if (point := recommendation(run.state)) is None:  # after a No-Go
        return {knob.name: knob.typed(knob.baseline) for knob in plan.space.knobs}, True
    return plan.space.decode(point), False


def as_dict(run: Run) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`."""
    return {
        "run_id": run.plan.run_id,
        "directory": str(run.directory),
        "knobs": plain_values(run.knobs),
        "cautions": cautions(run),
        **best_document(run),
    }


def as_flags(run: Run) -> str:
    """Return what is recommended as arguments, quoted for a shell.

    Raises ValueError where there are none, and SetupError if the objective cannot be loaded.
    """
    values, _ = recommended(run)
    if not (arguments := registry.load(run.plan.objective).arguments(values)):
        raise ValueError(f"--as flags: {run.plan.objective.name} takes no arguments")
    return " ".join(map(shell_word, arguments))


def as_toml(run: Run) -> str:
    """Return a configuration file with the recommended baseline. Raises as `as_flags`."""
    spec = run.plan.objective
    values, is_baseline = recommended(run)
    moved = spec if is_baseline else registry.load(spec).with_baseline(values)
    if moved is None:
        raise ValueError(f"--as toml: {spec.name} has no settings for another baseline. See --json")
    settings = {f"training.{name}": value for name, value in registry.unusual(moved).items()}
    if spec.name != Config().objective:  # `train` reads the file too
        settings = {"objective": spec.name, **settings}
    return to_toml(settings, source(run))


def source(run: Run) -> str:
    """Return which configuration of a run is recommended, and its verdict."""
    which = "the baseline" if recommended(run)[1] else "the best candidate"
    return f"{run.plan.run_id}: {which}. {answer(run).headline}"
