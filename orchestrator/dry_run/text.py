"""What one evaluation would start, for a person and as JSON."""

import json
from collections.abc import Iterator
from typing import Any

from budgets.plain import shell_word
from budgets.words import counted
from orchestrator.dry_run.start import DryRun, Started


def as_dict(run: DryRun) -> dict[str, Any]:
    """All of it as JSON; what a program's environment has that is not as it is here is `ours`."""
    program = run.program
    return {
        "objective": run.objective,
        "knobs": [
            {"name": name, "value": json.loads(value), "source": run.source(name)}
            for name, value in run.knobs.items()
        ],
        "arguments": run.arguments,
        "seed": run.seed,
        "budget": run.budget,
        "device": run.device,
        "threads": run.threads,
        "program": None if program is None else _program(program),
        "score": run.reading or None,
        "missing": run.missing or None,
    }


def _program(program: Started) -> dict[str, Any]:
    return {
        "argv": program.argv,
        "shell": shell_line(program),
        "directory": program.directory,
        "environment": program.environment,
        "ours": program.ours,
    }


def json_line(program: Started) -> str:
    """The arguments as a JSON list, in one line of ASCII."""
    return json.dumps(program.argv).replace("\x7f", r"\u007f")


def shell_line(program: Started) -> str:
    """The same for a shell to read, in one line."""
    return " ".join(map(shell_word, program.argv))


def to_lines(run: DryRun) -> Iterator[str]:
    """The same for a person."""
    yield f"Nothing was started. One evaluation of {run.objective} would have"
    yield ""
    width = max(map(len, run.knobs), default=0)
    for name, value in run.knobs.items():
        yield f"  {name:{width}}  {value:<24} {run.source(name)}"
    yield f"  seed {run.seed}, on {run.device}, {counted(run.threads, 'thread')}"
    for name, value in run.budget.items():
        yield f"  {name} {value!r}"
    if run.arguments:
        yield f"  as arguments: {' '.join(map(shell_word, run.arguments))}"
    yield ""
    if run.program is None:
        yield "It starts no program: it computes in the evaluation's own process."
    else:
        yield from _program_lines(run.program)
    if run.reading:
        yield ""
        yield f"The score, lower is better: {run.reading}"
    if run.missing:
        yield ""
        yield f"It cannot start: {run.missing}."


def _program_lines(program: Started) -> Iterator[str]:
    yield f"argv       {json_line(program)}"
    yield f"in a shell {shell_line(program)}"
    yield f"directory  {shell_word(program.directory)}"
    yield ""
    yield "Its whole environment (+ is set for it, the others are as they are here):"
    yield from (_variable(program, name) for name in program.environment)


def _variable(program: Started, name: str) -> str:
    mark = "+" if name in program.ours else " "
    return f"  {mark} {name}={shell_word(program.environment[name])}"
