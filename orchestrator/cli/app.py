"""The command line: every command, imported when it is called, and the end of every error."""

import io
import os
import signal
import sys
from contextlib import suppress
from importlib import import_module
from inspect import Parameter, Signature, getdoc, signature
from typing import Any, NamedTuple

import typer
from typer.core import TyperCommand, TyperGroup

from budgets.formatting import PROGRAM, printable
from orchestrator.cli.output import EXIT_SIGNAL, Answer, exit_code, in_words, print_json, show
from orchestrator.execution import Insisted

BEFORE, RUN, LOOK, PROVE = "Before you pay", "Run", "Look", "Change and prove"
HELP = {"help_option_names": ["-h", "--help"]}


class Command(NamedTuple):
    """A command, or below a group such as `check` one of a group."""

    name: str
    place: str  # module:function in orchestrator.cli; empty for a group
    section: str
    about: str  # its line in the list of commands; its own help is the function's docstring
    examples: tuple[str, ...]
    options: str = "run runs_dir as_json"  # names of options in `options.SHARED`


MEASURES = "file objective settings runs_dir executor address device workers as_json"
CAPS = "max_evals max_device_hours max_hours max_cost window"
SEARCHES = (
    "file tier run_id seed follows variant objective preset settings runs_dir "
    f"{CAPS} executor address device workers assume_eval_seconds override reason as_json"
)

COMMANDS = (
    Command("doctor", "plan:doctor", BEFORE, "Check that what a run needs is here.",
            ("doctor", "doctor search.toml"), f"tier {MEASURES}"),
    Command("init", "plan:init", BEFORE, "Write a first file: for a search or a campaign.",
            ("init --template phase1 --out search.toml",), ""),
    Command("explain", "plan:explain", BEFORE, "Every value of a file, and the knobs.",
            ("explain search.toml",), "file objective preset settings as_json"),
    Command("calibrate", "measure:calibrate", BEFORE, "Measure the baseline: time, memory, noise.",
            ("calibrate", "calibrate search.toml --again"), f"{MEASURES} override reason"),
    Command("check", "", BEFORE, "Test knobs, shorter evaluations, workers, memory.",
            ("check knobs", "check proxy")),
    Command("check knobs", "measure:knobs", BEFORE, "Whether each knob moves the score.",
            ("check knobs --set space=optimizer --knobs momentum",), MEASURES),
    Command("check proxy", "measure:proxy", BEFORE, "Whether a shorter evaluation ranks the same.",
            ("check proxy --set search.proxy=0.25",), MEASURES),
    Command("check workers", "measure:workers", BEFORE, "The best number of evaluations at once.",
            ("check workers",), MEASURES),
    Command("check memory", "measure:memory", BEFORE, "The largest micro-batch that is safe.",
            ("check memory --set micro_batch_size=4",), MEASURES),
    Command("plan", "plan:plan", BEFORE, "Cost and detectable gain of a search or campaign.",
            ("plan --fit --window 12h --assume-eval-seconds 30",
             "plan --from first --variant robust"), SEARCHES),
    Command("phase1", "run:search", RUN, "Search for better knobs; the same command resumes.",
            ("phase1 --tier target --window 12h --run-id first",
             "phase1 --tier min --objective sphere --executor local"), SEARCHES),
    Command("phase2", "run:search", RUN, "Continue after a phase 1's Go; the same resumes.",
            ("phase2 --from first --variant robust --tier target",), SEARCHES),
    Command("run", "run:search", RUN, "Run a file: a search or a campaign; the same resumes.",
            ("run search.toml", "run search.toml --seed 2 --max-hours 6"), SEARCHES),
    Command("train", "measure:train", RUN, "One training, with checkpoints; the same resumes.",
            ("train --preset quick",), "file preset settings as_json"),
    Command("export", "", RUN, "SLURM jobs, a table of evaluations, an Optuna study.",
            ("export slurm search.toml", "export table")),
    Command("export slurm", "records:slurm", RUN, "A file's runs as SLURM jobs.",
            ("export slurm campaign.toml --out jobs --write",), "file preset settings"),
    Command("export table", "records:table", RUN, "Every evaluation of a run as a row.",
            ("export table min-nanochat-s1 --json",)),
    Command("export optuna", "records:optuna", RUN, "A search as an Optuna study.",
            ("export optuna min-nanochat-s1 --out study.db",), "run runs_dir"),
    Command("status", "look:status", LOOK, "How a run stands, also while it runs.",
            ("status", "status min-nanochat-s1 --watch")),
    Command("report", "look:report", LOOK, "Results of runs: found, how sure, cost, what next.",
            ("report --html", "report min-nanochat-s1 min-nanochat-s2"),
            "runs_dir as_json"),
    Command("best", "look:best", LOOK, "The recommended configuration; as flags or a file too.",
            ("best first --as toml",)),
    Command("serve", "records:serve", LOOK, "Show runs as a page in a browser.",
            ("serve min-nanochat-s1 --port 0",), "runs_dir as_json"),
    Command("track", "records:track", LOOK, "Log a run to TensorBoard, W&B or MLflow.",
            ("track min-nanochat-s1 --to tensorboard",)),
    Command("amend", "records:amend", PROVE, "Raise or lower a run's caps, on record.",
            ('amend min-nanochat-s1 --max-hours 4 --reason "it pays"',),
            f"runs_dir {CAPS} reason as_json"),
    Command("verify", "records:verify", PROVE, "Replay a run; name the first divergence.",
            ("verify", "verify min-nanochat-s1 --salvage saved")),
)  # fmt: skip


class _Untyped:
    """A command whose `--help` shows no type beside a switch or an argument."""

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)  # type: ignore[misc]
        for param in params:
            if param.param_type_name == "argument" or param.is_flag:
                param.display_type_rich = lambda **_: None
        return params


class _Command(_Untyped, TyperCommand):
    pass


class _Group(_Untyped, TyperGroup):
    """Commands, each imported when it is called; until then it is its line of `--help`."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        name, found, rest = super().resolve_command(ctx, args)
        entry = getattr(found, "entry", None)
        return name, found if entry is None else _imported(entry), rest


def _imported(entry: Command) -> Any:
    """Return the command with its own options and those it shares with others."""
    from orchestrator.cli.options import Typed, shared  # imports pydantic

    module, _, function = entry.place.partition(":")
    run = getattr(import_module(f"orchestrator.cli.{module}"), function)
    own = signature(run).parameters

    def answered(context: typer.Context, **values: Any) -> int | None:
        typed = Typed(context)
        found = run(typed, **{name: values[name] for name in [*own][1:]})
        return show(found, as_json=typed.as_json) if isinstance(found, Answer) else found

    taken = [*map(shared, entry.options.split()), *[*own.values()][1:]]
    taken.sort(key=lambda one: one.name == "as_json")
    context, _ = signature(answered).parameters.values()
    taken = [one.replace(kind=Parameter.KEYWORD_ONLY) for one in (context, *taken)]
    answered.__signature__ = Signature(taken)  # type: ignore[attr-defined]
    alone = typer.Typer(add_completion=False)
    alone.command(
        entry.name.split()[-1], help=" ".join((getdoc(run) or "").split()),
        epilog=_examples(*entry.examples), context_settings=HELP, cls=_Command,
    )(answered)  # fmt: skip
    return typer.main.get_command(alone)


def _examples(*lines: str) -> str:
    """Return the end of a help page: command lines that can be pasted."""
    return "\n".join(("Examples:", *(f"{PROGRAM} {line}" for line in lines)))


def _say_version(asked: bool) -> None:
    if asked:
        from importlib.metadata import version

        print(f"orchestrator {version('cmaes-orchestrator')}")
        raise typer.Exit


def program(*, is_whole: bool = False) -> Any:
    """Return the command line; with `is_whole` all its commands are imported."""
    app = typer.Typer(
        cls=_Group,
        no_args_is_help=True,
        pretty_exceptions_enable=False,
        context_settings=HELP,
        help="CMA-ES search on a budget that is reserved before it is spent.",
        epilog=_examples("doctor", "phase1 --tier min", "report --html"),
    )
    about = "Print the version."

    @app.callback()
    def before(
        asked: bool = typer.Option(False, "--version", callback=_say_version, help=about),
    ) -> None:
        """Options before a command's name."""

    whole: Any = typer.main.get_command(app)
    for entry in COMMANDS:
        *above, name = entry.name.split()
        group = whole.commands[above[0]] if above else whole
        if not entry.place:
            command: Any = _Group(
                name=name, help=entry.about, rich_help_panel=entry.section, no_args_is_help=True,
                epilog=_examples(*entry.examples), context_settings=HELP,
            )  # fmt: skip
        elif is_whole:
            command = _imported(entry)
        else:
            command = TyperCommand(name, help=entry.about, rich_help_panel=entry.section)
            command.entry = entry
        group.add_command(command, name)
    return whole


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - it may be closed
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
                with suppress(OSError):  # a full disk may be the error
                    print_json({"error": message, "exit_code": code})
            print(f"error: {message}", file=sys.stderr)
        sys.exit(code)
