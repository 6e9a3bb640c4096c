"""The options of the command line, each once, and what was given of them as one configuration."""

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any, Literal

from typer import Argument, Context, Option

from budgets.formatting import command
from budgets.ledger import LedgerCorruptError
from budgets.plan import Plan
from budgets.rules import RULES
from budgets.state import ImpossibleEventError
from objectives import registry, secrets
from orchestrator.config import OPTIONS, RUNS_DIR, Config, Layers, parse_assignments, resolve
from orchestrator.records.recorded import find_run, first_plan, ledgers, load_state, spec_of

Command = Callable[..., None]
Options = tuple[Parameter, ...]
PhaseName = Literal["phase1", "phase2"]
Overrides = tuple[tuple[str, str], ...]  # rules, each with the reason

DEFAULT_ROOT = Path(RUNS_DIR)


def taking(*groups: Options) -> Callable[[Command], Command]:
    """A command that takes these options too, after its own; they are read off its context."""

    def of(command: Command) -> Command:
        own = signature(command).parameters

        @wraps(command)
        def taken(**given: Any) -> None:
            command(**{name: given[name] for name in own})

        every = [*own.values(), *(option for group in groups for option in group)]
        options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in every]
        options.sort(key=lambda option: option.name == "as_json")  # the last before --help
        taken.__signature__ = Signature(options)  # type: ignore[attr-defined]  # where typer looks
        return taken

    return of


def named(key: str) -> str:
    """What the parameter for a key is called."""
    return key.replace(".", "_")


def keys(*wanted: str, panel: str | None = None) -> Options:
    """The options of these keys, or of all in a table, which `--help` shows together."""
    found = (key for one in wanted for key in OPTIONS if key == one or key.startswith(f"{one}."))
    return tuple(_of_key(key, panel) for key in found)


def _of_key(key: str, panel: str | None) -> Parameter:
    said = OPTIONS[key]
    option = Option(
        said.spelling,
        metavar=said.metavar,
        help=said.help,
        show_default=False,  # it says so
        rich_help_panel=panel,
    )
    return _beside(named(key), Annotated[said.type, option], said.default or None)


def _beside(name: str, annotation: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


Root = Annotated[
    Path, Option("--runs-dir", metavar="DIR", help=OPTIONS["runs_dir"].help, show_default=False)
]
Json = Annotated[bool, Option("--json", help="Print one JSON document.")]
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]
GivenRun = Annotated[str, Argument(metavar="RUN", help="Run id or directory.")]
Override = Annotated[
    list[str] | None,
    Option("--override", metavar="RULE", help="Go on past this rule. Repeatable."),
]
Reason = Annotated[str, Option("--reason", metavar="TEXT", help="Why; goes on record.")]
_File = Annotated[
    Path | None, Argument(metavar="FILE", help="A configuration in TOML: see init, explain.")
]
_Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Any key that explain shows. Repeatable."),
]

FILE = (_beside("config", _File),)
PLACE = keys("runs_dir")
SETTINGS = (_beside("settings", _Settings),)
LAID_OVER = (*keys("preset", "profile"), *SETTINGS)
TUNED = (*keys("objective"), *LAID_OVER)
BUDGET = keys("budget", panel="At most")
MACHINE = keys("backend", panel="Machine")

BESIDE = (*PLACE, *BUDGET, *MACHINE)
"""Of what is evaluated beside any search."""

FOLLOWING = keys("search.from", "search.variant")
SEARCH = (
    *keys("search.tier", "search.run_id", "search.seed"),
    *TUNED,
    *PLACE,
    *keys("track"),
    _beside("override", Override),
    _beside("reason", Reason, ""),
    *BUDGET,
    *MACHINE,
    *keys("evaluation", panel="Machine"),
)
"""Of a search, or of what a file describes."""

BESIDE_TABLES = ("budget", "evaluation", "backend", "backpressure")
"""Whose keys say how something is evaluated, and not what."""


@dataclass(frozen=True)
class Request:
    """What the command line and its file ask for."""

    config: Config
    overrides: Overrides
    as_json: bool


def requested(context: Context, phase: PhaseName | None = None) -> Request:
    """What is asked for: a search of that phase, or whatever the file describes.

    `--from` and `--variant` are of a phase 2: nobody has to say so too. Raises ValueError on an
    option that would do nothing in the campaign of a file.
    """
    from orchestrator.plan.resolve import (
        check_beginning,
    )  # with numpy, which looking need not wait for

    options = context.params
    flags: dict[str, tuple[Any, str]] = {}
    if phase is not None:
        flags = {"search.phase": (phase, phase)}
    elif any(is_given(context, named(key)) for key in ("search.from", "search.variant")):
        flags = {"search.phase": ("phase2", "--from")}
    config = resolved_of(context, flags=flags)
    if phase is not None and config.campaign is not None:
        other = command("run", str(config.file))
        raise ValueError(f"{config.file} describes a campaign, not a search: {other}")
    for key, source in config.sources.items():
        if source.startswith("--") and (unused := config.unused(key)):
            said = f"{source} {key}" if source == "--set" else source
            raise ValueError(f"{said} is {unused}. Leave it out")
    check_beginning(config)
    if config.search.proxy is not None:
        from orchestrator.matrix.checks import on_shorter_evaluations

        config = on_shorter_evaluations(config)
    overrides = overrides_of(options["override"], options["reason"])
    return Request(config, overrides, options["as_json"])


def resolved_of(
    context: Context,
    file: Path | None = None,
    flags: dict[str, tuple[Any, str]] | None = None,
) -> Config:
    """The file with everything that is said beside it. Raises ValueError on what cannot be.

    Only options that were really given count: the others leave the file its say.
    """
    options = context.params
    said = {parameter.name: parameter.opts[0] for parameter in context.command.params}
    given = {**(flags or {})}
    for key in OPTIONS:
        if is_given(context, name := named(key)):
            given[key] = (options[name], said[name])
    file, settings = file or options.get("config"), options.get("settings") or ()
    resolved = resolve(_following(Layers(file=file, assignments=settings, flags=given)))
    if resolved.campaign is not None and resolved.file is None:
        raise ValueError(
            "--set: a campaign is described in a file, got [campaign] or [factors] alone. Begin "
            f"with one: {command('init', '--template', 'campaign')}"
        )
    return resolved


def only_of(tables: Collection[str], context: Context) -> None:
    """Raises ValueError where `--set` says a key that means nothing to this command."""
    for key in parse_assignments(context.params["settings"] or ()):
        if key.partition(".")[0] not in tables:
            known = ", ".join(f"{table}.*" for table in tables)
            raise ValueError(f"--set: expected {known}, got {key}")


def _following(given: Layers) -> Layers:
    """With what the run tuned that a phase 2 follows, where nobody says what is tuned."""
    flags = {key: value for key, (value, _) in given.flags.items()}
    said = parse_assignments(given.assignments) | flags
    run = said.get("search.from")
    is_tuned = given.file is not None or "objective" in said
    if is_tuned or said.get("search.phase") != "phase2" or not isinstance(run, str):
        return given
    root, variant = Path(said.get("runs_dir", DEFAULT_ROOT)), said.get("search.variant")
    try:
        plan = load_state(find_run(run, root, "phase1")).plan
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
        if (follower := _follower(root, Path(run).name, variant)) is None:
            raise
        plan = follower
    spec = spec_of(plan)
    settings = {f"training.{key}": value for key, value in registry.unusual(spec).items()}
    return replace(given, followed=(Path(run).name, {"objective": spec.name, **settings}))


def _follower(root: Path, run: str, variant: str | None) -> Plan | None:
    """A phase 2 on record that followed the run so, and therefore tunes the same."""
    for path in ledgers(root, "phase2"):
        with suppress(LedgerCorruptError, ValueError, OSError):  # of another run, perhaps
            plan = first_plan(path)
            source = None if plan is None else plan.source
            if source is not None and (source.run_id, source.variant) == (run, variant):
                return plan
    return None


def is_given(context: Context, name: str) -> bool:
    """Whether the command line says that option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def names_of(text: str | None) -> tuple[str, ...]:
    """`A,B` as the names it lists."""
    return () if text is None else tuple(name.strip() for name in text.split(","))


def numbers_of(flag: str, text: str, most: int = 4096) -> tuple[int, ...]:
    """`1,4` as whole numbers, each once, in order. Raises ValueError, with the flag."""
    words = [word.strip() for word in text.split(",")]
    if not all(w.isascii() and w.isdecimal() and 1 <= int(w) <= most for w in words):
        raise ValueError(
            f"{flag}: expected whole numbers from 1 to {most}, split by commas, got {text!r}"
        )
    return tuple(sorted({int(word) for word in words}))


def overrides_of(rules: list[str] | None, reason: str, *, again: bool = False) -> Overrides:
    """Each rule with the reason, which may also be that of calibrating `again`.

    Raises ValueError on one without the other.
    """
    if rules and not reason.strip():
        raise ValueError("--override needs --reason: why may the run go on?")
    if again and not reason.strip():
        raise ValueError("--again needs --reason: why is the calibration there is not enough?")
    if reason and not (rules or again):
        raise ValueError(
            "--reason goes on record with --override (which rule may the run pass?) or calibrate "
            "--again"
        )
    for_record(reason)
    for rule in rules or ():
        if rule not in RULES:
            raise ValueError(f"--override {rule}: expected one of {', '.join(RULES)}")
    return tuple((rule, reason) for rule in rules or ())


def for_record(reason: str) -> str:
    """The reason as it is. Raises ValueError on what no ledger should keep."""
    if not reason.isprintable() or secrets.redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return reason
