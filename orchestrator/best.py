"""The configuration that a search recommends: its forms, and how far it is confirmed."""

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

from budgets.formatting import plain, shell_word
from budgets.verdict import Point, best_point
from objectives import registry
from objectives.space import Knob
from orchestrator.config import Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.json_documents import best_document, plain_values
from orchestrator.look.page import Section, markdown, table
from orchestrator.look.run import Run
from orchestrator.look.text import cautions

TITLES = {
    "confirmed": "Recommended",
    "unconfirmed": "What the search stands for",
    "no_go": "The best candidate of the search, which is not recommended",
}
"""Of the best point, by how far it is confirmed."""


class KnobValue(NamedTuple):
    """A knob's value, beside the baseline's."""

    name: str
    value: float
    baseline: float
    moved: float  # as a share of its range


def _value(knob: Knob, unit: float) -> KnobValue:
    """Return the knob's value at `unit`; the baseline exactly, without a round trip's error."""
    start, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    value = baseline if unit == start else knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - start
    return KnobValue(knob.name, value, baseline, moved)


def standing(run: Run) -> Literal["confirmed", "unconfirmed", "no_go"]:
    """Return how far the best point of a search is confirmed."""
    if (decided := run.state.decided) is None:
        return "unconfirmed"
    return "no_go" if decided.grade == "no_go" else "confirmed"


def _best(run: Run) -> Point:
    """Return the best point. Raises ValueError if there is none, or none yet."""
    plan = run.plan
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if (point := best_point(run.state, compared=True)) is None:
        raise ValueError(f"{plan.run_id} recommends nothing yet: no generation is complete")
    return point


def recommended(run: Run) -> Sequence[KnobValue]:
    """Return the knobs that a search recommends: after a No-Go the baseline.

    Raises ValueError if the run recommends nothing, or nothing yet.
    """
    best, space = _best(run), run.plan.space
    point = space.baseline if standing(run) == "no_go" else best
    return [*map(_value, space.knobs, point)]


def as_dict(run: Run) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`. Raises as `recommended`."""
    what = "baseline" if standing(run) == "no_go" else "candidate"
    return {
        "run_id": run.plan.run_id,
        "directory": str(run.directory),
        "standing": standing(run),
        "answer": plain_values(answer(run)),
        "recommended": {"is": what, "knobs": [knob._asdict() for knob in recommended(run)]},
        "cautions": cautions(run),
        **best_document(run),
    }


def page(run: Run) -> str:
    """Return the best point in Markdown. Raises as `recommended`."""
    rows = (
        {
            "knob": plain(knob.name),
            ">value": f"{knob.value:.6g}",
            ">baseline": f"{knob.baseline:.6g}",
            "moved": f"{100 * knob.moved:+.3g}% of its range" if knob.moved else "not",
        }
        for knob in map(_value, run.plan.space.knobs, _best(run))
    )
    return markdown([Section(TITLES[standing(run)], [*table("", rows)])])


def as_flags(run: Run) -> str:
    """Return what is recommended as arguments, quoted for a shell.

    Raises ValueError where there are none, and SetupError if the objective cannot be loaded.
    """
    values = {knob.name: knob.value for knob in recommended(run)}
    if not (arguments := registry.load(run.plan.objective).arguments(values)):
        raise ValueError(f"--as flags: {run.plan.objective.name} takes no arguments")
    return " ".join(map(shell_word, arguments))


def as_toml(run: Run) -> str:
    """Return a configuration file with the recommended baseline. Raises as `as_flags`."""
    spec, knobs = run.plan.objective, recommended(run)
    values = {knob.name: knob.value for knob in knobs}
    has_moved = any(knob.moved for knob in knobs)
    moved = registry.load(spec).with_baseline(values) if has_moved else spec
    if moved is None:
        raise ValueError(f"--as toml: {spec.name} has no settings for another baseline. See --json")
    settings = {f"training.{name}": value for name, value in registry.unusual(moved).items()}
    if spec.name != Config().objective:  # `train` reads the file too
        settings = {"objective": spec.name, **settings}
    lines = [f"{one.name} = {one.value:.6g} (baseline {one.baseline:.6g})" for one in knobs]
    return to_toml(settings, *source(run), *lines)


def source(run: Run) -> tuple[str, str]:
    """Return which configuration of a run is recommended, and its verdict."""
    which = "baseline" if standing(run) == "no_go" else "best candidate"
    return f"{run.plan.run_id}: the {which}.", answer(run).headline
