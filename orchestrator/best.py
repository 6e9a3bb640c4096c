"""What a search recommends: its forms, how far it is confirmed, and one longer training of it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from budgets.formatting import command, shell_word
from budgets.plan import CampaignTerms, Condition, Plan
from budgets.state import RunState
from objectives import registry
from objectives.api import Objective, SetupError, Variant
from objectives.space import Knob
from orchestrator.config import LONG_RUN_FACTOR, Config, to_toml
from orchestrator.look.answer import answer
from orchestrator.look.document import best_document, plain_values
from orchestrator.look.run import Run
from orchestrator.look.text import cautions
from orchestrator.matrix.campaign import CONTROL, DEFAULT
from orchestrator.plan.comparisons import training_seeds
from orchestrator.plan.resolve import found_as, short_hash
from orchestrator.records.objective import Point, best_point

LONGEST_NAME = 36
"""Characters of the search's name in its training's."""


@dataclass(frozen=True)
class KnobValue:
    """A knob's value beside the one that the search was compared with."""

    name: str
    value: float
    baseline: float
    moved: float  # of its range

    @property
    def is_moved(self) -> bool:
        return self.value != self.baseline

    @property
    def how_far(self) -> str:
        """`+4% of its range`."""
        return f"{100 * self.moved:+.3g}% of its range" if self.is_moved else "not"


@dataclass(frozen=True)
class Configuration:
    """All forms of one point; those that there are none of are None, and `why` says why."""

    objective: str
    knobs: tuple[KnobValue, ...]
    arguments: tuple[str, ...] | None = None
    training: dict[str, Any] | None = None  # settings with which this is the baseline
    why: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "knobs": [vars(knob) for knob in self.knobs],
            "arguments": None if self.arguments is None else list(self.arguments),
            "training": self.training,
        }

    def flags(self) -> str:
        """The arguments as a shell takes them. Raises ValueError where there are none."""
        if not self.arguments:
            why = self.why or "it is not started with arguments"
            raise ValueError(f"--flags: {self.objective} has none: {why}. See --json")
        return " ".join(map(shell_word, self.arguments))

    def toml(self, *comments: str) -> str:
        """A configuration file whose baseline this is. Raises ValueError where none has it."""
        if self.training is None:
            why = self.why or "no setting of it says where its knobs begin"
            raise ValueError(
                f"--toml: {self.objective} cannot have another baseline: {why}. A search takes "
                "what --json prints as a file for search.known"
            )
        values = {f"training.{name}": value for name, value in self.training.items()}
        if self.objective != Config().objective:  # `train` reads the file too
            values = {"objective": self.objective, **values}
        lines = [
            f"{k.name} = {k.value:.6g} (baseline {k.baseline:.6g}, moved {k.how_far})"
            for k in self.knobs
        ]
        return _escaped(to_toml(values, *comments, *lines))


def _escaped(text: str) -> str:
    """Basic strings of TOML, which may say any character by its number."""
    return re.sub(r"[^\n]", lambda c: c[0] if c[0].isprintable() else f"\\U{ord(c[0]):08x}", text)


def configuration_of(plan: Plan, point: Point) -> Configuration:
    """The point in all forms, as far as its objective can still be loaded."""
    space, spec = plan.space, plan.objective
    knobs = tuple(_value(*own) for own in zip(space.knobs, point, strict=True))
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
    """At its baseline exactly that: on the way to the unit cube and back digits may get lost."""
    there, baseline = knob.encode(knob.baseline), knob.typed(knob.baseline)
    if unit == there:
        return KnobValue(knob.name, baseline, baseline, 0.0)
    value = knob.decode(unit)
    moved = (knob.encode(value) if knob.kind == "int" else unit) - there
    return KnobValue(knob.name, value, baseline, moved)


@dataclass(frozen=True)
class Best:
    """What a search has come to."""

    run: Run
    candidate: Point  # the best there is, recommended or not

    @property
    def standing(self) -> Literal["confirmed", "unconfirmed", "no_go"]:
        """A Go confirms; after a No-Go the baseline is recommended; else nobody has compared."""
        if (decided := self.run.state.decided) is None:
            return "unconfirmed"
        return "no_go" if decided.grade == "no_go" else "confirmed"

    @property
    def recommended(self) -> Point:
        return self.run.space.baseline if self.standing == "no_go" else self.candidate


def best_of(state: RunState, directory: Path) -> Best:
    """Raises ValueError on a run that searched nothing, or has learned nothing yet."""
    plan = state.plan
    if plan.search is None:
        raise ValueError(
            f"{plan.run_id} is a {plan.phase} run: expected a search, which has something to "
            "recommend"
        )
    if (candidate := best_point(state, compared=True)) is None:
        raise ValueError(
            f"{plan.run_id} recommends nothing yet: none of its {plan.resolved.generations} "
            "generations is told. Repeat the command that began it to go on"
        )
    return Best(Run(state, datetime.now(UTC), directory), candidate)


def headline(best: Best) -> str:
    """What a reader must know first."""
    said = answer(best.run)
    return f"{said.title}: {said.sentence}"


def as_dict(best: Best, recommended: Configuration, candidate: Configuration) -> dict[str, Any]:
    """The whole of it; `recommendation` is as in `best.json`, so `search.known` takes this too."""
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
    """A page of a terminal at most, what is not confirmed first."""
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
        of_what = "Its arguments, though not recommended: " if is_no_go else "As arguments: "
        yield f"{of_what}{candidate.flags()}"
    own = command("best", found_as(run.directory, plan)) + (" --anyway" if is_no_go else "")
    forms = ["--json"]
    forms += ["--toml"] if candidate.training is not None else []
    forms += ["--flags"] if candidate.arguments else []
    yield f"Other forms: {own} {' | '.join(forms)}"
    yield f"Train it and the baseline longer: {own} --train"


def _table(candidate: Configuration) -> Iterator[str]:
    rows = [("knob", "value", "baseline", "moved")]
    rows += [(k.name, f"{k.value:.6g}", f"{k.baseline:.6g}", k.how_far) for k in candidate.knobs]
    widths = [max(len(row[place]) for row in rows) for place in range(3)]
    for name, value, baseline, far in rows:
        yield f"  {name:{widths[0]}}  {value:>{widths[1]}}  {baseline:>{widths[2]}}  {far}"


# One longer training of it


def training_of(best: Best, config: Config, times: float | None, seeds: int) -> CampaignTerms:
    """The campaign of the search's best and its baseline, so many times as long, on fresh seeds.

    Its name has a hash of the point: a search that has gone on since is trained as another run.
    """
    objective, state = config.tuned, best.run.state
    variant = longer(objective, times)
    name = "candidate" if best.standing == "no_go" else "recommended"
    conditions = (
        _condition(objective, variant, name, best.candidate),
        _condition(objective, variant, f"{DEFAULT}{CONTROL}"),
    )
    return CampaignTerms(
        name=training_name(state.plan.run_id, variant.length, best.candidate),
        conditions=conditions,
        seeds=training_seeds(state, seeds),
    )


def training_name(run_id: str, factor: float, point: Point) -> str:
    """`best-RUN-x4-1f3a`: a run's id, also where the search's own is as long as one may be."""
    own = short_hash(repr((run_id, point)))
    return f"best-{run_id[:LONGEST_NAME]}-x{factor:.4g}-{own}".replace("+", "")


def longer(objective: Objective, times: float | None) -> Variant:
    """The objective with so many times its budget; by default 4, where it has one.

    Raises ValueError where it cannot be trained that long.
    """
    factor = LONG_RUN_FACTOR if times is None else times
    if (variant := objective.scaled(factor)) is not None:
        return variant
    if times in (None, 1):
        return Variant(label="as long", settings={})
    raise ValueError(
        f"--times: {objective.spec.name} cannot be trained {factor:g} times as long: none of its "
        "settings scales that far. --times 1 trains it as long as the search did"
    )


def _condition(
    objective: Objective, variant: Variant, name: str, point: Point | None = None
) -> Condition:
    """At the point, or as the control at its baseline."""
    space = registry.load(registry.varied(objective.spec, variant.settings)).space
    return Condition(
        name=name,
        settings=variant.settings,
        knobs=space.decode(space.baseline if point is None else point),
        point=point,
        cost_factor=variant.length,
        control=point is None,
    )
