"""One value for each key, and where it is from: default, preset, profile, file, `--set`, flag."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from budgets.plain import command
from budgets.terms import Thresholds
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from objectives.settings import fault_in_words, shown, unknown
from orchestrator.config.document import (
    FACTORS,
    SLURM,
    THRESHOLDS,
    TRAINING,
    Values,
    assigned,
    homes_of,
    read_document,
)
from orchestrator.config.sections import (
    SECTIONS,
    Backend,
    Backpressure,
    Budget,
    Campaign,
    Evaluation,
    Search,
    Section,
    Top,
    Track,
    Verdict,
)

Model = TypeVar("Model", bound=Section)


PLACED = (
    "runs_dir",
    *(f"backend.{name}" for name in ("executor", "address", "device", "workers", "threads")),
)
"""Keys that say where something is evaluated."""


@dataclass(frozen=True)
class Given:
    """What a person gave. Flags are values by dotted key, each with the flag's name."""

    file: Path | None = None
    assignments: Sequence[str] = ()
    flags: Mapping[str, tuple[Any, str]] = field(default_factory=dict)
    cell: tuple[str, Values] | None = None  # of a campaign: its name, and what it changes
    followed: tuple[str, Values] | None = None  # a run's name, and what it tuned

    def words(self, *also: str) -> tuple[str, ...]:
        """Of the command line, what decides what is evaluated where; and the flags of these keys.

        A plan of these words finds the same calibration.
        """
        said: list[tuple[Any, str]] = [] if self.file is None else [(self.file, "--config")]
        said += [self.flags[k] for k in ("preset", "profile", "objective") if k in self.flags]
        said += [(assignment, "--set") for assignment in self.assignments]
        said += [self.flags[k] for k in (*PLACED, *also) if k in self.flags]
        return tuple(word for value, flag in said for word in (flag, str(value)))


@dataclass(frozen=True)
class Resolved:
    """Every value of a run."""

    given: Given
    top: Top
    training: Mapping[str, Any]  # the objective's settings, as far as they are given
    aside: Mapping[str, Any]  # of `[training]`: for a training by itself, no evaluation has them
    search: Search
    budget: Budget
    evaluation: Evaluation
    verdict: Verdict
    backend: Backend
    backpressure: Backpressure
    track: Track
    thresholds: Mapping[str, Any]  # other than the default
    campaign: Campaign | None
    factors: Mapping[str, Any]
    slurm: Mapping[str, Any]
    sources: Mapping[str, str]  # by dotted key, of what is no default

    @property
    def file(self) -> Path | None:
        return self.given.file

    @property
    def objective(self) -> Objective:
        """Raises ValueError on an unknown objective or a wrong setting of it."""
        spec = ObjectiveSpec(name=self.top.objective, settings=dict(self.training))
        try:
            return registry.load(spec)
        except ValueError as error:
            raise ValueError(f"{error}{self._whence(str(error))}{self._template}") from error

    def _whence(self, complaint: str) -> str:
        """Where the settings that it names are from, unless they were typed just now."""
        named = set(re.findall(r"\w+", complaint)).intersection(self.training)
        sources = sorted({self.source(f"{TRAINING}.{key}") for key in named} - {"--set"})
        return f" ({', '.join(sources)})" if sources else ""

    @property
    def _template(self) -> str:
        """Where to begin, if nobody has said which knobs a program or a function has."""
        name = self.top.objective
        template = "function" if name.startswith(registry.FUNCTION) else name
        if template not in ("command", "function") or "knobs" in self.training:
            return ""
        return f". Begin with a file: {command('init', '--template', template)}"

    def source(self, key: str) -> str:
        return self.sources.get(key, "default")

    def unused(self, key: str) -> str:
        """What a key is for that means nothing in this campaign; empty where it does."""
        if self.campaign is None:
            return ""
        if self.campaign.cell == "training":
            is_idle = key.partition(".")[0] in {"search", "verdict"}
            return "for a search: this campaign makes none" if is_idle else ""
        is_named = key in {"search.run_id", "search.seed"}
        return "for one search: each of this campaign has its own" if is_named else ""


def resolve(given: Given) -> Resolved:
    """One value for each key. Raises ValueError, in one line, naming key, origin and what came."""
    values, sources = _layered(given)
    top = _section(Top, "", values, sources)
    campaign = None
    if any(key.startswith("campaign.") for key in values) or _of(FACTORS, values):
        campaign = _section(Campaign, "campaign", values, sources)
    objective, aside = _training(top.objective, _of(TRAINING, values), sources)
    return Resolved(
        given=given,
        top=top,
        training=objective,
        aside=aside,
        search=_section(Search, "search", values, sources),
        budget=_section(Budget, "budget", values, sources),
        evaluation=_section(Evaluation, "evaluation", values, sources),
        verdict=_section(Verdict, "verdict", values, sources),
        backend=_section(Backend, "backend", values, sources),
        backpressure=_section(Backpressure, "backpressure", values, sources),
        track=_section(Track, "track", values, sources),
        thresholds=_thresholds(_of(THRESHOLDS, values), sources),
        campaign=campaign,
        factors=_of(FACTORS, values),
        slurm=_of(SLURM, values),
        sources=sources,
    )


def _layered(given: Given) -> tuple[Values, dict[str, str]]:
    values: Values = {}
    sources: dict[str, str] = {}

    def lay(source: str, layer: Mapping[str, Any]) -> None:
        values.update(layer)
        sources.update(dict.fromkeys(layer, source))

    document = {} if given.file is None else read_document(given.file)
    asked = assigned(given.assignments)
    flags = {key: value for key, (value, _) in given.flags.items()}
    run, tuned = given.followed or ("", {})
    lay(f"run {run}", tuned)
    above = tuned | document | asked | flags
    objective = above.get("objective", Top().objective)
    given_settings = [key.removeprefix(f"{TRAINING}.") for key in above]
    names = (
        registry.named(objective, given_settings)
        if isinstance(objective, str)
        else registry.Named()
    )
    for kind, known in (("preset", names.presets), ("profile", names.profiles)):
        if (name := above.get(kind)) is not None:
            if not isinstance(name, str) or name not in known:
                raise _no_such(kind, name, known, objective)
            lay(f"{kind} {name}", {f"{TRAINING}.{key}": v for key, v in known[name].items()})
    lay(f"file {given.file}", document)
    lay("--set", asked)
    lay("flag", flags)
    sources.update({key: flag for key, (_, flag) in given.flags.items()})
    if given.cell is not None:  # whatever all of them have
        lay(f"condition {given.cell[0]}", given.cell[1])
    return values, sources


def _no_such(kind: str, name: Any, known: Mapping[str, Any], objective: Any) -> ValueError:
    if not known:
        return ValueError(f"--{kind}: {shown(objective)} has no {kind}s, got {shown(name)}")
    return unknown(kind, name if isinstance(name, str) else shown(name), known)


def _of(table: str, values: Mapping[str, Any]) -> Values:
    """The values of one table, by their names in it."""
    start = f"{table}."
    return {key.removeprefix(start): v for key, v in values.items() if key.startswith(start)}


def _section(
    model: type[Model], table: str, values: Mapping[str, Any], sources: Mapping[str, str]
) -> Model:
    given = _of(table, values) if table else {k: v for k, v in values.items() if "." not in k}
    try:
        return model.model_validate({key: v for key, v in given.items() if v is not None})
    except ValidationError as error:
        raise invalid(table, error, sources) from error


def invalid(table: str, error: ValidationError, sources: Mapping[str, str]) -> ValueError:
    """What is wrong with which values of a table, each by its flag, or by file and key."""
    return ValueError("; ".join(_in_words(table, fault, sources) for fault in error.errors()))


def _in_words(table: str, fault: ErrorDetails, sources: Mapping[str, str]) -> str:
    key = ".".join(filter(None, (table, *map(str, fault["loc"]))))
    source = sources.get(".".join(key.split(".")[:2]), "default")
    is_flag = source.startswith("--") and source != "--set"
    of_all = f"[{table}] " if table and not fault["loc"] else ""
    return of_all + fault_in_words(fault, source if is_flag else f"{source}: {key}")


def _thresholds(given: Mapping[str, Any], sources: Mapping[str, str]) -> dict[str, Any]:
    try:
        checked = Thresholds.model_validate(given, strict=True)
    except ValidationError as error:
        raise invalid(THRESHOLDS, error, sources) from error
    return {name: getattr(checked, name) for name in given}


def _training(name: str, given: Values, sources: Mapping[str, str]) -> tuple[Values, Values]:
    """The objective's settings, and those for a training by itself. Raises ValueError on others."""
    known = registry.named(name, given)
    for key in given:
        if key not in known.settings and key not in known.aside:
            place = sources[f"{TRAINING}.{key}"]
            error = unknown(f"{name} setting ({place})", key, (*known.settings, *known.aside))
            homes = " or ".join(f"{table}.{key}" for table in homes_of(key))
            raise ValueError(f"{error}. Or is it {homes}?" if homes else str(error))
    aside = {key: value for key, value in given.items() if key in known.aside}
    return {key: value for key, value in given.items() if key not in aside}, aside


def all_keys(resolved: Resolved) -> dict[str, Any]:
    """Every value by its dotted key, defaults included, in the file's order."""
    found: dict[str, Any] = dict(resolved.top.model_dump())
    settings = {**resolved.objective.spec.settings, **resolved.aside}
    found |= {f"{TRAINING}.{key}": value for key, value in settings.items()}
    for table, model in SECTIONS.items():
        section = getattr(resolved, table)
        if section is not None:
            dumped = section.model_dump()
            found |= {f"{table}.{key}": dumped[name] for key, name in model.keys().items()}
    thresholds = Thresholds.model_validate(resolved.thresholds).model_dump()
    found |= {f"{THRESHOLDS}.{key}": value for key, value in thresholds.items()}
    found |= {f"{FACTORS}.{key}": value for key, value in resolved.factors.items()}
    return found | {f"{SLURM}.{key}": value for key, value in resolved.slurm.items()}
