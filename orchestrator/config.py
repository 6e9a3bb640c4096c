"""The configuration: every key once, with its default, check, help and flag.

A value comes from a layer, each above the one before: default < followed run < preset < profile <
file < `--set` < flag. `Config.source` names it.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, Self, get_args, get_type_hints

import orjson
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    PrivateAttr,
    StringConstraints,
    ValidationError,
)
from pydantic_core import ErrorDetails

from budgets.formatting import printable
from budgets.plan import Direction, PositiveSeed, SearchMethod, Thresholds, Tier
from objectives import registry
from objectives.api import Objective, ObjectiveSpec
from objectives.files import read_toml
from objectives.settings import check_writable, fault_in_words, shown, unknown
from orchestrator.records.runs import RUNS_DIR, find_run, load_state

Values = dict[str, Any]
"""By dotted key, `search.tier`; a key above all tables has no dot."""

Flags = Mapping[str, tuple[Any, str]]
"""Values by dotted key, each with the flag that was typed."""

VERDICT_SEEDS = 8
"""Fresh, paired: a gain of 1.5 sd of the paired differences is then shown 8 times of 10."""

LARGEST = 1e9  # hours, seconds or money; a larger number is a typing error
MOST_SEEDS = 1000  # of one point

Amount = Annotated[float, Field(gt=0, le=LARGEST)]
Count = Annotated[int, Field(ge=1)]
Seeds = Annotated[int, Field(ge=0, le=MOST_SEEDS)]


# Keys


def key(default: Any, about: str, flag: str = "", metavar: str | None = None, **checks: Any) -> Any:
    """Declare a key. With a `flag` it is an option too: "-" for one of the key's own name."""
    extra: dict[str, Any] = {"flag": flag, "metavar": metavar}
    return Field(default, description=about, json_schema_extra=extra, **checks)


class Table(BaseModel):
    """A table of the file. Values of a wrong type are refused, not converted."""

    model_config = ConfigDict(
        frozen=True, extra="forbid", strict=True, allow_inf_nan=False, defer_build=True
    )


RunId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]{0,63}$")]


class Search(Table):
    """Which search, and how it proposes."""

    phase: Literal["phase1", "phase2"] = key("phase1", "Which phase the file describes.")
    tier: Tier | None = key(None, "Size of the search.", "-")  # no search begins without it
    run_id: RunId | None = key(None, "The run's name.", "-", "ID")
    seed: PositiveSeed = key(1, "Seed of the candidates; default: 1.", "-", "SEED")
    method: SearchMethod = key("guided", "guided, or plain: unchanged pycma.")
    # with a smaller step, rounding decides which points of a generation differ
    sigma0: float | None = key(None, "First step, as a share of the ranges.", ge=1e-6, le=0.3)
    population: int | None = key(None, "Candidates a generation; default: 2 x devices.")
    generations: Count | None = key(None, "At most; default: what the tier pays for.")
    seeds_per_candidate: int | None = key(None, "Default: the tier's.", ge=1, le=MOST_SEEDS)
    follows: str | None = key(None, "The phase 1 whose Go it follows.", "--from", "RUN")
    variant: Literal["robust", "expanded"] | None = key(None, "More seeds, or more knobs.", "-")
    proxy: float | None = key(None, "Evaluate with this share of the FLOPs.", gt=0, lt=1)


class Budget(Table):
    """What a run may never exceed."""

    max_evals: Count | None = key(None, "Evaluations, without those of a verdict.", "-", "N")
    max_device_hours: Amount | None = key(None, "Hours of device time.", "-", "HOURS")
    max_hours: Amount | None = key(None, "Hours of wall clock, over all sessions.", "-", "HOURS")
    max_cost: Amount | None = key(None, "Cost, at budget.price_per_device_hour.", "-", "MONEY")
    window: str | None = key(None, "In 12h, or by 2026-11-27T18:00; less 30m.", "-", "TIME")
    safety_margin: str = key("30m", "Part of the window kept for the last report and clean-up.")
    price_per_device_hour: float = key(0.0, "For max_cost and reports.", ge=0, le=LARGEST)


class Evaluation(Table):
    """How one evaluation is carried out."""

    seed: PositiveSeed = key(123, "Stream that the evaluations' seeds are drawn from.")
    limit_seconds: Amount | None = key(None, "Kill one that takes longer; default: from its p90.")
    stall_seconds: Amount | None = key(
        None, "Kill one without output, heartbeat or CPU time for longer; default: 120."
    )
    assume_eval_seconds: Amount | None = key(
        None, "Assume this instead of a calibration.", "-", "SECONDS"
    )


class Verdict(Table):
    """How the winner is compared with the baseline."""

    confirm_seeds: Seeds = key(VERDICT_SEEDS, "Fresh seeds; 0: no Go.")
    long_run: float = key(
        4.0, "Times the FLOPs, to see a gain persist; up to 1: none.", ge=0, le=LARGEST
    )
    long_run_seeds: Seeds = key(2, "Seeds of the long run.")


class Backend(Table):
    """What evaluations run on."""

    executor: Literal["ray", "local", "inline"] = key(
        "ray", "ray (default), local or inline.", "-", "NAME"
    )
    address: str | None = key(None, "Join this Ray cluster.", "-", "HOST:PORT")
    device: Literal["auto", "cpu", "cuda"] = key(
        "auto", "auto (default), cpu or cuda.", "-", "NAME"
    )
    workers: Count | None = key(None, "Evaluations at once; default: GPUs or CPUs.", "-", "N")
    threads: Count | None = key(None, "CPU threads of an evaluation.")
    drain_seconds: float | None = key(None, "Time to end after a signal.", ge=0, le=LARGEST)
    max_concurrent: Annotated[int, Field(ge=1, le=512)] | None = key(
        None, "Evaluations at once of all runs together."
    )


class Backpressure(Table):
    """Fewer evaluations at once where more do less together."""

    enabled: bool = key(False, "Run fewer at once while more would lower the throughput.")


class Campaign(Table):
    """Conditions on the same seeds. A file with this table is a campaign."""

    name: RunId | None = key(None, "The campaign's name; default: the file's.")
    seeds: Annotated[list[PositiveSeed], AfterValidator(lambda own: [*dict.fromkeys(own)])] = key(
        [1], "Of evaluations.", min_length=1, max_length=MOST_SEEDS
    )
    parallel: bool = key(True, "Evaluate on all devices at once.")
    max_workers: Count | None = key(None, "Evaluations at once, at most.")
    stagger_seconds: float = key(0.0, "Between the first starts.", ge=0, le=LARGEST)
    controls: bool = key(True, "Add the default configuration and the objective's controls.")
    conditions: list[dict[str, Any]] = key([], "Names, and the keys that each changes.")


Directive = Annotated[
    str,
    StringConstraints(pattern=r"^--[a-z][a-z0-9-]{1,40}(=[A-Za-z0-9_.,:/@%+*&|()\[\]=-]{1,200})?$"),
]


class Slurm(Table):
    """The share of a cluster that each job asks for, and what it does first."""

    time: str | None = key(None, "Time limit; default: from the estimate.")
    sbatch: list[Directive] = key([], "More options of each job: --partition=gpu, --mem=32G.")
    setup: list[str] = key([], "Lines of shell code before the run.")
    python: str | None = key(None, "The interpreter; default: the one that exports.")


TRAINING, FACTORS = "training", "factors"


def _table() -> Any:
    """Declare a table of which every key has a default."""
    return Field(default_factory=dict, validate_default=True)


class Config(Table):
    """Every value of a run, and where each is from."""

    objective: str = key(
        "nanochat", "nanochat (default), command, python:MODULE:NAME, ...", "-", "NAME"
    )
    direction: Direction = key("minimize", 'Or "maximize": higher scores are better.')
    runs_dir: str = key(RUNS_DIR, f"Runs; default: {RUNS_DIR}.", "-", "DIR")
    preset: str | None = key(None, "Named training settings.", "-", "NAME")
    profile: str | None = key(None, "Named settings that fit the memory.")
    training: dict[str, Any] = {}
    search: Search = _table()
    budget: Budget = _table()
    evaluation: Evaluation = _table()
    verdict: Verdict = _table()
    backend: Backend = _table()
    backpressure: Backpressure = _table()
    campaign: Campaign | None = None
    thresholds: Thresholds = _table()
    factors: dict[str, Any] = {}
    slurm: Slurm = _table()

    _file: Path | None = PrivateAttr(None)
    _sources: Mapping[str, str] = PrivateAttr(default_factory=dict)

    @property
    def file(self) -> Path | None:
        """The file that it was read from."""
        return self._file

    def source(self, key: str) -> str:
        """Return where a value is from."""
        return self._sources.get(key, "default")

    @property
    def alone(self) -> Values:
        """The settings of a training by itself, which no evaluation has."""
        known = registry.settings_of(self.objective, self.training).alone
        return {name: value for name, value in self.training.items() if name in known}

    @property
    def settings(self) -> Values:
        """The objective's settings that were given."""
        alone = self.alone
        return {name: value for name, value in self.training.items() if name not in alone}

    @cached_property
    def tuned(self) -> Objective:
        """The objective. Raises ValueError on an unknown one or a wrong setting of it."""
        try:
            return registry.load(ObjectiveSpec(name=self.objective, settings=self.settings))
        except ValueError as error:
            layers = {s for k, s in self._sources.items() if k.startswith((TRAINING, "objective"))}
            place = f" ({', '.join(sorted(layers))})" if layers else ""
            raise ValueError(f"{error}{place}") from error

    def with_objective(self, objective: Objective) -> Self:
        """Return the same configuration of another objective."""
        spec = objective.spec
        other = self.model_copy(update={"objective": spec.name, "training": dict(spec.settings)})
        other.__dict__["tuned"] = objective
        return other

    def having(self, values: Values) -> Self:
        """Return the same configuration with these values of tables, which are not checked."""
        changed: dict[str, Any] = {}
        for dotted, value in values.items():
            table, dot, name = dotted.partition(".")
            old = changed.get(table, getattr(self, table))
            changed[table] = old.model_copy(update={name: value}) if dot else value
        return self.model_copy(update=changed)

    def all_values(self) -> Values:
        """Return every value by its dotted key, defaults included."""
        settings = {**self.tuned.spec.settings, **self.alone}
        sections = {name: own.model_dump() for name in SECTIONS if (own := getattr(self, name))}
        tables = {TRAINING: settings, **sections, FACTORS: self.factors}
        found = ((f"{name}.{key}", own[key]) for name, own in tables.items() for key in own)
        return {**{name: getattr(self, name) for name in TOP}, **dict(found)}


SECTIONS: dict[str, type[BaseModel]] = {
    name: kind
    for name, field in Config.model_fields.items()
    for kind in (field.annotation, *get_args(field.annotation))
    if isinstance(kind, type) and issubclass(kind, BaseModel)
}
"""Tables with fixed keys. `[training]` has the objective's, `[factors]` whatever is varied."""

TABLES = (*SECTIONS, TRAINING, FACTORS)

TOP = tuple(name for name in Config.model_fields if name not in TABLES)
"""Keys above all tables."""


class Flag(NamedTuple):
    """A key's option on a command line."""

    spelling: str
    kind: Any  # its type
    about: str
    metavar: str | None


def _flags() -> Iterator[tuple[str, Flag]]:
    tables: dict[str, type[BaseModel]] = {"": Config, **SECTIONS}
    for table, model in tables.items():
        kinds = get_type_hints(model)
        for name, own in model.model_fields.items():
            extra: Any = own.json_schema_extra or {"flag": ""}
            if flag := extra["flag"]:
                spelling = f"--{name.replace('_', '-')}" if flag == "-" else flag
                about = own.description or ""
                option = Flag(spelling, kinds[name] | None, about, extra["metavar"])
                yield f"{table}.{name}".lstrip("."), option


FLAGS = dict(_flags())
"""Every flag by its key."""

KEYS = {key.rpartition(".")[2]: key for key in FLAGS}
"""The key of every flag, by its last word."""


# From layers to a configuration


def resolve(
    file: Path | None = None,
    assignments: Sequence[str] = (),
    flags: Flags | None = None,
) -> Config:
    """Return one value for each key: of a file, of `--set`, of flags.

    Raises ValueError in one line: key, origin, what came.
    """
    values, sources = Values(), dict[str, str]()
    for dotted, value, source in _layered(file, assignments, flags or {}):
        try:
            orjson.dumps(value)  # the ledger must be able to hold it
        except TypeError as error:  # a longer integer, half a character
            raise ValueError(f"{source}: {dotted}: {error}, got {shown(value)}") from error
        if not dotted.startswith(f"{TRAINING}."):  # the objective checks its own
            check_writable(f"{source}: {dotted}", value)
        values[dotted], sources[dotted] = value, source
    nested = _nested(values)
    if nested.get(FACTORS):
        nested.setdefault("campaign", {})
    try:
        config = Config.model_validate(nested, strict=True)
    except ValidationError as error:
        raise ValueError("; ".join(_complaint(one, sources) for one in error.errors())) from error
    config._file, config._sources = file, sources
    search = config.search
    if len({search.phase == "phase2", bool(search.follows), search.variant is not None}) > 1:
        raise ValueError(
            "--from RUN and --variant belong to a phase2, which needs both: the phase 1 that it "
            "follows; robust has the same knobs, expanded more of them"
        )
    return config


def _nested(values: Values) -> Values:
    """Return the values by table and key."""
    nested: Values = {}
    for dotted, value in values.items():
        table, dot, name = dotted.partition(".")
        if dot:
            nested.setdefault(table, {})[name] = value
        else:
            nested[dotted] = value
    return nested


def _layered(
    file: Path | None, assignments: Sequence[str], flags: Flags
) -> Iterator[tuple[str, Any, str]]:
    """Yield each key, its value and where that is from; of two, the later counts."""
    layers = list[tuple[str, Values]]()
    if file is not None:
        layers += [(f"file {file}", dict(flattened(read_toml(file, str(file)), str(file))))]
    layers += [("--set", parse_assignments(assignments))]
    layers += [(flag, {key: value}) for key, (value, flag) in flags.items()]
    said = {key: value for _, own in layers for key, value in own.items()}
    run, tuned = _followed(said)
    for source, own in [(run, tuned), *_named(tuned | said), *layers]:
        yield from ((key, value, source) for key, value in own.items())


def _followed(values: Values) -> tuple[str, Values]:
    """Return what the run has tuned that a phase 2 without an objective follows, and its name."""
    run = str(values.get("search.follows") or "")
    if not run or values.get("search.phase") != "phase2" or "objective" in values:
        return "", {}
    root = Path(str(values.get("runs_dir", RUNS_DIR)))
    plan = load_state(find_run(run, root, "phase1")).plan
    settings = {f"{TRAINING}.{k}": value for k, value in registry.unusual(plan.objective).items()}
    own = {"objective": plan.objective.name, "direction": plan.direction, **settings}
    return f"run {Path(run).name}", own


def _named(values: Values) -> Iterator[tuple[str, Values]]:
    """Yield the settings that a preset and a profile stand for."""
    objective = values.get("objective", Config.model_fields["objective"].default)
    given = [key.removeprefix(f"{TRAINING}.") for key in values]
    known = registry.settings_of(str(objective), given)
    for kind, choices in (("preset", known.presets), ("profile", known.profiles)):
        if (name := values.get(kind)) is None:
            continue
        if str(name) not in choices:
            raise unknown(f"{objective} {kind}", str(name), choices or ("none",))
        yield f"{kind} {name}", {f"{TRAINING}.{k}": value for k, value in choices[name].items()}


def _complaint(fault: ErrorDetails, sources: Mapping[str, str]) -> str:
    """Return what is wrong with a key or its value, and where it is from."""
    *tables, name = places = [*map(str, fault["loc"])]
    key, owner = ".".join(places), ".".join(places[:2])
    source = next((s for k, s in sources.items() if f"{k}.".startswith(f"{owner}.")), "default")
    if fault["type"] == "extra_forbidden":
        known = SECTIONS[tables[0]].model_fields if tables else (*TOP, *TABLES)
        kind = f"key in [{tables[0]}]" if tables else "key"
        return str(unknown(f"{kind} ({source})", name, known))
    is_flag = source.startswith("--") and source != "--set"
    return fault_in_words(fault, source if is_flag else f"{source}: {key}")


# What a file and --set may say


def parse_assignments(assignments: Sequence[str]) -> Values:
    """Return the values of "a.b=c": JSON, or else text; without a dot a key is of `[training]`.

    Raises ValueError unless each is an assignment.
    """
    values: Values = {}
    for assignment in assignments:
        name, equals, text = assignment.partition("=")
        key = name.strip()
        if not equals or not key:
            raise ValueError(f"--set: expected KEY=VALUE, got {shown(assignment)}")
        values[key if "." in key or key in TOP else f"{TRAINING}.{key}"] = _json_or_text(text)
    return values


def _json_or_text(value: str) -> Any:
    try:
        return json.loads(value, parse_constant=str)
    except (ValueError, RecursionError):
        return value


def flattened(document: Mapping[str, Any], place: str) -> Iterator[tuple[str, Any]]:
    """Yield each value of a document by its dotted key. Raises ValueError on a table that is none.

    A factor `training.lr = [...]` is one by that key, though TOML reads the dot as a table.
    """
    for name, value in document.items():
        if name not in TABLES or (name == "campaign" and value == {}):  # which makes a campaign too
            yield name, value
        elif not isinstance(value, dict):
            raise ValueError(f"{place}: {name}: expected a table [{name}], got {shown(value)}")
        else:
            inner = flattened(value, f"{place}: {name}") if name == FACTORS else value.items()
            yield from ((f"{name}.{key}", own) for key, own in inner)


# What is printed and written


def format_value(value: Any) -> str:
    """Return text that `--set KEY=` reads back as that value."""
    if isinstance(value, float) and abs(value) >= 1e7 and float(short := f"{value:g}") == value:
        return short
    if not isinstance(value, str):
        return json.dumps(value, ensure_ascii=False, default=str)
    return json.dumps(value) if _json_or_text(value) != value else value


def assign(key: str, value: Any) -> tuple[str, str]:
    """Return the words of a command line that give the key that value."""
    return "--set", f"{key}={format_value(value)}"


def as_shown(value: Any) -> str:
    """Return the value as a table shows it; `-` where nothing is set."""
    if value is None or value == "":
        return "-"
    return value if isinstance(value, str) else format_value(value)


def to_toml(values: Mapping[str, Any], *comments: str) -> str:
    """Return a configuration file with these values by dotted key; None is left out."""
    import tomlkit

    lines = [f"# {' '.join(printable(comment).split())}\n" for comment in comments]
    text = "".join([*lines, tomlkit.dumps(_nested(_without_none(values)))])
    # basic strings of TOML may contain escapes for what is not printable
    return "".join(c if c.isprintable() or c == "\n" else f"\\U{ord(c):08x}" for c in text)


def _without_none(value: Any) -> Any:
    """Return the value without the parts that are None, which TOML cannot write."""
    if isinstance(value, Mapping):
        return {key: _without_none(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list | tuple):
        return [_without_none(inner) for inner in value]
    return value
