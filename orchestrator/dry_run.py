"""What one evaluation would start, found out without starting it."""

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from budgets.formatting import counted, shell_word
from objectives.api import CommandLine, Context, Objective, SetupError
from objectives.environment import shown
from objectives.program import ProgramObjective
from objectives.registry import kind
from objectives.secrets import redacted
from objectives.settings import unknown
from objectives.space import SearchSpace
from orchestrator.execution.devices import Offer, local_offer, visible_gpus
from orchestrator.execution.trainer import environment_on
from orchestrator.plan.known import value_of
from orchestrator.plan.times import BUDGET

OPTION = "--knobs"

DIRECTORY, ATTEMPT = "{evaluation directory}", "{attempt id}"
"""Stand for what each evaluation has of its own."""


def dry_run(
    objective: Objective, given: Mapping[str, float], seed: int, context: Context
) -> dict[str, Any]:
    """An evaluation with these knobs, the others at the baseline, as a JSON document.

    `missing` is why it cannot start, or None. Secrets are left out. Raises SetupError where the
    objective cannot tell what it would start.
    """
    space, settings = objective.space, objective.spec.settings
    knobs = {**space.decode(space.baseline), **given}
    here = dict(os.environ)
    with _environment_of(context):
        line = objective.command_line(knobs, seed, context)
        program = None if line is None else _program(line, here)
    reading, missing = None, None
    if isinstance(objective, ProgramObjective):
        reading = objective.reading or None
        try:
            objective.require_program()
        except SetupError as error:
            missing = str(error)
    return {
        "objective": kind(objective.spec),
        "knobs": [
            {"name": name, "value": value, "source": OPTION if name in given else "baseline"}
            for name, value in space.rounded(knobs).items()
        ],
        "arguments": objective.arguments(knobs),
        "seed": seed,
        "budget": {
            name: settings[name]
            for name in ("budget", *sorted(BUDGET))
            if settings.get(name) is not None
        },
        "device": context.device,
        "threads": context.threads,
        "program": program,
        "score": reading,
        "missing": missing,
    }


def _program(line: CommandLine, here: Mapping[str, str]) -> dict[str, Any]:
    argv = [redacted(argument, os.environ) for argument in line.argv]
    return {
        "argv": argv,
        "shell": " ".join(map(shell_word, argv)),
        "directory": str(line.directory),
        "environment": {
            name: value.encode(errors="surrogateescape").decode(errors="replace")  # JSON is UTF-8
            for name, value in shown(line.environment).items()
        },
        "ours": [name for name, value in line.environment.items() if here.get(name) != value],
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


def imagined(root: Path, device: str, threads: int | None, offer: Offer | None = None) -> Context:
    """Where an evaluation would run, also where there is no such device."""
    offer = local_offer() if offer is None else offer
    kind = ("cuda" if offer.gpus else "cpu") if device == "auto" else device
    if threads is None:
        threads = offer.slots("cuda").threads if kind == "cuda" and offer.gpus else 1
    return Context((root / DIRECTORY).absolute(), kind, threads, lambda _: None, ATTEMPT)


def knobs_given(text: str | None, space: SearchSpace) -> dict[str, float]:
    """The values of `lr=0.003,depth=4`. Raises ValueError, naming the knob."""
    knobs = {knob.name: knob for knob in space.knobs}
    values: dict[str, float] = {}
    for part in [] if text is None else text.split(","):
        name, equals, value = (word.strip() for word in part.partition("="))
        if not equals or not name:
            raise ValueError(f"{OPTION}: expected NAME=VALUE,NAME=VALUE, got {text!r}")
        if name not in knobs:
            raise ValueError(f"{OPTION}: {unknown('knob', name, knobs)}")
        if name in values:
            raise ValueError(f"{OPTION}: {name} is given twice")
        try:
            values[name] = value_of(knobs[name], float(value))
        except ValueError as error:
            raise ValueError(f"{OPTION}: {part.strip()}: {error}") from error
    return values


def to_lines(found: Mapping[str, Any]) -> Iterator[str]:
    """The document of `dry_run` for a person."""
    yield f"Nothing was started. One evaluation of {found['objective']} would have"
    yield ""
    width = max((len(knob["name"]) for knob in found["knobs"]), default=0)
    for knob in found["knobs"]:
        yield f"  {knob['name']:{width}}  {knob['value']!r:<24} {knob['source']}"
    yield f"  seed {found['seed']}, on {found['device']}, {counted(found['threads'], 'thread')}"
    for name, value in found["budget"].items():
        yield f"  {name} {f'{value:g}' if isinstance(value, float) else value}"
    if found["arguments"]:
        yield f"  as arguments: {' '.join(map(shell_word, found['arguments']))}"
    yield ""
    program = found["program"]
    if program is None:
        yield "No subprocess: it is called in the evaluation's own process."
    else:
        yield f"command    {program['shell']}"
        yield f"directory  {shell_word(program['directory'])}"
        yield ""
        yield "environment (+: set for it; the others are as they are here)"
        for name, value in program["environment"].items():
            yield f"  {'+' if name in program['ours'] else ' '} {name}={shell_word(value)}"
    if found["score"]:
        yield ""
        yield f"The score, lower is better: {found['score']}"
    if found["missing"]:
        yield ""
        yield f"It cannot start: {found['missing']}."
