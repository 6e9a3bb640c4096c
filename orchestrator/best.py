"""The configuration that a search recommends: its forms, and how far it is confirmed."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

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


@dataclass(frozen=True)
class KnobValue:
    """A knob's value, beside the baseline's."""

    name: str
    value: float
    baseline: float
    moved: float  # as a share of its range

    @property
    def is_moved(self) -> bool:
        return self.value != self.baseline

    @property
    def distance(self) -> str:
        """`+4% of its range`."""
        return f"{100 * self.moved:+.3g}% of its range" if self.is_moved else "not"


@dataclass(frozen=True)
class Configuration:
    """A point in every form. A form that does not exist is None, and `why` gives the reason."""

    objective: str
    knobs: tuple[KnobValue, ...]
    arguments: tuple[str, ...] | None = None
    training: dict[str, Any] | None = None  # settings that make this point the baseline
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "knobs": [vars(knob) for knob in self.knobs],
            "arguments": None if self.arguments is None else list(self.arguments),
            "training": self.training,
        }

    def flags(self) -> str:
        """Return the arguments quoted for a shell. Raises ValueError where there are none."""
        if not self.arguments:
            why = self.why or "it is not started with arguments"
            raise ValueError(f"--flags: {self.objective} has none: {why}. See --json")
        return " ".join(map(shell_word, self.arguments))

    def toml(self, *comments: str) -> str:
        """Return a configuration file with this baseline. Raises ValueError if there is none."""
        if self.training is None:
            why = self.why or "none of its settings says where its knobs begin"
            raise ValueError(
                f"--toml: {self.objective} cannot have another baseline: {why}. A search takes "
                "what --json prints as a file for search.known"
            )
        values = {f"training.{name}": value for name, value in self.training.items()}
        if self.objective != Config().objective:  # `train` reads the file too
            values = {"objective": self.objective, **values}
        lines = [
            f"{k.name} = {k.value:.6g} (baseline {k.baseline:.6g}, moved {k.distance})"
            for k in self.knobs
        ]
        return _escaped(to_toml(values, *comments, *lines))


def _escaped(text: str) -> str:
    """Replace unprintable characters by their TOML escapes, which basic strings may contain."""
    return re.sub(r"[^\n]", lambda c: c[0] if c[0].isprintable() else f"\\U{ord(c[0]):08x}", text)


def configuration_of(plan: Plan, point: Point) -> Configuration:
    """Return the point in every form that its objective has, if it can still be loaded."""
    spec = plan.objective
    knobs = tuple(_value(*pair) for pair in zip(plan.space.knobs, point, strict=True))
    values = {knob.name: knob.value for knob in knobs}
    try:
        objective = registry.load(spec)
        arguments = objective.arguments(values)
        moved = objective.with_baseline(values) if any(k.is_moved for k in knobs) else spec
        training = None if moved is None else registry.unusual(moved)
    except (ValueError, SetupError) as error:
        return Configuration(spec.name, knobs, why=f"it cannot be loaded now: {error}")
    return Configuration(spec.name, knobs, arguments, training)


def _value(knob: Knob, unit: float) -> KnobValue:
    """Return the knob's value at `unit`; the baseline exactly, without a round trip's error."""
    start, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    if unit == start:
        return KnobValue(knob.name, baseline, baseline, 0.0)
    value = knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - start
    return KnobValue(knob.name, value, baseline, moved)


@dataclass(frozen=True)
class Best:
    """The result of a search."""

    run: Run
    candidate: Point  # the best point, recommended or not

    @property
    def standing(self) -> Literal["confirmed", "unconfirmed", "no_go"]:
        """A Go confirms it; after a No-Go the baseline is recommended instead."""
        if (decided := self.run.state.decided) is None:
            return "unconfirmed"
        return "no_go" if decided.grade == "no_go" else "confirmed"

    @property
    def recommended(self) -> Point:
        return self.run.plan.space.baseline if self.standing == "no_go" else self.candidate


def best_of(state: RunState, directory: Path) -> Best:
    """Return the result of a search. Raises ValueError if the run has none, or none yet."""
    plan = state.plan
    if plan.search is None:
        raise ValueError(f"{plan.run_id} is a {plan.phase} run: only a search recommends something")
    if (candidate := best_point(state, compared=True)) is None:
        raise ValueError(
            f"{plan.run_id} recommends nothing yet: none of its {plan.resolved.generations} "
            "generations is complete. Repeat the command that began it to go on"
        )
    return Best(Run(state, datetime.now(UTC), directory), candidate)


def headline(best: Best) -> str:
    """Return the verdict in a sentence."""
    verdict = answer(best.run)
    return f"{verdict.title}: {verdict.sentence}"


def as_dict(best: Best, recommended: Configuration, candidate: Configuration) -> dict[str, Any]:
    """Return the JSON document; it contains `best.json`, so `search.known` accepts it too."""
    run, plan = best.run, best.run.plan
    return {
        "run_id": plan.run_id,
        "directory": str(run.directory),
        "phase": plan.phase,
        "tier": plan.tier,
        "objective": recommended.objective,
        "standing": best.standing,
        "answer": plain_values(answer(run)),
        "recommended": {
            "is": "baseline" if best.standing == "no_go" else "candidate",
            **recommended.as_dict(),
        },
        "candidate": candidate.as_dict(),
        "why_not": recommended.why,
        "cautions": cautions(run),
        **best_document(run),
    }


def to_lines(best: Best, candidate: Configuration) -> Iterator[str]:
    """Yield a page for the terminal, beginning with what is not confirmed."""
    run, plan, is_no_go = best.run, best.run.plan, best.standing == "no_go"
    assert run.directory is not None, "it was read from there"
    yield headline(best)
    parts = answer(run).parts
    yield from (f"{name}: {parts[name]}" for name in ("But", "Found", "How sure") if name in parts)
    tier = f", tier {plan.tier}" if plan.tier else ""
    yield f"{plan.run_id}, {plan.phase}{tier}: {run.directory}"
    title = {
        "confirmed": "Recommended:",
        "unconfirmed": "What the search stands for:",
        "no_go": "The best candidate of the search, which is not recommended:",
    }[best.standing]
    yield from ("", title, "", *_table(candidate), "")
    if candidate.why:
        yield f"No arguments or settings: {candidate.why}."
    elif candidate.arguments:
        label = "Its arguments, though not recommended: " if is_no_go else "As arguments: "
        yield f"{label}{candidate.flags()}"
    forms = ["--json"]
    forms += ["--toml"] if candidate.training is not None else []
    forms += ["--flags"] if candidate.arguments else []
    own = command("best", found_as(run.directory, plan))
    yield f"Other forms: {own} {' | '.join(forms)}"


def _table(candidate: Configuration) -> Iterator[str]:
    rows = [("knob", "value", "baseline", "moved")]
    rows += [(k.name, f"{k.value:.6g}", f"{k.baseline:.6g}", k.distance) for k in candidate.knobs]
    widths = [max(len(row[column]) for row in rows) for column in range(3)]
    for name, value, baseline, moved in rows:
        yield f"  {name:{widths[0]}}  {value:>{widths[1]}}  {baseline:>{widths[2]}}  {moved}"
