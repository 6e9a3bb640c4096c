"""The configuration that a search recommends: its forms, and how far it is confirmed."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, NamedTuple

from budgets.formatting import command, shell_word
from budgets.plan import Plan
from budgets.state import RunState
from objectives import registry
from objectives.api import SetupError
from objectives.space import Knob
from orchestrator.config import Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.document import best_document, plain_values
from orchestrator.look.run import Run
from orchestrator.look.text import cautions
from orchestrator.plan.resolve import found_as
from orchestrator.records.objective import Point, best_point


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

    def as_dict(self) -> dict[str, Any]:
        knobs = [knob._asdict() for knob in self.knobs]
        return {"knobs": knobs, "arguments": self.arguments, "training": self.training}

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


def configuration_of(plan: Plan, point: Point) -> Configuration:
    """Return the point in every form that its objective has, if it can still be loaded."""
    spec = plan.objective
    knobs = tuple(_value(*pair) for pair in zip(plan.space.knobs, point, strict=True))
    values = {knob.name: knob.value for knob in knobs}
    try:
        objective = registry.load(spec)
        arguments = objective.arguments(values)
        moved = objective.with_baseline(values) if any(k.moved for k in knobs) else spec
    except (ValueError, SetupError) as error:
        return Configuration(spec.name, knobs, why=f"It cannot be loaded now: {error}.")
    training = None if moved is None else registry.unusual(moved)
    return Configuration(spec.name, knobs, arguments, training)


def _value(knob: Knob, unit: float) -> KnobValue:
    """Return the knob's value at `unit`; the baseline exactly, without a round trip's error."""
    start, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    value = baseline if unit == start else knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - start
    return KnobValue(knob.name, value, baseline, moved)


@dataclass(frozen=True)
class Best:
    """The result of a search."""

    run: Run
    standing: Literal["confirmed", "unconfirmed", "no_go"]
    candidate: Configuration  # the best point, recommended or not
    recommended: Configuration  # after a No-Go the baseline

    @property
    def headline(self) -> str:
        """The verdict in a sentence."""
        verdict = answer(self.run)
        return f"{verdict.title}: {verdict.sentence}"


def best_of(state: RunState, directory: Path) -> Best:
    """Return the result of a search. Raises ValueError if the run has none, or none yet."""
    plan, decided = state.plan, state.decided
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if (point := best_point(state, compared=True)) is None:
        raise ValueError(f"{plan.run_id} recommends nothing yet: no generation is complete")
    candidate, run = configuration_of(plan, point), Run(state, datetime.now(UTC), directory)
    if decided is None:
        return Best(run, "unconfirmed", candidate, candidate)
    if decided.grade == "no_go":
        return Best(run, "no_go", candidate, configuration_of(plan, plan.space.baseline))
    return Best(run, "confirmed", candidate, candidate)


def as_dict(best: Best) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`."""
    run, recommended = best.run, best.recommended
    kind = "baseline" if best.standing == "no_go" else "candidate"
    return {
        "run_id": run.plan.run_id,
        "directory": str(run.directory),
        "objective": recommended.objective,
        "standing": best.standing,
        "answer": plain_values(answer(run)),
        "recommended": {"is": kind, **recommended.as_dict()},
        "candidate": best.candidate.as_dict(),
        "cautions": cautions(run),
        **best_document(run),
    }


def to_lines(best: Best) -> Iterator[str]:
    """Yield a page for the terminal, beginning with what is not confirmed."""
    run, plan, candidate = best.run, best.run.plan, best.candidate
    assert run.directory is not None, "it was read from there"
    yield best.headline
    parts = answer(run).parts
    yield from (f"{name}: {parts[name]}" for name in ("But", "Found", "How sure") if name in parts)
    title = {
        "confirmed": "Recommended:",
        "unconfirmed": "What the search stands for:",
        "no_go": "The best candidate of the search, which is not recommended:",
    }[best.standing]
    yield from ("", title, "")
    rows = [("knob", "value", "baseline", "moved")]
    for k in candidate.knobs:
        moved = f"{100 * k.moved:+.3g}% of its range" if k.moved else "not"
        rows.append((k.name, f"{k.value:.6g}", f"{k.baseline:.6g}", moved))
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for name, value, baseline, moved in rows:
        yield f"  {name:{widths[0]}}  {value:>{widths[1]}}  {baseline:>{widths[2]}}  {moved}"
    yield ""
    forms = ["--json"]
    if candidate.training is not None:
        forms += ["--as toml"]
    if candidate.arguments:
        forms += ["--as flags"]
        yield f"As arguments: {candidate.flags()}"
    elif candidate.why:
        yield candidate.why
    yield f"Other forms: {command('best', found_as(run.directory, plan))} {' | '.join(forms)}"
