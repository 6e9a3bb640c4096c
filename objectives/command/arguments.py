"""What a program gets: its arguments, its environment, its file of knobs."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path

from objectives.api import CommandLine, Context, Knobs
from objectives.command.config import KNOBS, KNOBS_FILE, CommandConfig, Scalar, variable
from objectives.command.template import filled, placeholders
from objectives.programs.environment import MARK, cleaned
from objectives.programs.knobs import as_given, as_text, space_of

OUTPUT = "output"
"""The program's own directory in the evaluation's: it may empty it, as scripts do."""

_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def command_line(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> CommandLine:
    """The program as an evaluation starts it. Raises ValueError unless the knobs are its own."""
    values = _values(config, knobs, seed, context)
    texts = {name: _text(value) for name, value in values.items()}
    sent = {name: texts[key] for key, name in config.sent.items()}
    variables = dict.fromkeys(_THREADS, texts["threads"])
    if context.device == "cpu":
        variables["CUDA_VISIBLE_DEVICES"] = ""
    if context.attempt_id:
        variables[MARK] = context.attempt_id
    if config.sending == "json":
        variables[KNOBS_FILE.upper()] = texts[KNOBS_FILE]
    if config.sending == "environment":
        variables |= {variable(name): text for name, text in sent.items()}
    variables |= {name: filled(text, texts) for name, text in config.environment.items()}
    return CommandLine(
        argv=(*(filled(part, texts) for part in config.argv), *_by_name(config, sent)),
        directory=Path(config.directory),
        environment=cleaned(config.pass_environment, variables),
    )


def write_knobs_file(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> None:
    """Write what has no placeholder as JSON. Nothing that lies there is written over."""
    values = _values(config, knobs, seed, context)
    document = {name: values[key] for key, name in config.sent.items()}
    with (context.directory / OUTPUT / KNOBS).open("x", encoding="utf-8") as file:
        file.write(json.dumps(document, indent=2) + "\n")


def arguments(config: CommandConfig, knobs: Knobs) -> tuple[str, ...]:
    """The knobs as a person gives them to the program; empty if it takes no arguments."""
    texts = as_text(space_of(config.knobs), knobs)
    sent = {name: texts[key] for key, name in config.sent.items() if key in texts}
    return (*_of_the_template(config, texts), *_by_name(config, sent))


def _values(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> dict[str, Scalar]:
    """By placeholder, each in its own type."""
    output = context.directory / OUTPUT
    values: dict[str, Scalar] = {
        **as_given(space_of(config.knobs), knobs),
        **config.fixed,
        "seed": seed,
        "directory": str(output),
        "device": context.device,
        "threads": context.threads,
        "attempt_id": context.attempt_id,
        KNOBS_FILE: str(output / KNOBS),
    }
    return values if config.budget is None else {**values, "budget": config.budget}


def _text(value: Scalar) -> str:
    """A value as an argument says it: every digit of a number, `true` and `false` as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _by_name(config: CommandConfig, sent: Mapping[str, str]) -> Iterator[str]:
    if config.sending in ("key=value", "flags"):
        dashes = "--" if config.sending == "flags" else ""
        yield from (f"{dashes}{name}={text}" for name, text in sent.items())


def _of_the_template(config: CommandConfig, texts: Mapping[str, str]) -> Iterator[str]:
    """Entries of argv that hold a knob; of `--lr {lr}` both."""
    before = ""
    for part in config.argv:
        if any(name in texts for name in placeholders(part)):
            if before.startswith("-"):
                yield before
            yield filled(part, texts)
            before = ""
        else:
            before = "" if placeholders(part) or "=" in part else part
