"""What one evaluation of the baseline would start, found out without starting it."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from budgets.formatting import counted, plain, shell_word
from objectives.api import CommandLine, Context, SetupError
from objectives.environment import shown
from objectives.program import ProgramObjective
from objectives.secrets import redacted
from orchestrator.config import Config
from orchestrator.execution.engine import Offer, local_offer, visible_gpus
from orchestrator.execution.trainer import environment_on


def start_of(config: Config, offer: Offer | None = None) -> dict[str, Any]:
    """Return a JSON document without secrets; `missing` is why it cannot start, or None.

    The device is the one that a run would use, even if this machine has none.
    """
    objective, backend, offer = config.tuned, config.backend, offer or local_offer()
    kind = backend.device if backend.device != "auto" else "cuda" if offer.gpus else "cpu"
    own = offer.slots("cuda").threads if kind == "cuda" and offer.gpus else 1
    threads = own if backend.threads is None else backend.threads
    place = (Path(config.runs_dir) / "{evaluation directory}").absolute()
    context = Context(place, kind, threads, lambda _: None, "{attempt id}")
    knobs = objective.space.decode(objective.space.baseline)
    found: dict[str, Any] = {
        "device": kind,
        "threads": threads,
        "program": None,
        "score": None,
        "missing": None,
    }
    outside = dict(os.environ)
    try:
        os.environ |= environment_on(
            next(iter(visible_gpus()), "0") if kind == "cuda" else None, threads
        )
        line = objective.command_line(knobs, config.evaluation.seed, context)
    except SetupError as error:
        return found | {"missing": str(error)}
    finally:
        os.environ.clear()
        os.environ.update(outside)
    try:
        if isinstance(objective, ProgramObjective):
            found["score"] = objective.reading or None
            objective.require_program()
    except SetupError as error:
        found["missing"] = str(error)
    return found | {"program": None if line is None else _program(line, outside)}


def _program(line: CommandLine, outside: Mapping[str, str]) -> dict[str, Any]:
    """Return the command, with the variables that differ from those `outside`."""
    argv = [redacted(argument, os.environ) for argument in line.argv]
    differ = {
        n: v for n, v in shown(line.environment).items() if outside.get(n) != line.environment[n]
    }
    return {
        "argv": argv,
        "shell": " ".join(map(shell_word, argv)),
        "directory": str(line.directory),
        "environment": {  # JSON is UTF-8
            n: v.encode(errors="surrogateescape").decode(errors="replace")
            for n, v in differ.items()
        },
    }


def to_lines(start: Mapping[str, Any]) -> Iterator[str]:
    """Yield the document as Markdown."""
    yield from ("# One evaluation", "")
    yield f"- On {start['device']}, {counted(start['threads'], 'thread')}."
    if program := start["program"]:
        yield f"- It starts: {plain(program['shell'])}"
        yield f"- In: {plain(shell_word(program['directory']))}"
        variables = program["environment"].items()
        words = (f"{name}={shell_word(value)}" for name, value in variables)
        yield f"- Set for it: {plain(' '.join(words))}"
    else:
        yield "- It starts no program: it is called in the evaluation's own process."
    if start["score"]:
        yield f"- The score: {plain(start['score'])}"
    if start["missing"]:
        yield f"- **It cannot start:** {plain(start['missing'])}."
