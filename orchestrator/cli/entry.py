"""The command line: parse, build, call, print, exit code."""

import io
import signal
import sys
from contextlib import suppress
from functools import partial
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
from orchestrator.cli.compare import compare
from orchestrator.cli.conducting import EXIT_CORRUPT, EXIT_SIGNAL, EXIT_STORAGE
from orchestrator.cli.doctor import doctor
from orchestrator.cli.dry_run import show_dry_run
from orchestrator.cli.explain import explain
from orchestrator.cli.given import file_command, search_command
from orchestrator.cli.history import history
from orchestrator.cli.init import init
from orchestrator.cli.ledger import amend, ledgers, verify
from orchestrator.cli.plan import plans
from orchestrator.cli.plan_campaign import plan_campaign
from orchestrator.cli.program import Program, examples
from orchestrator.cli.proxy import proxies
from orchestrator.cli.report import report
from orchestrator.cli.run import run_file, run_search
from orchestrator.cli.serve import serve
from orchestrator.cli.shards import shards
from orchestrator.cli.slurm import exports
from orchestrator.cli.space import spaces
from orchestrator.cli.status import status
from orchestrator.cli.terminal import print_json
from orchestrator.cli.track import track
from orchestrator.execution.server import EngineError
from orchestrator.records.diverged import ReplayError
from orchestrator.version import version

EXIT_BAD_INPUT = 2
EXIT_LOCKED, EXIT_ENGINE = 5, 7

app = Program(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="CMA-ES search on a budget that is reserved before it is spent.",
    epilog=examples("doctor", "phase1 --tier min", "report --html"),
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


before, running, looking, proving = (
    partial(app.command, rich_help_panel=title)
    for title in ("Before you pay", "Run", "Look", "Change and prove")
)
before(epilog=examples("doctor", "doctor --config search.toml --quick"))(doctor)
before(epilog=examples("init --template phase1", "init --template phase1 --out search.toml"))(init)
before("dry-run", epilog=examples("dry-run", "dry-run --config search.toml"))(show_dry_run)
before(epilog=examples("explain", "explain min-nanochat-s1", "explain search.toml"))(explain)
before(
    epilog=examples(
        "calibrate",
        "calibrate --sweep-workers --worker-counts 1,2",
        'calibrate --again --reason "another driver"',
    )
)(calibrate)
app.add_typer(spaces, name="space", rich_help_panel="Before you pay")
app.add_typer(plans, name="plan", rich_help_panel="Before you pay")
plans.command(
    "campaign",
    help="What a campaign would take: every run, times, a checklist.\n\nWrites nothing.",
    epilog=examples("plan campaign campaign.toml"),
)(file_command(plan_campaign))

running(
    "phase1",
    help="Search for better knobs within a budget; the same command resumes.\n\n"
    "Writes a run, RUNS_DIR/phase1/ID: its ledger, reports, and the files of each evaluation.",
    epilog=examples(
        "phase1 --tier min",
        "phase1 --tier target --window 12h --run-id first",
        "phase1 --tier min --objective sphere --executor local",
    ),
)(search_command(run_search, "phase1"))
running(
    "phase2",
    help="Search on from a phase 1's Go, on more seeds or more knobs; the same command resumes.\n\n"
    "Writes a run, RUNS_DIR/phase2/ID.",
    epilog=examples(
        "phase2 --from first --variant robust --tier target",
        "phase2 --from first --variant expanded --tier min",
    ),
)(search_command(run_search, "phase2"))
running(
    "run",
    help="Run what a file describes, a search or a campaign; the same command resumes.\n\n"
    "Writes a run below RUNS_DIR; of a campaign of searches one for each.",
    epilog=examples("run search.toml", "run search.toml --search-seed 2 --max-hours 6"),
)(file_command(run_file))
app.add_typer(proxies, name="proxy", rich_help_panel="Run")
app.add_typer(exports, name="export", rich_help_panel="Run")
exports.command("shards", epilog=examples("export shards --out shards --shards 4"))(shards)

looking(epilog=examples("status", "status min-nanochat-s1 --watch"))(status)
looking(
    epilog=examples(
        "report", "report min-nanochat-s1 --html", "report min-nanochat-s1 --png scores"
    )
)(report)
looking(epilog=examples("compare min-nanochat-s1 min-nanochat-s2 --html"))(compare)
looking(epilog=examples("best", "best first --json", "best first --train --times 4 --seeds 2"))(
    best
)
looking(epilog=examples("analyze", "analyze first --evaluate"))(analyze)
looking(epilog=examples("serve", "serve min-nanochat-s1 --port 0 --open"))(serve)
looking(epilog=examples("track min-nanochat-s1 --to tensorboard"))(track)
looking(epilog=examples("history", "history --write"))(history)

proving(epilog=examples('amend min-nanochat-s1 --max-hours 4 --reason "it pays"'))(amend)
proving(epilog=examples("verify", "verify min-nanochat-s1"))(verify)
app.add_typer(ledgers, name="ledger", rich_help_panel="Change and prove")


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
    return fault_in_words(fault, str(fault["loc"][-1]) if fault["loc"] else "")
