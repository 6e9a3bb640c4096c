"""What a program is given: its arguments, its environment, its file of knobs."""

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

from objectives.api import CommandLine, Context, Knobs
from objectives.command.config import KNOBS_FILE, CommandConfig, Scalar, variable
from objectives.command.template import filled, placeholders
from objectives.command.where import KNOBS
from objectives.programs.declared import as_given, as_text, space_of
from objectives.programs.environment import MARK, cleaned
from objectives.space import SearchSpace

OUTPUT = "output"
"""The program's own directory in the attempt's: it may be emptied or made anew, as scripts do."""

KNOBS_FILE_VARIABLE = "KNOBS_FILE"
_THREADS = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")


def space(config: CommandConfig) -> SearchSpace:
    """The declared knobs, in their order."""
    return space_of(config.knobs)


def command_line(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> CommandLine:
    """The program as an evaluation starts it. Raises ValueError unless the knobs are its own."""
    values = _values(config, knobs, seed, context)
    texts = {name: text_of(value) for name, value in values.items()}
    sent = {name: texts[key] for key, name in config.sent.items()}
    own = {name: filled(text, texts) for name, text in config.environment.items()}
    return CommandLine(
        argv=(*(filled(part, texts) for part in config.argv), *_arguments(config, sent)),
        directory=config.directory,
        environment=cleaned(
            config.pass_environment, {**_given(config, context), **_variables(config, sent), **own}
        ),
    )


def knobs_file(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> str:
    """The text of the file by which what has no placeholder is sent."""
    values = _values(config, knobs, seed, context)
    return json.dumps({name: values[key] for key, name in config.sent.items()}, indent=2) + "\n"


def arguments(config: CommandConfig, knobs: Knobs) -> tuple[str, ...]:
    """The knobs as a person gives them to the program; empty if it takes no arguments."""
    texts = as_text(space(config), knobs)
    sent = {name: texts[key] for key, name in config.sent.items() if key in texts}
    return (*_of_the_template(config, texts), *_arguments(config, sent))


def text_of(value: Scalar) -> str:
    """A value as an argument says it: every digit of a number, `true` and `false` as in JSON."""
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value) if isinstance(value, float) else str(value)


def _values(config: CommandConfig, knobs: Knobs, seed: int, context: Context) -> dict[str, Scalar]:
    """By placeholder, each in its own type."""
    values: dict[str, Scalar] = {**as_given(space(config), knobs)}
    values |= config.fixed
    values |= {
        "seed": seed,
        "directory": str(context.directory / OUTPUT),
        "device": context.device,
        "threads": context.threads,
        "attempt_id": context.attempt_id,
        KNOBS_FILE: str(context.directory / OUTPUT / KNOBS),
    }
    return values if config.budget is None else {**values, "budget": config.budget}


def _arguments(config: CommandConfig, sent: Mapping[str, str]) -> Iterator[str]:
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


def _given(config: CommandConfig, context: Context) -> dict[str, str]:
    """The device and the threads that it has, whoever starts it."""
    given = dict.fromkeys(_THREADS, str(context.threads))
    if context.device == "cpu":
        given["CUDA_VISIBLE_DEVICES"] = ""
    if context.attempt_id:
        given[MARK] = context.attempt_id
    if config.sending == "json":
        given[KNOBS_FILE_VARIABLE] = str(context.directory / OUTPUT / KNOBS)
    return given


def _variables(config: CommandConfig, sent: Mapping[str, str]) -> dict[str, str]:
    if config.sending != "environment":
        return {}
    return {variable(name): text for name, text in sent.items()}


def write_knobs_file(directory: Path, text: str) -> None:
    """It is new: nothing that lies there already is written over."""
    descriptor = os.open(directory / KNOBS, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
