"""`train`: one training of the built-in model, with checkpoints, outside any search."""

import sys
from collections.abc import Iterator
from typing import Annotated, Any

import typer
from typer import Context, Option

from objectives import registry
from objectives.api import ObjectiveError, SetupError, missing_package
from objectives.nanochat import flops
from objectives.nanochat.config import LENGTHS, NanochatConfig, RunConfig
from objectives.nanochat.data import load
from objectives.settings import parse
from orchestrator.cli.errors import EXIT_SIGNAL
from orchestrator.cli.options import Json, resolved
from orchestrator.cli.terminal import print_json, print_line
from orchestrator.config import Config
from orchestrator.execution.signals import SignalStop, at_once, insisted_on

EXIT_FAILED = 1


def train(
    context: Context,
    dry_run: Annotated[
        bool, Option("--dry-run", help="Print settings, steps, FLOPs and disk as JSON.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Train the built-in model once, evaluate it and save it; the same command resumes.

    Writes checkpoints, metrics.jsonl and summary.json to the directory checkpoint_dir.
    """
    config, run = _settings(resolved(context))
    for warning in _warnings(config):
        print(warning, file=sys.stderr)
    if dry_run:
        print_json(_planned(config, run))
        return
    try:
        from objectives.nanochat import run as training  # imports torch
    except ModuleNotFoundError as error:
        raise SetupError(missing_package(error.name)) from error
    stop = SignalStop(announce=lambda _: at_once("Saving a checkpoint."))

    def check() -> None:
        if stop.requested:
            raise training.StoppedError

    def say(line: str) -> None:
        print(line, file=sys.stderr if as_json else sys.stdout, flush=True)

    stop.install()
    try:
        with insisted_on([]):
            summary = training.train(config, run, say, check)
    except training.StoppedError:
        print("Stopped. Repeat the command to resume.", file=sys.stderr)
        raise typer.Exit(EXIT_SIGNAL + stop.signum) from None
    except SetupError:
        raise
    except ObjectiveError as error:
        print(f"error: {error}", file=sys.stderr)
        raise typer.Exit(EXIT_FAILED) from error
    if as_json:
        print_json(summary)
        return
    print_line(f"{summary['bpb']:.5f} bits per byte after {summary['steps']:,} steps")
    if summary["best"] and summary["best"]["bpb"] < summary["bpb"]:
        print_line("best: {bpb:.5f} at step {step}, in {name}".format(**summary["best"]))
    for flag in ("unstable", "exploding"):
        if summary["health"][flag]:
            print_line(f"Warning: the training was {flag}; see health in summary.json.")
    print_line(f"Files: {run.checkpoint_dir}")


def _settings(config: Config) -> tuple[NanochatConfig, RunConfig]:
    """Return the settings of the built-in model. Raises ValueError on any other objective."""
    if registry.kind(config.tuned.spec) != "nanochat":
        raise ValueError(
            f"train: expected the built-in objective nanochat, got {config.objective}: a program "
            "of your own trains by itself"
        )
    return (
        NanochatConfig.from_settings(config.settings),
        parse(RunConfig, config.alone, "training"),
    )


def _planned(config: NanochatConfig, run: RunConfig) -> dict[str, Any]:
    """Return all settings, and what they amount to. Raises SetupError without the text."""
    plan = flops.plan(config, len(load(config.data, config.tokenizer).train))
    size = flops.checkpoint_bytes(config, plan.steps)
    return {
        "settings": config.model_dump(mode="json") | run.model_dump(mode="json"),
        "decided_by": plan.paid_by,
        "steps": plan.steps,
        "tokens": plan.steps * config.tokens_per_step,
        "train_flops": plan.train_flops,
        "flops_per_token": flops.parts(config),
        "parameters": flops.parameters(config),
        "checkpoint_bytes": size,
        "disk_bytes": size * (run.most_kept + 1),
    }


def _warnings(config: NanochatConfig) -> Iterator[str]:
    first, *others = (name for name in LENGTHS if getattr(config, name) is not None)
    for name in others:
        yield f"Warning: {name} is not used: {first} decides how long to train."
