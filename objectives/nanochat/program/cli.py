"""The command line of the training core: parse, call, print, exit code."""

import io
import json
import signal
import sys
from collections.abc import Iterable
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer
from rich.console import Console
from typer import Option

from objectives.api import ObjectiveError, SetupError, missing_package
from objectives.commands import Program, examples
from objectives.nanochat.program import count as flop_count
from objectives.nanochat.program import explain as explanation
from objectives.nanochat.program.options import Asked, Resolved, resolve
from objectives.nanochat.program.presets import PRESETS, PROFILES
from objectives.nanochat.program.stop import EXIT_SIGNAL, Stop, StoppedError

EXIT_FAILED, EXIT_BAD_INPUT = 1, 2

_ParserError: Any = typer.BadParameter.__mro__[1]
"""What the parser raises on a command line it does not understand; typer exports subclasses."""


_examples = partial(examples, "python -m objectives.nanochat")

app = Program(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    help="Train a small GPT on text, with checkpoints; default < preset < profile < file < --set.",
    epilog=_examples("check --preset quick", "train --preset quick"),
)

File = Annotated[
    Path | None,
    Option("--config", metavar="FILE", help="TOML: preset, profile, and a table of settings."),
]
Preset = Annotated[
    str | None, Option("--preset", metavar="NAME", help=f"One of {', '.join(PRESETS)}.")
]
Profile = Annotated[
    str | None, Option("--profile", metavar="NAME", help=f"One of {', '.join(PROFILES)}.")
]
Settings = Annotated[
    list[str] | None, Option("--set", metavar="KEY=VALUE", help="A setting; see explain.")
]
Json = Annotated[bool, Option("--json", help="Print one JSON document instead of text.")]


@app.command(epilog=_examples("train --preset quick", "train --set matrix_lr=0.01"))
def train(
    config: File = None,
    preset: Preset = None,
    profile: Profile = None,
    settings: Settings = None,
    dry_run: Annotated[bool, Option("--dry-run", help="Explain, and train nothing.")] = False,
) -> None:
    """Train, evaluate, save; the same command resumes.

    Writes checkpoints and summary.json into checkpoint_dir.
    """
    resolved = _resolved(config, preset, profile, settings)
    if dry_run:
        _print(explanation.as_text(resolved))
        return
    with Stop() as stop:
        from objectives.nanochat.program.session import Session  # imports torch

        console = Console(markup=False, emoji=False, highlight=False)
        summary = Session(resolved, console, stop).train()
    _print(_result(resolved, summary))


@app.command(epilog=_examples("check --preset quick"))
def check(
    config: File = None,
    preset: Preset = None,
    profile: Profile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Try everything a run needs, without training it; how long it will take. Writes nothing."""
    resolved = _resolved(config, preset, profile, settings)
    from objectives.nanochat.program.checks import Check  # imports torch

    found = Check(resolved)
    ready = found.run()
    if as_json:
        findings = [asdict(finding) for finding in found.findings]
        _print_json({"ready": ready, "findings": findings, "measured": found.measured})
    else:
        _print(f"{f.state:8} {f.subject:14} {f.text}" for f in found.findings)
    if not ready:
        raise typer.Exit(EXIT_BAD_INPUT)


@app.command(epilog=_examples("flops --preset quick"))
def flops(  # noqa: PLR0913, PLR0917 - a command has as many parameters as options
    config: File = None,
    preset: Preset = None,
    profile: Profile = None,
    settings: Settings = None,
    count: Annotated[
        bool, Option("--count", help="Compare with torch's count on a real micro-batch.")
    ] = False,
    as_json: Json = False,
) -> None:
    """FLOPs per token by part, of a step, of the run and of its evaluations."""
    found = flop_count.document(_resolved(config, preset, profile, settings), count)
    if as_json:
        _print_json(found)
    else:
        _print(flop_count.as_text(found))


@app.command(epilog=_examples("explain --preset quick"))
def explain(
    config: File = None,
    preset: Preset = None,
    profile: Profile = None,
    settings: Settings = None,
    as_json: Json = False,
) -> None:
    """Every setting with its value and where it comes from, and what the run amounts to."""
    resolved = _resolved(config, preset, profile, settings)
    if as_json:
        _print_json(explanation.explained(resolved))
    else:
        _print(explanation.as_text(resolved))


def _resolved(
    config: Path | None, preset: str | None, profile: str | None, settings: list[str] | None
) -> Resolved:
    return resolve(Asked(config, preset, profile, settings or ()))


def _result(resolved: Resolved, summary: dict[str, Any]) -> Iterable[str]:
    """A finished run in a few lines."""
    best, spent = summary["best"], summary["wall_seconds"]
    yield f"{summary['bpb']:.5f} bits per byte after {summary['steps']:,} steps"
    if best and best["bpb"] < summary["bpb"]:
        yield f"best: {best['bpb']:.5f} at step {best['step']}, in {best['name']}"
    yield (
        f"{spent['train']:.1f} s of training, {summary['tokens_per_second']:,.0f} tokens/s; "
        f"{summary['train_flops']:.4g} FLOPs, {summary['eval_flops']:.4g} for evaluations besides"
    )
    for flag in ("unstable", "exploding"):
        if summary["health"][flag]:
            yield f"Warning: the training was {flag}; see health in summary.json."
    yield f"Files: {resolved.program.checkpoint_dir}"


def _print(lines: Iterable[str]) -> None:
    for line in lines:
        typer.echo(line)


def _print_json(content: Any) -> None:
    typer.echo(json.dumps(content, indent=2))


def main() -> None:
    """The entry point: one clear line for every error, and its exit code."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal's charset stops no run
    try:
        sys.exit(app(standalone_mode=False) or 0)
    except _ParserError as error:
        if type(error).__name__ != "NoArgsIsHelpError":  # that has shown the help
            message = " ".join(error.format_message().split()).rstrip(".")
            _leave(f"{message}. See: python -m objectives.nanochat --help", EXIT_BAD_INPUT)
        sys.exit(EXIT_BAD_INPUT)
    except StoppedError as stopped:
        typer.echo("Stopped. Repeat the command to go on.", err=True)
        sys.exit(stopped.exit_code)
    except (ValueError, SetupError) as error:
        _leave(str(error), EXIT_BAD_INPUT)
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        _leave(missing_package(error.name), EXIT_BAD_INPUT)
    except (ObjectiveError, OSError) as error:
        _leave(str(error), EXIT_FAILED)
    except KeyboardInterrupt:
        typer.echo("Interrupted.", err=True)
        sys.exit(EXIT_SIGNAL + signal.SIGINT)


def _leave(message: str, code: int) -> NoReturn:
    typer.echo(f"error: {message}", err=True)
    if "--json" in sys.argv:
        _print_json({"error": message, "exit_code": code})
    sys.exit(code)
