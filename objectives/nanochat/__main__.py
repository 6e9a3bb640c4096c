"""`python -m objectives.nanochat train`: a training run with checkpoints, outside any search.

Settings come from defaults, then a preset, a profile, the table `[training]` of a file, `--set`.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from objectives.api import ObjectiveError, SetupError, missing_package
from objectives.files import read_toml
from objectives.nanochat import flops
from objectives.nanochat.config import LENGTHS, PRESETS, PROFILES, Named, NanochatConfig, RunConfig
from objectives.nanochat.data import load
from objectives.settings import parse, unknown

EXIT_FAILED, EXIT_BAD_INPUT, EXIT_INTERRUPTED = 1, 2, 130
TABLE = "training"
SETTINGS = (*NanochatConfig.model_fields, *RunConfig.model_fields)


def arguments() -> argparse.ArgumentParser:
    """The command line."""
    parser = argparse.ArgumentParser("python -m objectives.nanochat", description=__doc__)
    train = parser.add_subparsers(dest="command", required=True).add_parser(
        "train",
        help="train, evaluate, save; the same command resumes",
        epilog="example: python -m objectives.nanochat train --preset quick",
    )
    train.add_argument("--config", type=Path, metavar="FILE", help="TOML: preset, [training]")
    train.add_argument("--preset", metavar="NAME", help=f"one of {', '.join(PRESETS)}")
    train.add_argument("--profile", metavar="NAME", help=f"one of {', '.join(PROFILES)}")
    train.add_argument("--set", metavar="KEY=VALUE", action="append", default=[], help="a setting")
    train.add_argument(
        "--dry-run", action="store_true", help="print settings, steps and FLOPs as JSON"
    )
    return parser


def resolve(
    file: Path | None, preset: str | None, profile: str | None, assignments: Sequence[str]
) -> tuple[NanochatConfig, RunConfig]:
    """Default < preset < profile < file < `assignments` of the form KEY=VALUE.

    Raises ValueError, in one line, on an unknown name, a wrong value or an unreadable file.
    """
    document = {} if file is None else _document(file)
    values: dict[str, Any] = {}
    for source, settings in (
        ("preset", _named("preset", preset or document.get("preset"), PRESETS)),
        ("profile", _named("profile", profile or document.get("profile"), PROFILES)),
        (f"file {file}", document.get(TABLE, {})),
        ("--set", dict(map(_assigned, assignments))),
    ):
        for name in settings:
            if name not in SETTINGS:
                raise unknown(f"training setting ({source})", name, SETTINGS)
        values |= settings
    trained, carried_out = (
        {name: value for name, value in values.items() if name in model.model_fields}
        for model in (NanochatConfig, RunConfig)
    )
    return parse(NanochatConfig, trained, TABLE), parse(RunConfig, carried_out, TABLE)


def _named(kind: str, name: str | None, known: Named) -> Mapping[str, Any]:
    if name is not None and name not in known:
        raise unknown(kind, name, known)
    return known[name] if name else {}


def _document(path: Path) -> dict[str, Any]:
    """The TOML file at `path`, its top level checked. Raises ValueError."""
    document = read_toml(path, f"--config {path}")
    expected = {"preset": str, "profile": str, TABLE: dict}
    for name, value in document.items():
        if name in SETTINGS:
            raise ValueError(f"--config {path}: {name} belongs below a line [{TABLE}]")
        if name not in expected:
            raise unknown(f"key in {path}", name, expected)
        if not isinstance(value, expected[name]):
            kind = "a table" if name == TABLE else "a name in quotes"
            raise ValueError(f"--config {path}: {name}: expected {kind}, got {value!r}")
    return document


def _assigned(assignment: str) -> tuple[str, Any]:
    """Name and value of "KEY=VALUE"; a value that is not JSON is text."""
    key, equals, text = assignment.partition("=")
    if not equals or not key:
        raise ValueError(f"--set: expected KEY=VALUE, got {assignment!r}")
    try:
        value = json.loads(text)
    except ValueError:
        value = text
    return key.strip().removeprefix(f"{TABLE}."), value


def plan_document(config: NanochatConfig, run: RunConfig) -> dict[str, Any]:
    """All settings, and what the run amounts to. Raises SetupError where the text is not there."""
    plan = flops.plan(config, len(load(config.data, config.tokenizer).train))
    checkpoint = flops.checkpoint_bytes(config, plan.steps)
    return {
        "settings": config.model_dump(mode="json") | run.model_dump(mode="json"),
        "decided_by": plan.paid_by,
        "steps": plan.steps,
        "tokens": plan.steps * config.tokens_per_step,
        "train_flops": plan.train_flops,
        "flops_per_token": {name: asdict(part) for name, part in flops.parts(config).items()},
        "parameters": flops.parameters(config),
        "checkpoint_bytes": checkpoint,
        "disk_bytes": checkpoint * (run.most_kept + 1),
    }


def _warnings(config: NanochatConfig) -> Iterator[str]:
    first, *others = (name for name in LENGTHS if getattr(config, name) is not None)
    for name in others:
        yield f"Warning: {name} is not used: {first} decides how long to train."


def _train(config: NanochatConfig, run: RunConfig) -> int:
    from objectives.nanochat.run import Stop, StoppedError, TrainingRun  # imports torch

    try:
        with Stop() as stop:
            summary = TrainingRun(config, run, lambda line: print(line, flush=True), stop).train()
    except StoppedError as stopped:
        print("Stopped. Repeat the command to resume.", file=sys.stderr)
        return stopped.exit_code
    print(f"{summary['bpb']:.5f} bits per byte after {summary['steps']:,} steps")
    if summary["best"] and summary["best"]["bpb"] < summary["bpb"]:
        print("best: {bpb:.5f} at step {step}, in {name}".format(**summary["best"]))
    for flag in ("unstable", "exploding"):
        if summary["health"][flag]:
            print(f"Warning: the training was {flag}; see health in summary.json.")
    print(f"Files: {run.checkpoint_dir}")
    return 0


def main(argv: Sequence[str] | None = None) -> int:
    """The exit code: 0, 1 for a failed training, 2 for bad input, 128 and a signal's number."""
    options = arguments().parse_args(argv)
    try:
        config, run = resolve(options.config, options.preset, options.profile, options.set)
        for warning in _warnings(config):
            print(warning, file=sys.stderr)
        if options.dry_run:
            print(json.dumps(plan_document(config, run), indent=2))
            return 0
        return _train(config, run)
    except (ValueError, SetupError) as error:
        message, code = str(error), EXIT_BAD_INPUT
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        message, code = missing_package(error.name), EXIT_BAD_INPUT
    except (ObjectiveError, OSError) as error:
        message, code = str(error), EXIT_FAILED
    except KeyboardInterrupt:
        message, code = "interrupted before anything was trained", EXIT_INTERRUPTED
    print(f"error: {message}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
