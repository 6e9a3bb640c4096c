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
"""Stand for what each evaluation has of its own."""


def start_of(config: Config, offer: Offer | None = None) -> dict[str, Any]:
    """As a JSON document, without secrets; `missing` is why it cannot start, or None."""
    objective, settings, here = config.tuned, config.tuned.spec.settings, dict(os.environ)
    knobs = objective.space.decode(objective.space.baseline)
    context, line, missing, reading = _context(config, offer), None, None, None
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
        "program": None if line is None else _program(line, here),
        "score": reading,
        "missing": missing,
    }


def _program(line: CommandLine, here: Mapping[str, str]) -> dict[str, Any]:
    argv = [redacted(argument, os.environ) for argument in line.argv]
    return {
        "argv": argv,
        "shell": " ".join(map(shell_word, argv)),
        "directory": str(line.directory),
        "environment": {  # what is set for it; the rest is as it is here
            name: value.encode(errors="surrogateescape").decode(errors="replace")  # JSON is UTF-8
            for name, value in shown(line.environment).items()
            if here.get(name) != line.environment[name]
        },
    }


@contextmanager
def _environment_of(context: Context) -> Iterator[None]:
    """Within the block this process has the environment that an evaluation's has."""
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
    """Where an evaluation would run, also where there is no such device."""
    backend, offer = config.backend, local_offer() if offer is None else offer
    kind = backend.device
    if kind == "auto":
        kind = "cuda" if offer.gpus else "cpu"
    threads = backend.threads
    if threads is None:
        threads = offer.slots("cuda").threads if kind == "cuda" and offer.gpus else 1
    place = (Path(config.runs_dir) / DIRECTORY).absolute()
    return Context(place, kind, threads, lambda _: None, ATTEMPT)


def to_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The document for a person, as Markdown."""
    yield "# One evaluation"
    yield ""
    budget = "".join(f", {name} {value:g}" for name, value in found["budget"].items())
    yield f"- On {found['device']}, {counted(found['threads'], 'thread')}{budget}."
    if program := found["program"]:
        yield f"- It starts: {plain(program['shell'])}"
        yield f"- In: {plain(shell_word(program['directory']))}"
        variables = (
            f"{name}={shell_word(value)}" for name, value in program["environment"].items()
        )
        yield f"- Set for it: {plain(' '.join(variables))}"
    else:
        yield "- It starts no program: it is called in the evaluation's own process."
        if found["arguments"]:
            yield f"- As arguments: {plain(' '.join(map(shell_word, found['arguments'])))}"
    if found["score"]:
        yield f"- The score, lower is better: {plain(found['score'])}"
    if found["missing"]:
        yield f"- **It cannot start:** {plain(found['missing'])}."
