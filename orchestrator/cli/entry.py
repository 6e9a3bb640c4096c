"""The command line: parse, build, call, print, exit code."""

import io
import signal
import sys
from contextlib import suppress
from functools import partial
from typing import Annotated

import typer

from budgets.plain import PROGRAM, printable
from objectives.commands import Program
from objectives.keeping import keeping
from orchestrator.cli.best import best
from orchestrator.cli.calibrate import calibrate
from orchestrator.cli.check import checks
from orchestrator.cli.conducting import EXIT_SIGNAL
from orchestrator.cli.doctor import doctor
from orchestrator.cli.dry_run import show_dry_run
from orchestrator.cli.errors import EXIT_BY_ERROR, exit_code, in_words
from orchestrator.cli.explain import explain
from orchestrator.cli.given import file_command, search_command
from orchestrator.cli.history import history
from orchestrator.cli.init import init
from orchestrator.cli.ledger import amend, ledgers, verify
from orchestrator.cli.plan import plan
from orchestrator.cli.program import examples
from orchestrator.cli.report import report
from orchestrator.cli.run import run_file, run_search
from orchestrator.cli.serve import serve
from orchestrator.cli.shards import shards
from orchestrator.cli.slurm import exports
from orchestrator.cli.status import status
from orchestrator.cli.terminal import print_json
from orchestrator.cli.track import track
from orchestrator.execution.insistence import Insisted
from orchestrator.version import version

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
before(epilog=examples("doctor", "doctor search.toml --quick"))(doctor)
before(epilog=examples("init --template phase1", "init --template phase1 --out search.toml"))(init)
before("dry-run", epilog=examples("dry-run", "dry-run search.toml"))(show_dry_run)
before(epilog=examples("explain", "explain min-nanochat-s1", "explain search.toml"))(explain)
before(
    epilog=examples(
        "calibrate",
        'calibrate --again --reason "another driver"',
    )
)(calibrate)
app.add_typer(checks, name="check", rich_help_panel="Before you pay")
before(
    epilog=examples(
        "plan --tier target",
        "plan --fit --window 12h --assume-eval-seconds 30",
        "plan --from first --variant robust",
    )
)(plan)

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
    epilog=examples("run search.toml", "run search.toml --seed 2 --max-hours 6"),
)(file_command(run_file))
app.add_typer(exports, name="export", rich_help_panel="Run")
exports.command("shards", epilog=examples("export shards --out shards --shards 4"))(shards)

looking(epilog=examples("status", "status min-nanochat-s1 --watch"))(status)
looking(
    epilog=examples(
        "report",
        "report min-nanochat-s1 --png scores",
        "report min-nanochat-s1 min-nanochat-s2 --html",
    )
)(report)
looking(epilog=examples("best", "best first --json", "best first --train --times 4 --seeds 2"))(
    best
)
looking(epilog=examples("serve", "serve min-nanochat-s1 --port 0 --open"))(serve)
looking(epilog=examples("track min-nanochat-s1 --to tensorboard"))(track)
looking(epilog=examples("history", "history --write"))(history)

proving(epilog=examples('amend min-nanochat-s1 --max-hours 4 --reason "it pays"'))(amend)
proving(epilog=examples("verify", "verify min-nanochat-s1"))(verify)
app.add_typer(ledgers, name="ledger", rich_help_panel="Change and prove")


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal's charset stops no run
    try:
        with keeping(allowed=False):  # but where something is evaluated
            sys.exit(app(standalone_mode=False, prog_name=PROGRAM) or 0)
    except tuple(EXIT_BY_ERROR) as error:
        code = exit_code(error)
        if message := printable(in_words(error)):
            if "--json" in sys.argv:
                with suppress(OSError):  # a full disk may be the error
                    print_json({"error": message, "exit_code": code})
            print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
    except (KeyboardInterrupt, Insisted) as interrupted:
        print("Interrupted.", file=sys.stderr)
        is_ours = isinstance(interrupted, Insisted)
        sys.exit(EXIT_SIGNAL + (interrupted.args[0] if is_ours else signal.SIGINT))
