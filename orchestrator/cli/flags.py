"""The flags that are keys of the configuration, and what a command line makes of them.

What a flag is called, takes and says is declared with its key, in `orchestrator/config.py`. A
command lists the flags that it takes; `resolved` reads those that were given from its context.
"""

from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option

from budgets import plan
from budgets.formatting import command
from budgets.ledger import LedgerCorruptError
from budgets.plan import Plan
from budgets.rules import DECISIONS
from budgets.state import ImpossibleEventError
from objectives import registry
from orchestrator.cli.options import for_record
from orchestrator.config import FLAGS, Config, Flags, Layers, parse_assignments, resolve
from orchestrator.records.runs import RUNS_DIR, find_run, first_plan, ledgers, load_state

Overrides = tuple[tuple[str, str], ...]  # rules, each with the reason


def _flag(key: str, panel: str | None = None) -> Any:
    said = FLAGS[key]
    return Option(
        said.spelling, metavar=said.metavar, help=said.about, rich_help_panel=panel,
        show_default=False,  # it says so
    )  # fmt: skip


MOST, MACHINE = "At most", "Machine"

File = Annotated[
    Path | None, Argument(metavar="FILE", help="A configuration in TOML: see init, explain.")
]
Settings = Annotated[
    list[str] | None,
    Option("--set", metavar="KEY=VALUE", help="Any key that explain shows. Repeatable."),
]
Objective = Annotated[str | None, _flag("objective")]
RunsDir = Annotated[str | None, _flag("runs_dir")]
Preset = Annotated[str | None, _flag("preset")]
Profile = Annotated[str | None, _flag("profile")]
Tier = Annotated[plan.Tier | None, _flag("search.tier")]
RunId = Annotated[str | None, _flag("search.run_id")]
Seed = Annotated[int | None, _flag("search.seed")]
From = Annotated[str | None, _flag("search.from")]
Variant = Annotated[plan.VariantName | None, _flag("search.variant")]
Track = Annotated[list[str] | None, _flag("track.to")]
MaxEvals = Annotated[int | None, _flag("budget.max_evals", MOST)]
MaxDeviceHours = Annotated[float | None, _flag("budget.max_device_hours", MOST)]
MaxHours = Annotated[float | None, _flag("budget.max_hours", MOST)]
MaxCost = Annotated[float | None, _flag("budget.max_cost", MOST)]
Window = Annotated[str | None, _flag("budget.window", MOST)]
Executor = Annotated[str | None, _flag("backend.executor", MACHINE)]
Address = Annotated[str | None, _flag("backend.address", MACHINE)]
Device = Annotated[str | None, _flag("backend.device", MACHINE)]
Workers = Annotated[int | None, _flag("backend.workers", MACHINE)]
EvalSeconds = Annotated[float | None, _flag("evaluation.assume_eval_seconds", MACHINE)]
Override = Annotated[
    list[str] | None,
    Option("--override", metavar="RULE", help="Go on past this rule. Repeatable."),
]
Again = Annotated[
    bool, Option("--again", help="Measure again, beside what there is; needs --reason.")
]

KEYS = {flag.spelling: key for key, flag in FLAGS.items()}
"""The key that each flag is."""

BESIDE_A_RUN = ("budget", "evaluation", "backend", "backpressure")
"""Tables whose keys say how something is evaluated, and not what."""


def given(context: Context) -> dict[str, tuple[Any, str]]:
    """The flags that the command line really has, by key: the others leave the file its say."""
    found = {}
    for own in context.command.params:
        name = str(own.name)
        if (key := KEYS.get(own.opts[0])) and is_given(context, name):
            found[key] = (context.params[name], own.opts[0])
    return found


def is_given(context: Context, name: str) -> bool:
    """Whether the command line says that option."""
    source = context.get_parameter_source(name)
    return source is not None and source.name == "COMMANDLINE"


def resolved(
    context: Context,
    file: Path | None = None,
    settings: Sequence[str] | None = None,
    more: Flags | None = None,
) -> Config:
    """The file with everything that is said beside it. Raises ValueError on what cannot be."""
    flags = {**(more or {}), **given(context)}
    config = resolve(_following(Layers(file, settings or (), flags)))
    if config.campaign is not None and file is None:
        raise ValueError(
            "--set: a campaign is described in a file, got [campaign] or [factors] alone. Begin "
            f"with one: {command('init', '--template', 'campaign')}"
        )
    return config


def requested(
    context: Context, file: Path | None, settings: Sequence[str] | None, phase: str | None = None
) -> Config:
    """What a search of that phase, or what the file describes, is asked to be.

    `--from` and `--variant` are of a phase 2: nobody has to say so too. Raises ValueError on an
    option that would do nothing in the campaign of a file.
    """
    from orchestrator.plan.resolve import check_beginning  # with numpy: looking need not wait

    more: dict[str, tuple[Any, str]] = {}
    if phase is not None:
        more = {"search.phase": (phase, phase)}
    elif {"search.from", "search.variant"} & set(given(context)):
        more = {"search.phase": ("phase2", "--from")}
    config = resolved(context, file, settings, more)
    if phase is not None and config.campaign is not None:
        other = command("run", str(file))
        raise ValueError(f"{file} describes a campaign, not a search: {other}")
    for key, source in config.sources.items():
        if source.startswith("--") and (unused := config.unused(key)):
            said = f"{source} {key}" if source == "--set" else source
            raise ValueError(f"{said} is {unused}. Leave it out")
    check_beginning(config)
    if config.search.proxy is None:
        return config
    from orchestrator.matrix.checks import on_shorter_evaluations

    return on_shorter_evaluations(config)


def only_of(tables: Collection[str], settings: Sequence[str] | None) -> None:
    """Raises ValueError where `--set` says a key that means nothing to this command."""
    for key in parse_assignments(settings or ()):
        if key.partition(".")[0] not in tables:
            known = ", ".join(f"{table}.*" for table in tables)
            raise ValueError(f"--set: expected {known}, got {key}")


def _following(layers: Layers) -> Layers:
    """With what the run tuned that a phase 2 follows, where nobody says what is tuned."""
    flags = {key: value for key, (value, _) in layers.flags.items()}
    said = parse_assignments(layers.assignments) | flags
    run = said.get("search.from")
    is_tuned = layers.file is not None or "objective" in said
    if is_tuned or said.get("search.phase") != "phase2" or not isinstance(run, str):
        return layers
    root, variant = Path(said.get("runs_dir", RUNS_DIR)), said.get("search.variant")
    try:
        followed = load_state(find_run(run, root, "phase1")).plan
    except (LedgerCorruptError, ImpossibleEventError, ValueError, OSError):
        if (follower := _follower(root, Path(run).name, variant)) is None:
            raise
        followed = follower
    spec = followed.objective
    settings = {f"training.{key}": value for key, value in registry.unusual(spec).items()}
    return replace(layers, followed=(Path(run).name, {"objective": spec.name, **settings}))


def _follower(root: Path, run: str, variant: str | None) -> Plan | None:
    """A phase 2 on record that followed the run so, and therefore tunes the same."""
    for path in ledgers(root, "phase2"):
        with suppress(LedgerCorruptError, ValueError, OSError):  # of another run, perhaps
            found = first_plan(path)
            source = None if found is None else found.source
            if source is not None and (source.run_id, source.variant) == (run, variant):
                return found
    return None


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
        if rule not in DECISIONS:
            raise ValueError(f"--override {rule}: expected one of {', '.join(DECISIONS)}")
    return tuple((rule, reason) for rule in rules or ())
