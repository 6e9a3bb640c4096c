"""The command line: find the command, call it, say what went wrong, leave with an exit code.

A command's module is imported when it is called: `--help` and completion need its line here only.
"""

import io
import signal
import sys
from contextlib import suppress
from importlib import import_module
from inspect import getdoc
from typing import Annotated, Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from budgets.formatting import PROGRAM, printable
from orchestrator.cli.errors import EXIT_SIGNAL, exit_code, in_words
from orchestrator.execution.signals import Insisted
from orchestrator.version import version

SEARCH = "search"
BEFORE, RUN, LOOK, PROVE = "Before you pay", "Run", "Look", "Change and prove"


class Command(NamedTuple):
    """A command; below a group's name, such as `check`, it is one of a group."""

    name: str
    place: str  # below orchestrator.cli: module:function; of a group nothing
    panel: str
    about: str  # in a line; its own help says more
    examples: tuple[str, ...] = ()


COMMANDS = (
    Command("doctor", "set_up:doctor", BEFORE, "Whether all that a run needs is here.",
            ("doctor", "doctor search.toml --quick")),
    Command("init", "set_up:init", BEFORE, "A file to begin with: search, campaign, own program.",
            ("init --template phase1", "init --template phase1 --out search.toml")),
    Command("explain", "set_up:explain", BEFORE, "Every value of a file, the knobs, what starts.",
            ("explain", "explain search.toml")),
    Command("calibrate", "run:calibrate", BEFORE, "Measure the baseline: time, memory, noise.",
            ("calibrate", 'calibrate --again --reason "another driver"')),
    Command("check", "", BEFORE, "What to search, how short, on how many workers.",
            ("check knobs", "check proxy")),
    Command("check knobs", "check:knobs", BEFORE, "Whether each knob moves the score.",
            ("check knobs", "check knobs --set space=optimizer --knobs momentum")),
    Command("check proxy", "check:proxy", BEFORE, "Whether a shorter evaluation ranks the same.",
            ("check proxy --fraction 0.25", "check proxy --candidates 12")),
    Command("check workers", "check:workers", BEFORE, "How many evaluations at once pay off.",
            ("check workers",)),
    Command("check memory", "check:memory", BEFORE, "The largest micro-batch that is safe.",
            ("check memory --set micro_batch_size=4",)),
    Command("plan", "plan:plan", BEFORE, "What a search or a campaign would cost, and tell.",
            ("plan --tier target", "plan --fit --window 12h --assume-eval-seconds 30",
             "plan --from first --variant robust")),
    Command("phase1", f"run:{SEARCH}", RUN, "Search for better knobs; the same command resumes.",
            ("phase1 --tier min", "phase1 --tier target --window 12h --run-id first",
             "phase1 --tier min --objective sphere --executor local")),
    Command("phase2", f"run:{SEARCH}", RUN, "Search on from a phase 1's Go; the same resumes.",
            ("phase2 --from first --variant robust --tier target",
             "phase2 --from first --variant expanded --tier min")),
    Command("run", f"run:{SEARCH}", RUN, "Run what a file describes; the same command resumes.",
            ("run search.toml", "run search.toml --seed 2 --max-hours 6")),
    Command("train", "train:train", RUN, "One training, with checkpoints; the same resumes.",
            ("train --preset quick", "train search.toml --set num_batches=2000")),
    Command("export", "", RUN, "For other programs: SLURM, a table, Optuna.",
            ("export slurm search.toml", "export table --out scores.csv")),
    Command("export slurm", "records:slurm", RUN, "A file's runs as SLURM jobs.",
            ("export slurm search.toml", "export slurm campaign.toml --out jobs --write")),
    Command("export table", "records:table", RUN, "Every evaluation of a run as a row.",
            ("export table", "export table min-nanochat-s1 --format json")),
    Command("export optuna", "records:optuna", RUN, "A search as an Optuna study.",
            ("export optuna min-nanochat-s1 --out study.db",)),
    Command("status", "see:status", LOOK, "How a run stands, also while it runs.",
            ("status", "status min-nanochat-s1 --watch")),
    Command("report", "see:report", LOOK, "What runs came to: found, how sure, cost, what next.",
            ("report", "report min-nanochat-s1 --plot scores",
             "report min-nanochat-s1 min-nanochat-s2 --html")),
    Command("best", "best:best", LOOK, "The recommended configuration, in every form.",
            ("best first", "best first --toml")),
    Command("serve", "share:serve", LOOK, "Show runs as a page in a browser.",
            ("serve", "serve min-nanochat-s1 --port 0")),
    Command("track", "share:track", LOOK, "Send a run to experiment trackers.",
            ("track min-nanochat-s1 --to tensorboard",)),
    Command("amend", "records:amend", PROVE, "Raise or lower a run's caps, on record.",
            ('amend min-nanochat-s1 --max-hours 4 --reason "it pays"',)),
    Command("verify", "records:verify", PROVE, "Replay a run; name the first divergence.",
            ("verify", "verify min-nanochat-s1", "verify min-nanochat-s1 --salvage saved")),
)  # fmt: skip


def _typed(params: list[Any]) -> list[Any]:
    """Beside a switch or an argument `--help` shows no type."""
    for own in params:
        if own.param_type_name == "argument" or own.is_flag:
            own.display_type_rich = lambda **_: None
    return params


class _Command(TyperCommand):
    def get_params(self, ctx: Any) -> Any:
        return _typed(super().get_params(ctx))


class _Commands(TyperGroup):
    """Those below it are lines of COMMANDS, until one is called."""

    def get_params(self, ctx: Any) -> Any:
        return _typed(super().get_params(ctx))

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        return name, _imported(found) if isinstance(found, _Line) else found, rest


class _Line(TyperCommand):
    """What `--help` says of a command, which is not imported yet."""

    def __init__(self, own: Command) -> None:
        super().__init__(own.name.split()[-1], help=own.about, rich_help_panel=own.panel)
        self.own = own


def _imported(line: _Line) -> Any:
    module, _, function = line.own.place.partition(":")
    found = getattr(import_module(f"orchestrator.cli.{module}"), function)
    told = getdoc(found) or ""
    if function == SEARCH:  # of three commands
        told = line.own.about + told[told.index("\n") :]
    alone = typer.Typer(add_completion=False)
    alone.command(
        line.name, cls=_Command, help=told,
        epilog=_examples(*line.own.examples),
    )(found)  # fmt: skip
    return typer.main.get_command(alone)


def _examples(*lines: str) -> str:
    """What `--help` ends with: each is a command line, to be pasted."""
    return "\n".join(("Examples:", *(f"{PROGRAM} {line}" for line in lines)))


def _say_version(asked: bool) -> None:
    if asked:
        print(f"orchestrator {version()}")
        raise typer.Exit


def program(*, is_whole: bool = False) -> Any:
    """The command line; `is_whole` with all commands imported, as who describes it needs them."""
    app = typer.Typer(
        cls=_Commands,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        help="CMA-ES search on a budget that is reserved before it is spent.",
        epilog=_examples("doctor", "phase1 --tier min", "report --html"),
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

    whole: Any = typer.main.get_command(app)
    for own in COMMANDS:
        *above, name = own.name.split()
        group = whole.commands[above[0]] if above else whole
        line: Any = _Line(own)
        if not own.place:
            line = _Commands(
                name=name, help=own.about, rich_help_panel=own.panel, no_args_is_help=True,
                epilog=_examples(*own.examples),
            )  # fmt: skip
        elif is_whole:
            line = _imported(line)
        group.add_command(line, name)
    return whole


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
