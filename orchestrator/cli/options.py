"""The options that several commands share, and what a command line asks for.

What a flag is called, takes and says is declared with its key, in `orchestrator/config.py`.
"""

import os
from functools import cached_property
from inspect import Parameter
from pathlib import Path
from typing import Any

from typer import Argument, Context, Option

from budgets.formatting import command, listed
from budgets.plan import Phase
from objectives.secrets import redacted
from orchestrator.config import FLAGS, KEYS, Config, Flags, Search, resolve
from orchestrator.records.runs import RUNS_DIR, find_run

BOXES = {"budget": "At most", "backend": "Machine", "evaluation": "Machine"}
"""Of a command's help, by the table of a flag's key."""


def _of_key(name: str) -> tuple[Any, Any]:
    flag, box = FLAGS[KEYS[name]], BOXES.get(KEYS[name].partition(".")[0])
    own: dict[str, Any] = {"metavar": flag.metavar, "help": flag.about, "rich_help_panel": box}
    return flag.kind, Option(None, flag.spelling, show_default=False, **own)


def switch(name: str, about: str) -> Any:
    """Return an option without a value."""
    return Option(False, name, help=about)


WORDS, WORD = list[str] | None, str | None
SHARED: dict[str, tuple[Any, Any]] = {
    **{name: _of_key(name) for name in KEYS},
    "file": (
        Path | None,
        Argument(None, metavar="FILE", help="A configuration in TOML: see init, explain."),
    ),
    "run": (WORD, Argument(None, metavar="RUN", help="Id or directory; default: the latest.")),
    "settings": (
        WORDS,
        Option(None, "--set", metavar="KEY=VALUE", help="Any key that explain shows. Repeatable."),
    ),
    "override": (
        WORDS,
        Option(None, "--override", metavar="RULE", help="Continue despite this rule. Repeatable."),
    ),
    "reason": (WORD, Option(None, "--reason", metavar="TEXT", help="Why; it is recorded.")),
    "as_json": (bool, switch("--json", "Print one JSON document.")),
}
"""Type and declaration of options that several commands take, by the names in `app.COMMANDS`."""


def shared(name: str) -> Parameter:
    """Return the parameter of a command that is that shared option."""
    kind, option = SHARED[name]
    return Parameter(name, Parameter.KEYWORD_ONLY, default=option, annotation=kind)


class Typed:
    """What was typed after a command's name."""

    def __init__(self, context: Context) -> None:
        self._command, self._values = context.info_name, context.params
        self.run: str | None = self._values.get("run")
        self.root = Path(self._values.get("runs_dir") or RUNS_DIR)
        self.as_json = bool(self._values.get("as_json"))

    def directory(self, *phases: Phase) -> Path:
        """Return the directory of RUN, or of the latest run (of one of these phases)."""
        return find_run(self.run, self.root, *phases)

    @cached_property
    def config(self) -> Config:
        """The configuration that FILE, --set and flags describe. Raises ValueError."""
        given = {KEYS[name]: value for name, value in self._values.items() if name in KEYS}
        flags: Flags = {k: (v, FLAGS[k].spelling) for k, v in given.items() if v is not None}
        if self._command in ("phase1", "phase2"):
            flags = {"search.phase": (self._command, self._command), **flags}
        elif {"search.follows", "search.variant"} & set(flags):
            flags = {"search.phase": ("phase2", "phase2"), **flags}
        return resolve(self._values.get("file"), self._values.get("settings") or (), flags)

    @property
    def request(self) -> Config:
        """The configuration of a search, or of a campaign unless a phase was typed.

        Raises ValueError.
        """
        config = self.config
        if config.campaign is not None:
            layers = {config.source(f"search.{name}") for name in Search.model_fields}
            if typed := sorted(one for one in layers if one.startswith(("--", "phase"))):
                raise ValueError(
                    f"{config.file or '--set'} describes a campaign, not a search: say "
                    f"{command('run', str(config.file or 'FILE'))} without {listed(typed)}"
                )
        elif config.search.proxy is not None:
            from orchestrator.matrix.check_commands import on_shorter_evaluations

            return on_shorter_evaluations(config)
        return config

    @property
    def reason(self) -> str:
        """The reason that was given. Raises ValueError if no ledger should keep it."""
        reason: str = self._values.get("reason") or ""
        if not reason.isprintable() or redacted(reason, {}) != reason:
            raise ValueError(f"--reason: expected a printable line without secrets, got {reason!r}")
        return reason

    @property
    def overrides(self) -> tuple[tuple[str, str], ...]:
        """Each rule that may be passed, with the reason. Raises ValueError."""
        rules, reason = self._values.get("override") or (), self.reason
        if bool(rules) != bool(reason.strip()):
            raise ValueError(
                "--override RULE and --reason TEXT go on record together, got one of them"
            )
        return tuple((rule, reason) for rule in rules)


def named_file(path: Path, *endings: str, is_new: bool = False) -> Path:
    """Return the file that --out names. Raises ValueError if it cannot be written there."""
    if is_new and os.path.lexists(path):
        raise ValueError(f"--out {path}: there is something already; name another file")
    if not str(path).isprintable() or path.is_dir() or not path.parent.is_dir():
        raise ValueError(f"--out: expected a file in a directory that is there, got {str(path)!r}")
    if endings and path.suffix.lower() not in endings:
        raise ValueError(f"--out: name a file that ends with {' or '.join(endings)}, not {path}")
    return path
