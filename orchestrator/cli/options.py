"""The options of the command line, each once: the keys of a configuration by their flags, grouped
as `--help` shows them, and the few that are no key."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Annotated, Any

from pydantic import ValidationError
from typer import Argument, BadParameter, Option

from orchestrator.config import OPTIONS, RUNS_DIR, Config

Command = Callable[..., None]
Options = tuple[Parameter, ...]

DEFAULT_ROOT = Path(RUNS_DIR)

PANELS = (*(None, "What is tuned", "Budget", "Rules", "Machine"),)
"""What `--help` shows together, in this order."""


def taking(*groups: Options) -> Callable[[Command], Command]:
    """A command that takes these options too, after its own; they are read off its context."""

    def of(command: Command) -> Command:
        own = signature(command).parameters

        @wraps(command)
        def taken(**given: Any) -> None:
            command(**{name: given[name] for name in own})

        every = [*own.values(), *(option for group in groups for option in group)]
        options = [option.replace(kind=Parameter.KEYWORD_ONLY) for option in every]
        options.sort(key=_place)
        taken.__signature__ = Signature(options)  # type: ignore[attr-defined]  # where typer looks
        return taken

    return of


def _place(option: Parameter) -> tuple[int, bool]:
    """Where `--help` has it, `--json` last of what has no title."""
    info = getattr(option.annotation, "__metadata__", (None,))[0]
    return PANELS.index(getattr(info, "rich_help_panel", None)), option.name == "as_json"


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
        show_default=said.type is not bool,
        rich_help_panel=panel,
    )
    return _beside(named(key), Annotated[said.type, option], said.default or None)


def _beside(name: str, annotation: Any, default: Any = None) -> Parameter:
    return Parameter(name, Parameter.KEYWORD_ONLY, default=default, annotation=annotation)


def _root(name: str | Path) -> Path:
    """`--runs-dir`, checked as the key is."""
    try:
        return Path(Config(runs_dir=str(name)).runs_dir)
    except ValidationError:
        raise BadParameter(f"expected a directory's name, got {str(name)!r}") from None


Root = Annotated[
    Path,
    Option("--runs-dir", parser=_root, metavar="DIR", help=OPTIONS["runs_dir"].help),
]
Json = Annotated[bool, Option("--json", help="Print one JSON document instead of text.")]
RunName = Annotated[
    str | None, Argument(metavar="RUN", help="Run id or directory; default: the latest.")
]
GivenRun = Annotated[str, Argument(metavar="RUN", help="Run id or directory.")]
ConfigurationFile = Annotated[Path, Argument(metavar="FILE", help="A configuration in TOML.")]
Override = Annotated[
    list[str] | None,
    Option(
        "--override",
        metavar="RULE",
        help="Go on although this rule fired. Repeatable.",
        rich_help_panel="Rules",
    ),
]
Reason = Annotated[
    str, Option("--reason", metavar="TEXT", help="Why; goes on record.", rich_help_panel="Rules")
]
AcceptDrift = Annotated[
    bool,
    Option(
        "--accept-drift",
        help="Go on where floating-point results differ in their last bits (another CPU).",
        rich_help_panel="Rules",
    ),
]
_File = Annotated[
    Path | None, Argument(metavar="FILE", help="A configuration in TOML; see: init, explain.")
]
_Settings = Annotated[
    list[str] | None,
    Option(
        "--set",
        metavar="KEY=VALUE",
        help="A setting of what is tuned, or any other key of a configuration. Repeatable.",
        rich_help_panel="What is tuned",
    ),
]

FILE = (_beside("config", _File),)
PLACE = keys("runs_dir")
TRACK = keys("track")
SETTINGS = (_beside("settings", _Settings),)
LAID_OVER = (*keys("preset", "profile", panel="What is tuned"), *SETTINGS)
TUNED = (*keys("objective", panel="What is tuned"), *LAID_OVER)
BUDGET = keys("budget", panel="Budget")
OVERRIDES = (_beside("override", Override), _beside("reason", Reason, ""))
MACHINE = keys("backend", panel="Machine")

BESIDE = (*PLACE, *BUDGET, *MACHINE)
"""Of what is evaluated beside any search."""

FOLLOWING = keys("search.from", "search.variant")
SEARCH = (
    *keys("search.tier", "search.run_id", "search.seed"),
    *PLACE,
    *TRACK,
    *TUNED,
    *BUDGET,
    *OVERRIDES,
    _beside("accept_drift", AcceptDrift, False),
    *MACHINE,
    *keys("evaluation", panel="Machine"),
)
"""Of a search, or of what a file describes."""
