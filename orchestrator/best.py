"""The configuration that a search recommends: its forms, and how far it is confirmed."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, NamedTuple

from budgets.formatting import command, plain, shell_word
from budgets.verdict import best_point
from objectives import registry
from objectives.api import SetupError
from objectives.space import Knob
from orchestrator.config import Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.json_documents import best_document, plain_values
from orchestrator.look.page import Section, markdown, table
from orchestrator.look.run import Run
from orchestrator.look.text import cautions
from orchestrator.plan.resolve import found_as

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


@dataclass(frozen=True)
class Configuration:
    """A point in every form. A form that does not exist is None, and `why` gives the reason."""

    objective: str
    knobs: tuple[KnobValue, ...]
    arguments: Sequence[str] | None = None
    training: dict[str, Any] | None = None  # settings that make this point the baseline
    why: str = ""

    def flags(self) -> str:
        """Return the arguments quoted for a shell. Raises ValueError where there are none."""
        if not self.arguments:
            raise ValueError(f"--as flags: {self.why or f'{self.objective} takes no arguments.'}")
        return " ".join(map(shell_word, self.arguments))

    def toml(self, *comments: str) -> str:
        """Return a configuration file with this baseline. Raises ValueError if there is none."""
        if self.training is None:
            why = self.why or f"{self.objective} has no settings for another baseline."
            raise ValueError(f"--as toml: {why} See --json")
        values = {f"training.{name}": value for name, value in self.training.items()}
        if self.objective != Config().objective:  # `train` reads the file too
            values = {"objective": self.objective, **values}
        lines = [f"{k.name} = {k.value:.6g} (baseline {k.baseline:.6g})" for k in self.knobs]
        text = to_toml(values, *comments, *lines)
        # basic strings of TOML may contain escapes for what is not printable
        return "".join(c if c.isprintable() or c == "\n" else f"\\U{ord(c):08x}" for c in text)


def _value(knob: Knob, unit: float) -> KnobValue:
    """Return the knob's value at `unit`; the baseline exactly, without a round trip's error."""
    start, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    value = baseline if unit == start else knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - start
    return KnobValue(knob.name, value, baseline, moved)


def best_of(run: Run) -> Configuration:
    """Return what a search recommends, in every form: after a No-Go the baseline.

    Raises ValueError if the run recommends nothing, or nothing yet.
    """
    plan = run.plan
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if (point := best_point(run.state, compared=True)) is None:
        raise ValueError(f"{plan.run_id} recommends nothing yet: no generation is complete")
    point = plan.space.baseline if standing(run) == "no_go" else point
    spec, knobs = plan.objective, tuple(map(_value, plan.space.knobs, point))
    values = {knob.name: knob.value for knob in knobs}
    try:
        objective = registry.load(spec)
        arguments = objective.arguments(values)
        moved = objective.with_baseline(values) if any(k.moved for k in knobs) else spec
    except (ValueError, SetupError) as error:
        return Configuration(spec.name, knobs, why=f"It cannot be loaded now: {error}.")
    training = None if moved is None else registry.unusual(moved)
    return Configuration(spec.name, knobs, arguments, training)


def standing(run: Run) -> Literal["confirmed", "unconfirmed", "no_go"]:
    """Return how far the best point of a search is confirmed."""
    if (decided := run.state.decided) is None:
        return "unconfirmed"
    return "no_go" if decided.grade == "no_go" else "confirmed"


def as_dict(run: Run, own: Configuration) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`."""
    what = "baseline" if standing(run) == "no_go" else "candidate"
    knobs = [knob._asdict() for knob in own.knobs]
    return {
        "run_id": run.plan.run_id,
        "directory": str(run.directory),
        "standing": standing(run),
        "answer": plain_values(answer(run)),
        "recommended": {"is": what, **asdict(own), "knobs": knobs},
        "cautions": cautions(run),
        **best_document(run),
    }


def page(run: Run, own: Configuration) -> str:
    """Return the best point in Markdown, and why a form of it is missing."""
    point = best_point(run.state, compared=True)
    assert point is not None, "there is a recommendation"
    rows = (
        {
            "knob": plain(knob.name),
            ">value": f"{knob.value:.6g}",
            ">baseline": f"{knob.baseline:.6g}",
            "moved": f"{100 * knob.moved:+.3g}% of its range" if knob.moved else "not",
        }
        for knob in map(_value, run.plan.space.knobs, point)
    )
    return markdown([Section(TITLES[standing(run)], [*table("", rows), plain(own.why)])])


def ways(run: Run, own: Configuration) -> str:
    """Return the command that shows the other forms there are."""
    assert run.directory is not None, "it was read from there"
    forms = {"json": True, "as toml": own.training is not None, "as flags": bool(own.arguments)}
    options = " | ".join(f"--{form}" for form, is_there in forms.items() if is_there)
    return f"Other forms: {command('best', found_as(run.directory, run.plan))} {options}"
