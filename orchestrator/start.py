"""What one evaluation of the baseline would start, found out without starting it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from budgets.formatting import counted, plain, shell_word
from objectives.api import CommandLine, Context, SetupError
from objectives.environment import shown
from objectives.program import ProgramObjective
from objectives.secrets import redacted
from orchestrator.config import Config
from orchestrator.execution.devices import Offer, local_offer, visible_gpus
from orchestrator.execution.trainer import environment_on
from orchestrator.plan.times import BUDGET

DIRECTORY, ATTEMPT = "{evaluation directory}", "{attempt id}"
"""Placeholders for what differs between evaluations."""


def start_of(config: Config, offer: Offer | None = None) -> dict[str, Any]:
    """Return a JSON document without secrets; `missing` is why it cannot start, or None."""
    objective, settings = config.tuned, config.tuned.spec.settings
    knobs = objective.space.decode(objective.space.baseline)
    context, line, missing, reading = _context(config, offer), None, None, None
    outside = dict(os.environ)
    try:
        with _environment_of(context):
            line = objective.command_line(knobs, config.evaluation.seed, context)
        if isinstance(objective, ProgramObjective):
            reading = objective.reading or None
            objective.require_program()
    except SetupError as error:
        missing = str(error)
    names = ("budget", *sorted(BUDGET))
    return {
        "budget": {name: settings[name] for name in names if settings.get(name) is not None},
        "device": context.device,
        "threads": context.threads,
        "arguments": objective.arguments(knobs),
        "program": None if line is None else _program(line, outside),
        "score": reading,
        "missing": missing,
    }


def _program(line: CommandLine, outside: Mapping[str, str]) -> dict[str, Any]:
    """Return the command, with the variables that differ from those `outside`."""
    argv = [redacted(argument, os.environ) for argument in line.argv]
    return {
        "argv": argv,
        "shell": " ".join(map(shell_word, argv)),
        "directory": str(line.directory),
        "environment": {
            name: value.encode(errors="surrogateescape").decode(errors="replace")  # JSON is UTF-8
            for name, value in shown(line.environment).items()
            if outside.get(name) != line.environment[name]
        },
    }


@contextmanager
def _environment_of(context: Context) -> Iterator[None]:
    """Give this process the environment of an evaluation within the block."""
    gpus = [device for device, _ in visible_gpus()] or ["0"]
    gpu_id = gpus[0] if context.device == "cuda" else None
    before = dict(os.environ)
    os.environ.update(environment_on(gpu_id, context.threads))
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


def _context(config: Config, offer: Offer | None) -> Context:
    """Return where an evaluation would run, even if this machine has no such device."""
    backend, offer = config.backend, offer or local_offer()
    kind = backend.device
    if kind == "auto":
        kind = "cuda" if offer.gpus else "cpu"
    threads = backend.threads
    if threads is None:
        threads = offer.slots("cuda").threads if kind == "cuda" and offer.gpus else 1
    place = (Path(config.runs_dir) / DIRECTORY).absolute()
    return Context(place, kind, threads, lambda _: None, ATTEMPT)


def to_lines(start: Mapping[str, Any]) -> Iterator[str]:
    """Yield the document as Markdown."""
    yield from ("# One evaluation", "")
    budget = "".join(f", {name} {value:g}" for name, value in start["budget"].items())
    yield f"- On {start['device']}, {counted(start['threads'], 'thread')}{budget}."
    if program := start["program"]:
        yield f"- It starts: {plain(program['shell'])}"
        yield f"- In: {plain(shell_word(program['directory']))}"
        variables = program["environment"].items()
        words = (f"{name}={shell_word(value)}" for name, value in variables)
        yield f"- Set for it: {plain(' '.join(words))}"
    else:
        yield "- It starts no program: it is called in the evaluation's own process."
        if start["arguments"]:
            yield f"- As arguments: {plain(' '.join(map(shell_word, start['arguments'])))}"
    if start["score"]:
        yield f"- The score: {plain(start['score'])}"
    if start["missing"]:
        yield f"- **It cannot start:** {plain(start['missing'])}."
