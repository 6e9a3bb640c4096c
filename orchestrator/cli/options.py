"""The options that several commands share, and the configuration that a command line describes.

What a flag is called, takes and says is declared with its key, in `orchestrator/config.py`.
"""

from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Context, Option

from budgets.formatting import command
from objectives import registry
from objectives.secrets import redacted
from orchestrator.config import FLAGS, KEYS, Config, Flags, Search, parse_assignments, resolve
from orchestrator.records.runs import RUNS_DIR, find_run, load_state

STDOUT = Path("-")
BOXES = {"budget": "At most", "backend": "Machine", "evaluation": "Machine"}
"""Of a command's help, by the table of a flag's key."""


def _of_key(name: str) -> Any:
    key = KEYS[name]
    flag, box = FLAGS[key], BOXES.get(key.partition(".")[0])
    return Annotated[
        flag.kind,
        Option(
            flag.spelling, metavar=flag.metavar, help=flag.about, rich_help_panel=box,
            show_default=False,  # the help says it
        ),
    ]  # fmt: skip


SHARED = {
    **{name: _of_key(name) for name in KEYS},
    "file": Annotated[
        Path | None, Argument(metavar="FILE", help="A configuration in TOML: see init, explain.")
    ],
    "settings": Annotated[
        list[str] | None,
        Option("--set", metavar="KEY=VALUE", help="Any key that explain shows. Repeatable."),
    ],
    "override": Annotated[
        list[str] | None,
        Option("--override", metavar="RULE", help="Go on past this rule. Repeatable."),
    ],
    "reason": Annotated[
        str | None, Option("--reason", metavar="TEXT", help="Why; goes on record.")
    ],
    "as_json": Annotated[bool, Option("--json", help="Print one JSON document.")],
}
"""Options that several commands take, by the names that `app.COMMANDS` lists."""

ROOT = Path(RUNS_DIR)
Root = Annotated[Path, SHARED["runs_dir"].__metadata__[0]]
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]


def shared(name: str) -> Parameter:
    """Return the parameter of a command that is that shared option."""
    default = False if name == "as_json" else None
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=SHARED[name])


def given(context: Context) -> Flags:
    """Return the flags that were typed, by key; without a flag an option is None."""
    typed = {KEYS[name]: value for name, value in context.params.items() if name in KEYS}
    return {k: (value, FLAGS[k].spelling) for k, value in typed.items() if value is not None}


def resolved(context: Context, more: Flags | None = None) -> Config:
    """Return the configuration of a command line: FILE, --set and flags. Raises ValueError.

    A phase 2 that names no objective has that of the run that it follows.
    """
    file: Path | None = context.params.get("file")
    assignments, flags = context.params.get("settings") or (), {**(more or {}), **given(context)}
    said = parse_assignments(assignments) | {key: value for key, (value, _) in flags.items()}
    followed = ("", dict[str, Any]())
    if file is None and "objective" not in said and said.get("search.phase") == "phase2":
        followed = _tuned_by(said)
    return resolve(file, assignments, flags, followed)


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
    more: Flags = {}
    if phase is not None:
        more = {"search.phase": (phase, phase)}
    elif {"search.follows", "search.variant"} & set(given(context)):
        more = {"search.phase": ("phase2", "phase2")}
    config = resolved(context, more)
    if config.campaign is not None and phase is not None:
        other = command("run", str(config.file or "FILE"))
        raise ValueError(f"{config.file or '--set'} describes a campaign, not a search: {other}")
    typed = [one for one in Search.model_fields if config.source(f"search.{one}").startswith("--")]
    if config.campaign is not None and typed:
        raise ValueError(f"search.{typed[0]} is for a search, not a campaign. Leave it out")
    if config.search.proxy is None:
        return config
    from orchestrator.matrix.check_commands import on_shorter_evaluations

    return on_shorter_evaluations(config)


# Checks of what was typed


def overrides_of(context: Context) -> tuple[tuple[str, str], ...]:
    """Return each rule that may be passed, with the reason. Raises ValueError."""
    rules, reason = context.params["override"] or (), reason_of(context)
    if bool(rules) != bool(reason.strip()):
        raise ValueError("--override RULE and --reason TEXT go on record together, got one of them")
    return tuple((rule, reason) for rule in rules)


def reason_of(context: Context) -> str:
    """Return the reason that was given. Raises ValueError if no ledger should keep it."""
    reason: str = context.params["reason"] or ""
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
