"""The command line: parse, build, call, print, exit code."""

import io
import signal
import sys
from contextlib import suppress
from typing import Annotated, Any

import typer
from pydantic import ValidationError
from pydantic_core import ErrorDetails

from budgets.fold import ImpossibleEventError
from budgets.ledger.chain import LedgerCorruptError
from budgets.ledger.lock import LedgerLockedError
from budgets.ledger.storage import FULL
from budgets.ledger.writer import LedgerStorageError
from budgets.plain import printable
from objectives.api import SetupError
from objectives.keeping import keeping
from objectives.settings import fault_in_words
from orchestrator.cli.analyze import analyze
from orchestrator.cli.best import best
from orchestrator.cli.calibrate import calibrate
from orchestrator.cli.campaign import run_campaign
from orchestrator.cli.compare import compare
from orchestrator.cli.doctor import doctor
from orchestrator.cli.dry_run import show_dry_run
from orchestrator.cli.explain import explain
from orchestrator.cli.history import history
from orchestrator.cli.init import init
from orchestrator.cli.ledger import amend, ledgers, verify
from orchestrator.cli.options import (
    file_command,
    phase_command,
)
from orchestrator.cli.plan import plans
from orchestrator.cli.plan_campaign import plan_campaign
from orchestrator.cli.proxy import proxies
from orchestrator.cli.report import report
from orchestrator.cli.serve import serve
from orchestrator.cli.shards import shards
from orchestrator.cli.slurm import exports
from orchestrator.cli.space import spaces
from orchestrator.cli.status import status
from orchestrator.cli.terminal import (
    EXIT_CORRUPT,
    EXIT_SIGNAL,
    EXIT_STORAGE,
    conducting,
    finish,
    print_json,
)
from orchestrator.cli.track import track
from orchestrator.config.asked import Asked
from orchestrator.execution.server import EngineError
from orchestrator.records.diverged import ReplayError
from orchestrator.version import version

EXIT_BAD_INPUT = 2
EXIT_LOCKED, EXIT_ENGINE = 5, 7

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="CMA-ES search on a budget that is reserved before it is spent.",
)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"orchestrator {version()}")
        raise typer.Exit


@app.callback()
def _before(
    asked: Annotated[
        bool,
        typer.Option("--version", callback=_say_version, is_eager=True, help="Print the version."),
    ] = False,
) -> None:
    """What stands before a command's name."""


def run_phase(asked: Asked) -> None:
    """Search, or go on searching."""
    if not asked.tier_given:
        raise ValueError(
            "--tier: say how much to spend: min, target or max. "
            f"See what each costs with: orchestrator plan {asked.request.phase}"
        )
    with conducting(asked.conduct) as (session, live):
        result = session.search(
            asked.request,
            asked.conduct.engine.slots(),
            asked.assumed_seconds,
            asked.overrides,
            accept_drift=asked.accept_drift,
        )
        finish(result, session.stop, live, asked.conduct.as_json)


def run_file(asked: Asked) -> None:
    """Run what the file describes, or go on with it."""
    if asked.resolved.campaign is None:
        run_phase(asked)
    else:
        run_campaign(asked)


app.command("phase1", help="Search; the same command resumes.")(phase_command(run_phase, "phase1"))
app.command("phase2", help="Search on from a phase 1's Go; the same command resumes.")(
    phase_command(run_phase, "phase2")
)
app.command("run", help="Run what a file describes: a search, or a campaign; resumes likewise.")(
    file_command(run_file)
)
app.command()(init)
app.command()(calibrate)
plans.command("campaign", help="What a campaign would take: every run, times, a checklist.")(
    file_command(plan_campaign)
)
app.add_typer(plans, name="plan")
app.add_typer(spaces, name="space")
app.add_typer(proxies, name="proxy")
app.add_typer(ledgers, name="ledger")
exports.command("shards")(shards)
app.add_typer(exports, name="export")
app.command()(verify)
app.command()(amend)
app.command()(best)
app.command()(analyze)
app.command()(explain)
app.command()(doctor)
app.command("dry-run")(show_dry_run)
app.command()(serve)
app.command()(history)
app.command()(report)
app.command()(status)
app.command()(compare)
app.command()(track)


_ParserError: type[Exception] = typer.BadParameter.__mro__[1]
"""What the parser raises on a command line it does not understand; typer exports subclasses."""

_EXIT_BY_ERROR: dict[type[Exception], int] = {
    ValueError: EXIT_BAD_INPUT,
    _ParserError: EXIT_BAD_INPUT,
    SetupError: EXIT_BAD_INPUT,
    LedgerLockedError: EXIT_LOCKED,
    LedgerCorruptError: EXIT_CORRUPT,
    ImpossibleEventError: EXIT_CORRUPT,
    ReplayError: EXIT_CORRUPT,
    EngineError: EXIT_ENGINE,
    LedgerStorageError: EXIT_STORAGE,
    OSError: EXIT_STORAGE,
}


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal's charset stops no run
    try:
        with keeping(allowed=False):  # but where something is evaluated
            sys.exit(app(standalone_mode=False) or 0)
    except tuple(_EXIT_BY_ERROR) as error:
        code = next(code for kind, code in _EXIT_BY_ERROR.items() if isinstance(error, kind))
        if message := printable(_in_words(error)):
            if "--json" in sys.argv:
                with suppress(OSError):  # a full disk may be the error
                    print_json({"error": message, "exit_code": code})
            print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
    except KeyboardInterrupt:
        print("Interrupted.", file=sys.stderr)
        sys.exit(EXIT_SIGNAL + signal.SIGINT)


_FLAGS = {
    "assumed_seconds": "--assume-eval-seconds",
    "cost": "--max-cost",
    "device_hours": "--max-device-hours",
    "evaluation_seed": "--eval-seed",
    "hours": "--max-hours",
    "patience_generations": "--patience",
    "patience_improve": "--min-improve",
    "price_per_device_hour": "--price-per-device-hour",
    "seed": "--seed",
    "sigma0": "--sigma0",
    "stall_seconds": "--stall-seconds",
    "wall_seconds": "--limit-seconds",
}
"""Where a plan's fields come from, for messages about them."""


def _in_words(error: Exception) -> str:
    """One line; of a model's complaints each with its option and what came."""
    if isinstance(error, OSError) and error.errno in FULL:
        return f"{error}. Make room and repeat the command; nothing paid is lost"
    if isinstance(error, _ParserError):
        return _of_parser(error)
    if isinstance(error, OSError) and error.filename is not None:
        path = error.filename2 or error.filename
        way_on = "Move it away, or name another --runs-dir or --out"
        return f"cannot use {path}: {error.strerror}. {way_on}"
    if not isinstance(error, ValidationError):
        return str(error)
    return "; ".join(_complaint(details) for details in error.errors())


def _of_parser(error: Any) -> str:
    if type(error).__name__ == "NoArgsIsHelpError":
        return ""  # the help has been shown: there is no more to say
    message = " ".join(error.format_message().split()).replace("Value error, ", "").rstrip(".")
    came = _value_of(getattr(error, "param", None))
    command = error.ctx.command_path if error.ctx else "orchestrator"
    got = "" if came is None or repr(came) in message else f", got {came!r}"
    return f"{message}{got}. See: {command} --help"


def _value_of(option: Any) -> str | None:
    """What the command line gave an option, as far as it can be told."""
    words = sys.argv[1:]
    for name in getattr(option, "opts", ()):
        for word, following in zip(words, [*words[1:], None], strict=True):
            if word == name:
                return following
            if word.startswith(f"{name}="):
                return word.removeprefix(f"{name}=")
    return None


def _complaint(fault: ErrorDetails) -> str:
    field = str(fault["loc"][-1]) if fault["loc"] else ""
    return fault_in_words(fault, _FLAGS.get(field, field))
