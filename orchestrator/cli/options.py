"""The options that several commands share, and the configuration that a command line describes.

What a flag is called, takes and says is declared with its key, in `orchestrator/config.py`.
"""

from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option

from budgets.formatting import command
from budgets.plan import Tier, VariantName
from budgets.rules import DECISIONS
from objectives import registry
from objectives.secrets import redacted
from orchestrator.config import FLAGS, Config, Flags, Layers, parse_assignments, resolve
from orchestrator.records.runs import RUNS_DIR, find_run, load_state

STDOUT = Path("-")
KEYS = {flag.spelling: key for key, flag in FLAGS.items()}
"""The configuration key of each flag."""


# Options that several commands share


def _flag(key: str, section: str | None = None) -> Any:
    flag = FLAGS[key]
    return Option(
        flag.spelling, metavar=flag.metavar, help=flag.about, rich_help_panel=section,
        show_default=False,  # the help says it
    )  # fmt: skip


ROOT = Path(RUNS_DIR)
Root = Annotated[Path, _flag("runs_dir")]
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]
AT_MOST, MACHINE = "At most", "Machine"


def shared(
    file: Annotated[
        Path | None, Argument(metavar="FILE", help="A configuration in TOML: see init, explain.")
    ] = None,
    tier: Annotated[Tier | None, _flag("search.tier")] = None,
    run_id: Annotated[str | None, _flag("search.run_id")] = None,
    seed: Annotated[int | None, _flag("search.seed")] = None,
    follows: Annotated[str | None, _flag("search.follows")] = None,
    variant: Annotated[VariantName | None, _flag("search.variant")] = None,
    objective: Annotated[str | None, _flag("objective")] = None,
    preset: Annotated[str | None, _flag("preset")] = None,
    settings: Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="Any key that explain shows. Repeatable."),
    ] = None,
    runs_dir: Annotated[str | None, _flag("runs_dir")] = None,
    max_evals: Annotated[int | None, _flag("budget.max_evals", AT_MOST)] = None,
    max_device_hours: Annotated[float | None, _flag("budget.max_device_hours", AT_MOST)] = None,
    max_hours: Annotated[float | None, _flag("budget.max_hours", AT_MOST)] = None,
    max_cost: Annotated[float | None, _flag("budget.max_cost", AT_MOST)] = None,
    window: Annotated[str | None, _flag("budget.window", AT_MOST)] = None,
    executor: Annotated[str | None, _flag("backend.executor", MACHINE)] = None,
    address: Annotated[str | None, _flag("backend.address", MACHINE)] = None,
    device: Annotated[str | None, _flag("backend.device", MACHINE)] = None,
    workers: Annotated[int | None, _flag("backend.workers", MACHINE)] = None,
    assume_eval_seconds: Annotated[
        float | None, _flag("evaluation.assume_eval_seconds", MACHINE)
    ] = None,
    override: Annotated[
        list[str] | None,
        Option("--override", metavar="RULE", help="Go on past this rule. Repeatable."),
    ] = None,
    reason: Annotated[str, Option("--reason", metavar="TEXT", help="Why; goes on record.")] = "",
    as_json: Annotated[bool, Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Declare the shared options, by the names that `app.COMMANDS` lists. It is never called."""


def given(context: Context) -> Flags:
    """Return the flags that were typed, by key; without a flag an option is None."""
    typed = {param.opts[0]: context.params[str(param.name)] for param in context.command.params}
    return {KEYS[f]: (value, f) for f, value in typed.items() if f in KEYS and value is not None}


def resolved(context: Context, more: Flags | None = None) -> Config:
    """Return the configuration of a command line: FILE, --set and flags. Raises ValueError.

    A phase 2 that names no objective has that of the run that it follows.
    """
    file: Path | None = context.params.get("file")
    layers = Layers(file, context.params.get("settings") or (), {**(more or {}), **given(context)})
    said = parse_assignments(layers.assignments)
    said |= {key: value for key, (value, _) in layers.flags.items()}
    if file is None and "objective" not in said and said.get("search.phase") == "phase2":
        layers = replace(layers, followed=_tuned_by(said))
    config = resolve(layers)
    if config.campaign is not None and file is None:
        raise ValueError(
            "--set: a campaign is described in a file, got [campaign] or [factors] alone. Begin "
            f"with one: {command('init', '--template', 'campaign')}"
        )
    return config


def _tuned_by(said: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    """Return the name of the run to follow, and what that tuned."""
    if not (run := said.get("search.follows")):
        return "", {}
    plan = load_state(find_run(str(run), Path(said.get("runs_dir", RUNS_DIR)), "phase1")).plan
    settings = registry.unusual(plan.objective).items()
    tuned = {"objective": plan.objective.name, "direction": plan.direction}
    return Path(str(run)).name, {**tuned, **{f"training.{key}": value for key, value in settings}}


def requested(context: Context, phase: str | None = None) -> Config:
    """Return the configuration of a search of that phase, or of what FILE describes.

    `--from` or `--variant` alone make it a phase 2. Raises ValueError.
    """
    from orchestrator.plan.resolve import check_beginning  # imports numpy

    more: Flags = {}
    if phase is not None:
        more = {"search.phase": (phase, phase)}
    elif {"search.follows", "search.variant"} & set(given(context)):
        more = {"search.phase": ("phase2", "phase2")}
    config = resolved(context, more)
    if config.campaign is not None and phase is not None:
        other = command("run", str(config.file))
        raise ValueError(f"{config.file} describes a campaign, not a search: {other}")
    _refuse_what_is_ignored(config)
    check_beginning(config)
    if config.search.proxy is None:
        return config
    from orchestrator.matrix.check_commands import on_shorter_evaluations

    return on_shorter_evaluations(config)


def _refuse_what_is_ignored(config: Config) -> None:
    """Raise ValueError on a flag or --set that a campaign, or tier min, has no use for."""
    ignored: tuple[str, ...]
    if config.campaign is not None:
        ignored, why = ("search.", "verdict."), "is for a search, not a campaign"
    elif (config.search.phase, config.search.tier) == ("phase1", "min"):
        ignored, why = ("verdict.",), "is for a verdict: tier min has none"
    else:
        return
    for key, source in config.sources.items():
        if key.startswith(ignored) and source.startswith("--"):
            flag = f"--set {key}" if source == "--set" else source
            raise ValueError(f"{flag} {why}. Leave it out")


# Checks of what was typed


def overrides_of(context: Context) -> tuple[tuple[str, str], ...]:
    """Return each rule that may be passed, with the reason. Raises ValueError."""
    rules, reason = context.params["override"] or (), reason_of(context)
    if bool(rules) != bool(reason.strip()):
        raise ValueError("--override RULE and --reason TEXT go on record together, got one of them")
    for rule in rules:
        if rule not in DECISIONS:
            raise ValueError(f"--override {rule}: expected one of {', '.join(DECISIONS)}")
    return tuple((rule, reason) for rule in rules)


def reason_of(context: Context) -> str:
    """Return the reason that was given. Raises ValueError if no ledger should keep it."""
    reason: str = context.params["reason"]
    if not reason.isprintable() or redacted(reason, {}) != reason:
        raise ValueError(
            f"--reason goes on record: expected one printable line without secrets, got {reason!r}"
        )
    return reason


def named_file(path: Path, *endings: str) -> Path:
    """Return the file that --out names. Raises ValueError if it cannot be written there."""
    if not str(path).isprintable() or path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--out: expected a file in a directory that is there, got {str(path)!r}")
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"--out: name a file that ends with {' or '.join(endings)}, not {path}")
    return path
