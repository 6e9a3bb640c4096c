"""The command line: find the command, call it, say what went wrong, leave with an exit code.

A command's module is imported when it is called: `--help` and completion need its line here only.
"""

import io
import signal
import sys
from contextlib import suppress
from importlib import import_module
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand

from budgets.formatting import PROGRAM, printable
from orchestrator.cli.errors import EXIT_SIGNAL, exit_code, in_words
from orchestrator.cli.program import Group, Program, examples
from orchestrator.execution.signals import Insisted
from orchestrator.version import version

BEFORE, RUN, LOOK, PROVE = "Before you pay", "Run", "Look", "Change and prove"


class Command(NamedTuple):
    """A command, or a group of them."""

    name: str
    place: str  # below orchestrator.cli: module:function, or module:group
    panel: str
    about: str  # in a line; its own help says more
    examples: tuple[str, ...] = ()


COMMANDS = (
    Command("doctor", "set_up:doctor", BEFORE, "Whether all that a run needs is here.",
            ("doctor", "doctor search.toml --quick")),
    Command("init", "set_up:init", BEFORE, "A file to begin with: search, campaign, own program.",
            ("init --template phase1", "init --template phase1 --out search.toml")),
    Command("explain", "set_up:explain", BEFORE, "Every key and value of a file, and the knobs.",
            ("explain", "explain min-nanochat-s1", "explain search.toml")),
    Command("calibrate", "run:calibrate", BEFORE, "Measure the baseline.",
            ("calibrate", 'calibrate --again --reason "another driver"')),
    Command("check", "run:checks", BEFORE, "What to search, how short, on how many workers."),
    Command("plan", "plan:plan", BEFORE, "What a search or a campaign would cost, and could tell.",
            ("plan --tier target", "plan --fit --window 12h --assume-eval-seconds 30",
             "plan --from first --variant robust")),
    Command("dry-run", "set_up:show_dry_run", BEFORE, "What one evaluation would start.",
            ("dry-run", "dry-run search.toml")),
    Command("phase1", "run:phase1", RUN, "Search for better knobs; the same command resumes.",
            ("phase1 --tier min", "phase1 --tier target --window 12h --run-id first",
             "phase1 --tier min --objective sphere --executor local")),
    Command("phase2", "run:phase2", RUN, "Search on from a phase 1's Go; the same resumes.",
            ("phase2 --from first --variant robust --tier target",
             "phase2 --from first --variant expanded --tier min")),
    Command("run", "run:run", RUN, "Run what a file describes; the same command resumes.",
            ("run search.toml", "run search.toml --seed 2 --max-hours 6")),
    Command("train", "train:train", RUN, "One training with checkpoints; the same resumes.",
            ("train --preset quick", "train search.toml --set num_batches=2000")),
    Command("export", "ledger:exports", RUN, "For other programs: SLURM, a table, Optuna, shards."),
    Command("status", "status:status", LOOK, "How a run stands, also while it runs.",
            ("status", "status min-nanochat-s1 --watch")),
    Command("report", "report:report", LOOK, "What runs came to: found, how sure, cost, what next.",
            ("report", "report min-nanochat-s1 --png scores",
             "report min-nanochat-s1 min-nanochat-s2 --html")),
    Command("best", "best:best", LOOK, "The recommended configuration, as text, flags or a file.",
            ("best first --json", "best first --train")),
    Command("serve", "serve:serve", LOOK, "Show runs as a page in a browser.",
            ("serve", "serve min-nanochat-s1 --port 0 --open")),
    Command("track", "track:track", LOOK, "Send a run to experiment trackers.",
            ("track min-nanochat-s1 --to tensorboard",)),
    Command("amend", "ledger:amend", PROVE, "Raise or lower a run's caps, on record.",
            ('amend min-nanochat-s1 --max-hours 4 --reason "it pays"',)),
    Command("verify", "ledger:verify", PROVE, "Replay a run; name the first divergence.",
            ("verify", "verify min-nanochat-s1", "verify min-nanochat-s1 --salvage saved")),
)  # fmt: skip


class _Commands(Group):
    """Those of COMMANDS: as lines, until one is called."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, line, rest = super().resolve_command(ctx, args)
        return name, line and _imported(next(c for c in COMMANDS if c.name == name)), rest


def _imported(wanted: Command) -> Any:
    module, _, name = wanted.place.partition(":")
    found = getattr(import_module(f"orchestrator.cli.{module}"), name)
    if not isinstance(found, typer.Typer):
        alone = Program(add_completion=False)
        alone.command(wanted.name, epilog=examples(*wanted.examples))(found)
        found = alone
    return typer.main.get_command(found)


def _say_version(asked: bool) -> None:
    if asked:
        print(f"orchestrator {version()}")
        raise typer.Exit


def program(*, is_whole: bool = False) -> Any:
    """The command line; `is_whole` with all commands imported, as who describes it needs them."""
    app = Program(
        cls=_Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="CMA-ES search on a budget that is reserved before it is spent.",
        epilog=examples("doctor", "phase1 --tier min", "report --html"),
    )

    @app.callback()
    def before(
        asked: Annotated[
            bool,
            typer.Option(
                "--version", callback=_say_version, is_eager=True, help="Print the version."
            ),
        ] = False,
    ) -> None:
        """What stands before a command's name."""

    group: Any = typer.main.get_command(app)
    for one in COMMANDS:
        line = TyperCommand(one.name, help=one.about, rich_help_panel=one.panel)
        group.add_command(_imported(one) if is_whole else line, one.name)
    return group


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal's charset stops no run
    try:
        sys.exit(program()(standalone_mode=False, prog_name=PROGRAM) or 0)
    except (KeyboardInterrupt, Insisted) as interrupted:
        print("Interrupted.", file=sys.stderr)
        is_ours = isinstance(interrupted, Insisted)
        sys.exit(EXIT_SIGNAL + (interrupted.args[0] if is_ours else signal.SIGINT))
    except Exception as error:
        if (code := exit_code(error)) is None:
            raise
        if message := printable(in_words(error)):
            if "--json" in sys.argv:
                from orchestrator.cli.terminal import print_json

                with suppress(OSError):  # a full disk may be the error
                    print_json({"error": message, "exit_code": code})
            print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
